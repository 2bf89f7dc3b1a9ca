// What an analysis found: its numbers, tree, tables and pictures.

import { fileUrl, get } from "./api.js";
import { address } from "./app.js";
import { el, facts, number, show, table, trouble } from "./dom.js";
import { bandPlot, clockPlot } from "./plot.js";
import { TreeView } from "./tree/view.js";

export async function result(place, job, memory) {
  const record = memory.record, picture = el("div", {}), more = el("div", {});
  show(place, el("h2", {}, "Result"), record && summary(record, job), more,
    job.tree && el("h3", {}, "Tree"), job.tree && supports(record), picture,
    job.tree && el("p", {}, el("a", { class: "button", href: address("tree", job.tree) }, "Tree on a page of its own")),
    el("details", {}, el("summary", {}, `Files (${job.files.length})`),
      el("ul", {}, job.files.map((name) => el("li", {}, el("a", { href: fileUrl(name), download: "" }, name))))));
  const tables = [[".past.tsv", past], [".tests.tsv", tests], [".tsv", job.kind.startsWith("signal") ? clock : null]];
  for (const [ending, draw] of tables) {
    const file = draw && job.files.find((name) => name.endsWith(ending));
    if (!file) continue;
    const part = more.appendChild(el("section", {}));
    get("record", { file }).then((rows) => draw(part, rows, record)).catch((error) => show(part, trouble(error)));
  }
  if (!job.tree) return;
  memory.view?.close();
  memory.view = new TreeView(picture, await get("tree", { file: job.tree }), { file: job.tree });
}

function summary(record, job) {
  const short = record.convergence?.met === false
    ? ["The runs do not agree well enough yet to be trusted: go on with more generations."] : [];
  const warnings = [...short, ...(record.warnings ?? [])].map((text) => el("div", { class: "panel warn" }, text));
  const parameters = record.parameters && !Array.isArray(record.parameters) ? Object.entries(record.parameters) : [];
  const p = record.randomisation?.tips?.p_value;
  return el("div", {}, warnings, facts([
    ["Model", record.model?.replace(/\d+\.\d{5,}/g, (text) => String(+Number(text).toPrecision(4)))],
    ["Log-likelihood", record.log_likelihood === undefined ? null : number(record.log_likelihood, 10)],
    ["AIC, BIC", record.optimum ? `${number(record.optimum.aic, 8)}, ${number(record.optimum.bic, 8)}` : null],
    ["Search", record.tries === undefined ? null : `${record.tries} tries from elsewhere, ${record.better_trees.length} led to a better tree`],
    ["Marginal likelihood", record.log_marginal_likelihood === undefined ? null : markedMarginal(record)],
    ["Distances", record.distances?.distance ?? null],
    ["Rate", record.rate === undefined ? null : `${number(record.rate)} substitutions per site and year${interval(record.rate_interval)}`],
    ["Root", record.root_year ? number(record.root_year, 7) + interval(record.root_interval, 7) : null],
    ["R²", record.r_squared === undefined ? null : number(record.r_squared)],
    ["Slope by chance", p === undefined || p === null ? null : `p = ${number(p, 2)}, by permuted dates`],
    ["Where", record.provenance?.engine?.reason ?? null]]),
  record.model_choice && models(record.model_choice),
  parameters.length > 0 && table("Parameters", [["parameter", (r) => r[0]], ["value", (r) => number(r[1], 6), true]], parameters),
  job.kind === "distances" && el("p", {}, "The table is among the files below; the page reads it as a matrix."));
}

function markedMarginal(record) {
  const error = record.standard_error === undefined ? "" : ` ± ${number(record.standard_error, 3)} (standard error)`;
  return el("span", {}, `${number(record.log_marginal_likelihood, 8)}${error}, natural logarithm. `, el("a", { href: address("models") }, "Compare models"));
}

function interval(ends, digits = 4) {
  return ends && ends[0] !== null ? ` (${number(ends[0], digits)} … ${number(ends[1], digits)})` : "";
}

function supports(record) {
  const names = record?.supports?.names;
  return names && el("p", { class: "help" }, `Numbers at branches, in percent: ${names.join(" / ")}.`);
}

function models(choice) {
  const by = choice.criterion, rows = choice.models.slice(0, 12);
  return el("div", {}, el("h3", {}, `Models, by ${by.toUpperCase()}`), table("Models", [
    ["model", (m) => m.model], ["log-likelihood", (m) => number(m.log_likelihood, 8), true],
    ["free numbers", (m) => number(m.free_numbers), true], [by.toUpperCase(), (m) => number(m[by], 8), true],
    ["weight", (m) => number(m[`${by}_weight`], 3), true]], rows),
  el("p", { class: "help" }, `${choice.models.length} were fitted, ${choice.not_fitted.length} were not because they could not win. `, [choice.why].flat().join(" ")));
}

// Population sizes and lineages through time, as `phloem time` writes them.
function past(place, rows) {
  const [head, ...lines] = rows, values = lines.map((line) => line.map(Number));
  const dated = head.includes("date"), at = head.indexOf(dated ? "date" : "age");
  const xs = values.map((row) => (dated ? row[at] : -row[at]));
  const found = head.filter((name) => head.includes(`${name}_low`));
  show(place, el("h3", {}, "Through time"), el("div", { class: found.length > 1 ? "side" : "" }, found.map((name) => el("div", { "data-course": name }))),
    el("p", { class: "help" }, "Medians, and where 95 % of the draws are. Population sizes are effective sizes times the generation time."));
  for (const name of found) {
    const columns = [name, `${name}_low`, `${name}_high`].map((one) => head.indexOf(one));
    bandPlot(place.querySelector(`[data-course=${name}]`), { xs, rows: values.map((row) => columns.map((k) => row[k])),
      x: dated ? "year" : "before the present", y: name.replaceAll("_", " "), logarithmic: name !== "lineages" });
  }
}

function tests(place, rows) {
  const [head, ...lines] = rows;
  const cell = (k) => (line) => {
    const rejected = ["kh", "sh", "wsh", "elw", "au"].includes(head[k]) && line[k] !== "" && Number(line[k]) < 0.05;
    const text = /^-?\d+\.\d+$/.test(line[k]) ? number(Number(line[k]), 6) : line[k];
    return el("span", { class: rejected ? "short" : "" }, text);
  };
  show(place, el("h3", {}, "Trees against each other"), table("Tests", head.map((name, k) => [name.replaceAll("_", " "), cell(k), true]), lines),
    el("p", { class: "help" }, "A tree whose p is below 0.05 (in red) is rejected; expected likelihood weights keep trees until they add up to 0.95."));
}

function clock(place, rows, record) {
  const plot = el("div", {});
  show(place, el("h3", {}, "Distance from the root against sampling date"), plot);
  clockPlot(plot, rows, record);
}
