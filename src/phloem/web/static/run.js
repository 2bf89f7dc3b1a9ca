// One analysis: how far it is, whether runs agree, what it wrote.

import { fileUrl, get, post } from "./api.js";
import { address } from "./app.js";
import { command, duration, el, facts, number, show, table, trouble } from "./dom.js";
import { linePlot, scatterPlot } from "./plot.js";
import { TreeView } from "./tree/view.js";

const WORDS = {
  waiting: "waits for its turn", running: "runs", finished: "is finished", stopped: "was stopped",
  failed: "failed", interrupted: "was interrupted: its process ended before it was done",
};
const POLL_MS = 1500;
const WANTED = { asdsf: 0.01, ess: 200, r_hat: 1.01 };

export async function run(place, id) {
  const parts = Object.fromEntries(["head", "state", "result", "watch", "log"].map((name) => [name, el("section", {})]));
  show(place, parts.head, parts.state, parts.result, parts.watch, parts.log);
  const memory = { column: 0, view: null, shown: undefined, open: true, problem: null };
  const step = async () => {
    const job = await get(`analyses/${id}`);
    if (!memory.head) {
      memory.head = true;
      show(parts.head, el("h1", {}, job.id), el("p", {}, `${job.title} of `, el("a", { href: address("file", job.file) }, job.file)));
    }
    if (job.state !== "finished") memory.record = null;
    else if (job.record?.endsWith(".json")) memory.record ??= await get("record", { file: job.record });
    state(parts.state, job, memory, again);
    log(parts.log, job);
    if (job.samples) await watch(parts.watch, job, memory);
    if (job.state === "finished" && memory.shown !== job.ended) {
      memory.shown = job.ended;
      await result(parts.result, job, memory);
    }
    return job;
  };
  let timer = null;
  const again = async () => {
    clearTimeout(timer);
    let wait = POLL_MS;
    try {
      const job = await step();
      if (memory.problem) show(place, parts.head, parts.state, parts.result, parts.watch, parts.log);
      memory.problem = null;
      if (!["running", "waiting"].includes(job.state)) wait = 10 * POLL_MS;
    } catch (error) {
      memory.problem = error;
      show(parts.state, trouble(error));
    }
    if (memory.open) timer = setTimeout(again, wait);
  };
  await again();
  return () => {
    memory.open = false;
    clearTimeout(timer);
    memory.view?.close();
  };
}

function state(place, job, memory, again) {
  const signature = JSON.stringify([job.state, job.progress, job.command]);
  if (memory.signature === signature) return;
  memory.signature = signature;
  const act = (what, body) => async () => {
    try {
      await post(`analyses/${job.id}/${what}`, body);
      memory.signature = memory.record = null;
      memory.shown = undefined;
      await again();
    } catch (error) {
      show(place, trouble(error));
    }
  };
  const runs = ["running", "waiting"].includes(job.state);
  const buttons = runs ? [el("button", { type: "button", onclick: act("stop") }, "Stop")] : [
    job.resumes && job.state !== "finished" && el("button", { type: "button", class: "main", onclick: act("go-on") }, "Go on"),
    job.state !== "finished" && el("button", { type: "button", onclick: act("go-on", { anew: true }) }, "Start anew"),
    el("a", { class: "button", href: `/api/analyses/${encodeURIComponent(job.id)}/zip`, download: `${job.id}.zip` }, "Download everything (zip)"),
  ];
  if (job.samples && job.state === "finished") buttons.push(...longer(memory, act));
  const spent = job.ended && job.started ? `, after ${duration(job.ended - job.started)}` : "";
  show(place, el("p", { role: "status" }, el("span", { class: `state ${job.state}` }, job.state), ` This analysis ${WORDS[job.state]}${spent}.`),
    progressBar(job), el("div", { class: "row" }, buttons), el("h3", {}, "The same as a command"), command(job.command));
}

// Where runs do not agree yet: the same analysis with more generations, from where it ended.
function longer(memory, act) {
  const done = memory.record?.settings?.chains?.generations ?? 0;
  const input = el("input", { id: "more", inputmode: "numeric", size: "10", value: String(2 * done) });
  return [el("label", { for: "more" }, "Generations in all"), input,
    el("button", { type: "button", onclick: () => act("go-on", { generations: input.value })() }, "Go on with more")];
}

function progressBar(job) {
  const p = job.progress;
  if (job.state !== "running") return null;
  if (!p) return el("p", { class: "quiet" }, job.samples ? "Starting. The first run after an installation compiles, which can take a minute or two." : "Working …");
  return el("div", {}, el("progress", { max: p.total, value: p.generation, "aria-label": "Generations" }),
    el("p", {}, `${number(p.generation)} of at most ${number(p.total)} generations, ${number(Math.round(p.speed))} chain-generations a second, `,
      `${duration(p.seconds_left)} left at most.`));
}

function log(place, job) {
  if (!job.log) return;
  const shown = place.querySelector("pre");
  if (shown) {
    if (shown.textContent !== job.log) shown.textContent = job.log;
    return;
  }
  show(place, el("details", { open: job.state === "failed" }, el("summary", {}, "What the command printed"),
    el("pre", { class: "log", tabindex: "0" }, job.log)));
}

