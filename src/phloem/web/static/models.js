// Models by their marginal likelihoods: what `phloem bayes-factors` says of the folder's stepping stones.

import { get } from "./api.js";
import { address } from "./app.js";
import { command, el, number, show, table } from "./dom.js";

// Kass and Raftery 1995: twice the natural logarithm of a Bayes factor.
const STRENGTH = [[2, "hardly worth a word"], [6, "positive"], [10, "strong"], [Infinity, "very strong"]];

export async function models(place) {
  const { groups } = await get("bayes-factors");
  const compared = groups.filter((one) => one.models.length), alone = groups.filter((one) => !one.models.length);
  show(place, el("h1", {}, "Compare models"),
    el("p", { class: "help" }, "Which model the data prefer, over all its trees and parameters: its marginal likelihood, by stepping stones. ",
      "Start “Bayesian (MC³)” or “Time tree, Bayesian” of the same file under each model, with Stepping stones (More options) at 50."),
    compared.map(group),
    alone.length > 0 && el("section", {}, el("h2", {}, "Without another model of the same data"),
      el("ul", {}, alone.map((one) => el("li", {}, one.files[0])))),
    groups.length === 0 && el("p", {}, "There is no finished stepping-stone analysis in the folder yet."));
}

function group({ models: rows, command: text }) {
  const fixed = (value, digits = 2) => value.toFixed(digits);
  const name = (m) => (m.analysis ? el("a", { href: address("run", m.analysis) }, m.model) : `${m.model} (${m.file})`);
  return el("section", {}, table("Models, the best first", [
    ["model", name], ["log marginal likelihood", (m) => fixed(m.log), true], ["± s.e.", (m) => fixed(m.error), true],
    ["log Bayes factor", (m) => fixed(m.log_bayes_factor), true], ["± s.e.", (m) => fixed(m.factor_error), true],
    ["2 log BF", (m) => fixed(2 * m.log_bayes_factor), true], ["probability", (m) => number(m.probability, 3), true],
    ["against it", (m) => (m === rows[0] ? "" : strength(m))]], rows),
  el("p", { class: "help" }, "Natural logarithms, against the best. Probabilities if all were equally likely before. Evidence in words after Kass and ",
    "Raftery (1995); where two standard errors of a factor reach 0 nothing is decided: more generations, or more stones."),
  el("h3", {}, "The same as a command"), command(text));
}

function strength(m) {
  if (Math.abs(m.log_bayes_factor) < 2 * m.factor_error) return "undecided";
  return STRENGTH.find(([most]) => -2 * m.log_bayes_factor < most)[1];
}
