// What a sampler says while it runs and after: agreement of runs, traces, parameters, how moves fare.

import { get } from "./api.js";
import { el, number, show, table } from "./dom.js";
import { linePlot } from "./plot.js";

const WANTED = { asdsf: 0.01, ess: 200, r_hat: 1.01 };

export async function watch(place, job, memory) {
  const found = await get(`analyses/${job.id}/trace`, { column: memory.column });
  if (!found) return;
  const signature = JSON.stringify([found.runs.map((one) => one.x.at(-1)), memory.column, job.state, job.progress?.generation]);
  if (signature === memory.traced) return;
  memory.traced = signature;
  if (!memory.watched) {
    memory.watched = Object.fromEntries(["agreement", "trace", "means", "numbers", "moves"].map((name) => [name, el("div", { "data-plot": name })]));
    const chooser = el("select", { id: "column", onchange: async () => {
      memory.column = chooser.selectedIndex;
      await watch(place, job, memory);
    } }, found.names.map((name) => el("option", {}, name)));
    const w = memory.watched;
    show(place, el("h2", {}, "Do the runs agree?"), w.agreement, el("h2", {}, "Trace and running mean"),
      el("div", { class: "row" }, el("label", { for: "column" }, "Number"), chooser),
      el("div", { class: "side" }, w.trace, el("div", {}, w.means)), el("h2", {}, "Parameters"), w.numbers, w.moves);
  }
  const parts = memory.watched, y = found.names[found.column];
  if (!found.runs.some((one) => one.x.length > 1)) return void show(parts.agreement, el("p", { class: "quiet" }, "Too few samples yet."));
  linePlot(parts.trace, { series: found.runs, x: "generation", y, usedFrom: found.used_from ?? Infinity, title: "Trace" });
  if (found.means.some((one) => one.x.length > 1)) linePlot(parts.means, { series: found.means, x: "generation", y: `mean of ${y} so far`, title: "Running mean" });
  agreement(parts.agreement, memory.record?.convergence ?? job.progress?.convergence);
  numbers(parts.numbers, found.summary);
  moves(parts.moves, memory.record, job.progress);
}

function agreement(place, c) {
  if (!c) return show(place, el("p", { class: "quiet" }, "Too few samples yet."));
  const good = (ok) => el("span", { class: ok ? "good" : "" }, ok ? "met" : "not yet");
  const more = c.forecast && !c.met ? `By what was drawn, ${number(+c.forecast.toPrecision(2))} generations may be enough.` : "";
  return show(place, table("Agreement of runs", [
    ["measure", (r) => r[0]], ["now", (r) => number(r[1]), true], ["wanted", (r) => r[2], true], ["", (r) => r[3]]], [
    ["ASDSF: how far clade frequencies of the runs lie apart", c.asdsf, `< ${WANTED.asdsf}`, good(c.asdsf !== null && c.asdsf < WANTED.asdsf)],
    [`Smallest ESS: independent samples (${c.limiting})`, c.ess && Math.round(c.ess), `> ${WANTED.ess}`, good(c.ess > WANTED.ess)],
    ["Largest R-hat: spread between runs over that within", c.r_hat, `< ${WANTED.r_hat}`, good(c.r_hat !== null && c.r_hat < WANTED.r_hat)],
  ]), more && el("p", { class: "help" }, more));
}

// As summary/trace.py: digits_text.
function digits(value, sd) {
  const size = Math.abs(value);
  const beside = sd > 0 && sd < size ? Math.floor(Math.log10(size)) - Math.floor(Math.log10(sd)) + 2 : 5;
  return Math.min(Math.max(beside, 5), 15);
}

function numbers(place, rows) {
  if (!rows.length) return show(place, el("p", { class: "quiet" }, "Too few samples yet."));
  const few = (r) => el("span", { class: r.ess !== null && r.ess < WANTED.ess ? "short" : "" }, r.ess === null ? "–" : String(Math.round(r.ess)));
  return show(place, table("Parameters", [
    ["parameter", (r) => r.name], ["mean", (r) => number(r.mean, digits(r.mean, r.sd)), true], ["sd", (r) => number(r.sd, 3), true],
    ["95% HPD", (r) => `${number(r.hpd_low, digits(r.hpd_low, r.sd))} … ${number(r.hpd_high, digits(r.hpd_high, r.sd))}`, true],
    ["ESS", few, true], ["R-hat", (r) => number(r.r_hat, 5), true]], rows));
}

// Of the record once there is one, else of the run as it is now: name → [tried, share accepted].
function moves(place, record, progress) {
  const of = record?.acceptance
    ? Object.entries(record.acceptance).map(([name, m]) => [name, m.tried, m.accepted])
    : Object.entries(progress?.moves ?? {}).map(([name, m]) => [name, ...m]);
  if (!of.length) return show(place);
  const open = place.querySelector("details")?.open ?? false;
  return show(place, el("details", { open }, el("summary", {}, "How often proposals were accepted"),
    el("p", { class: "help" }, "Of the cold chains. Moves that are almost never accepted do little; 20 to 40 % is usual where a step size is learnt."),
    table("Moves", [["move", (r) => r[0]], ["tried", (r) => number(r[1]), true],
      ["accepted", (r) => `${(100 * r[2]).toFixed(1)} %`, true]], of)));
}
