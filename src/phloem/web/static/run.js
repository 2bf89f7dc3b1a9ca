// One analysis: how far it is, what can be done with it, and its log.

import { get, post } from "./api.js";
import { address } from "./app.js";
import { command, duration, el, number, show, trouble } from "./dom.js";
import { result } from "./result.js";
import { watch } from "./watch.js";

const WORDS = {
  waiting: "waits for its turn", running: "runs", finished: "is finished", stopped: "was stopped",
  failed: "failed", interrupted: "was interrupted: its process ended before it was done",
};
const POLL_MS = 1500;

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
  const signature = JSON.stringify([job.state, job.progress, job.command, job.changed]);
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
    el("a", { class: "button", href: address("file", job.file, job.id) }, "Start another with changes"),
    el("a", { class: "button", href: `/api/analyses/${encodeURIComponent(job.id)}/zip`, download: `${job.id}.zip` }, "Download everything (zip)"),
  ];
  const ofStones = memory.record?.log_marginal_likelihood !== undefined; // which have their length from the start
  if (job.samples && job.state === "finished" && !ofStones) buttons.push(...longer(memory, act));
  const spent = job.ended && job.started ? `, after ${duration(job.ended - job.started)}` : "";
  show(place, el("p", { role: "status" }, el("span", { class: `state ${job.state}` }, job.state), ` This analysis ${WORDS[job.state]}${spent}.`),
    job.changed.map((name) => el("div", { class: "panel warn", role: "note" }, el("b", {}, "Note: "),
      `${name} is another file now than the one that was read here: what this page shows is of the former one.`)),
    progressBar(job), el("div", { class: "row" }, buttons), el("h3", {}, "The same as a command"), command(job.command));
}

// Where runs do not agree yet: the same analysis with more generations, from where it ended.
function longer(memory, act) {
  const c = memory.record?.convergence, done = c?.generation ?? memory.record?.settings?.chains?.generations ?? 0;
  const enough = c?.forecast > done ? +c.forecast.toPrecision(2) : 2 * done; // by what was drawn, if that tells
  const input = el("input", { id: "more", inputmode: "numeric", size: "10", value: String(enough) });
  return [el("label", { for: "more" }, "Generations in all"), input,
    el("button", { type: "button", onclick: () => act("go-on", { generations: input.value })() }, "Go on with more")];
}

function progressBar(job) {
  const p = job.progress;
  if (job.state === "waiting") return el("p", {}, job.ahead ? `${number(job.ahead)} before it.` : "It is the next.");
  if (job.state !== "running") return null;
  if (!p) return el("p", { class: "quiet" }, "Working … The first run after an installation compiles, which can take a minute.");
  return el("div", {}, el("progress", { max: p.total ?? 1, value: p.total ? p.generation ?? p.done : undefined, "aria-label": "How far it is" }),
    el("p", {}, p.generation === undefined ? stage(p) : generations(p)));
}

function generations(p) {
  const end = p.total ? ` of about ${number(p.total)}` : "", left = p.total ? `, about ${duration(p.seconds_left)} left` : "";
  return `${number(p.generation)}${end} generations, ${number(Math.round(p.speed))} chain-generations a second${left}.`;
}

const UNITS = { search: "tries", bootstrap: "replicates", models: "models", fit: "evaluations", trees: "trees" };

// Of a search or a fit: what it is at, the best so far, and the time left where that means something.
export function stage(p) {
  const at = { search: p.total && `${number(p.done)} of ${number(p.total)} tries in a row without a better tree`,
    models: `${number(p.done)} models fitted` }[p.stage];
  const speed = p.speed && `${number(p.speed, 2)} ${UNITS[p.stage] ?? "steps"} a second`;
  const left = p.left && { "at least": `${duration(p.seconds_left)} left if none is better`, "at most": `${duration(p.seconds_left)} left at most`,
    about: `about ${duration(p.seconds_left)} left` }[p.left];
  const where = p.step === p.stage && p.total ? `${p.stage}, step ${number(p.done)} of ${number(p.total)}` : p.step;
  return `${[where, at, `log-likelihood ${number(p.log_likelihood, 9)}`, speed, left].filter(Boolean).join("; ")}.`;
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