async function watch(place, job, memory) {
  const found = await get(`analyses/${job.id}/trace`, { column: memory.column });
  if (!found) return;
  const signature = JSON.stringify([found.runs.map((one) => one.x.at(-1)), memory.column, job.state]);
  if (signature === memory.traced) return;
  memory.traced = signature;
  if (!memory.chooser) {
    memory.chooser = el("select", { id: "column", onchange: async () => {
      memory.column = memory.chooser.selectedIndex;
      await watch(place, job, memory);
    } }, found.names.map((name) => el("option", {}, name)));
    memory.plot = el("div", {});
    memory.agreement = el("div", {});
    memory.numbers = el("div", {});
    show(place, el("h2", {}, "Do the runs agree?"), memory.agreement, el("h2", {}, "Trace"),
      el("div", { class: "row" }, el("label", { for: "column" }, "Number"), memory.chooser), memory.plot,
      el("h2", {}, "Parameters"), memory.numbers);
  }
  linePlot(memory.plot, { series: found.runs, x: "generation", y: found.names[found.column], burnIn: found.burn_in });
  agreement(memory.agreement, memory.record?.convergence ?? job.progress?.convergence);
  numbers(memory.numbers, found.summary);
}

function agreement(place, c) {
  if (!c) return show(place, el("p", { class: "quiet" }, "Too few samples yet."));
  const good = (ok) => (ok ? "met" : "not yet");
  return show(place, table("Agreement of runs", [
    ["measure", (r) => r[0]], ["now", (r) => number(r[1]), true], ["wanted", (r) => r[2], true], ["", (r) => r[3]]], [
    ["ASDSF: how far clade frequencies of the runs lie apart", c.asdsf, `< ${WANTED.asdsf}`, good(c.asdsf !== null && c.asdsf < WANTED.asdsf)],
    [`Smallest ESS: independent samples (${c.limiting})`, c.ess && Math.round(c.ess), `> ${WANTED.ess}`, good(c.ess > WANTED.ess)],
    ["Largest R-hat: spread between runs over that within", c.r_hat, `< ${WANTED.r_hat}`, good(c.r_hat !== null && c.r_hat < WANTED.r_hat)],
  ]));
}

function numbers(place, rows) {
  if (!rows.length) return show(place, el("p", { class: "quiet" }, "Too few samples yet."));
  return show(place, table("Parameters", [
    ["parameter", (r) => r.name], ["mean", (r) => number(r.mean, 5), true], ["sd", (r) => number(r.sd, 3), true],
    ["95% HPD", (r) => `${number(r.hpd_low, 5)} … ${number(r.hpd_high, 5)}`, true],
    ["ESS", (r) => (r.ess === null ? "–" : String(Math.round(r.ess))), true], ["R-hat", (r) => number(r.r_hat, 5), true]], rows));
}

async function result(place, job, memory) {
  const record = memory.record;
  const picture = el("div", {});
  show(place, el("h2", {}, "Result"), record && summary(record), signal(job, record),
    job.tree && el("h3", {}, "Tree"), picture,
    job.tree && el("p", {}, el("a", { class: "button", href: address("tree", job.tree) }, "Tree on a page of its own")),
    record?.acceptance && moves(record),
    el("details", {}, el("summary", {}, `Files (${job.files.length})`),
      el("ul", {}, job.files.map((name) => el("li", {}, el("a", { href: fileUrl(name), download: "" }, name))))));
  for (const plot of place.querySelectorAll("[data-table]")) {
    get("record", { file: plot.dataset.table }).then((rows) => clockPlot(plot, rows, record)).catch((error) => show(plot, trouble(error)));
  }
  if (!job.tree) return;
  memory.view?.close();
  memory.view = new TreeView(picture, await get("tree", { file: job.tree }), { file: job.tree });
}

function summary(record) {
  const short = record.convergence?.met === false
    ? ["The runs do not agree well enough yet to be trusted: go on with more generations."] : [];
  const warnings = [...short, ...(record.warnings ?? [])].map((text) => el("div", { class: "panel warn" }, text));
  const engine = record.provenance?.engine;
  const parameters = record.parameters && !Array.isArray(record.parameters) ? Object.entries(record.parameters) : [];
  return el("div", {}, warnings, facts([
    ["Model", record.model],
    ["Log-likelihood", record.log_likelihood === undefined ? null : number(record.log_likelihood, 10)],
    ["AIC, BIC", record.optimum ? `${number(record.optimum.aic, 8)}, ${number(record.optimum.bic, 8)}` : null],
    ["Distances", record.distances?.distance ?? null],
    ["Rate", record.rate === undefined ? null : `${number(record.rate)} substitutions per site and year`],
    ["Root", record.root_year ? number(record.root_year, 7) : null],
    ["R²", record.r_squared === undefined ? null : number(record.r_squared)],
    ["Where", engine ? engine.reason : null]]),
  parameters.length > 0 && table("Parameters", [["parameter", (r) => r[0]], ["value", (r) => number(r[1], 6), true]], parameters));
}

function moves(record) {
  return el("details", {}, el("summary", {}, "How often proposals were accepted"), table("Moves", [
    ["move", (r) => r[0]], ["tried", (r) => number(r[1].tried), true],
    ["accepted", (r) => `${(100 * r[1].accepted).toFixed(1)} %`, true]], Object.entries(record.acceptance)));
}

function signal(job) {
  const file = job.kind === "signal" && job.files.find((name) => name.endsWith(".tsv"));
  return file ? el("div", {}, el("h3", {}, "Distance from the root against sampling date"), el("div", { "data-table": file })) : null;
}

function clockPlot(place, rows, record) {
  const [head, ...tips] = rows;
  const [date, distance, outlier, name] = ["date", "distance", "outlier", "name"].map((one) => head.indexOf(one));
  const points = tips.filter((tip) => tip[date] !== "").map((tip) => ({
    x: Number(tip[date]), y: Number(tip[distance]), odd: tip[outlier] === "yes", name: tip[name] }));
  scatterPlot(place, { points, x: "sampling date", y: "distance from the root",
    line: record?.root_year ? { at: record.root_year, slope: record.rate } : null });
}
