// What a file holds, and what can be done with it; or what was done with it, to be done otherwise.

import { fileUrl, get } from "./api.js";
import { address } from "./app.js";
import { el, facts, number, show, table, trouble } from "./dom.js";
import { analysisForm } from "./form.js";
import { overview } from "./overview.js";
import { TreeView } from "./tree/view.js";

const DATA_TYPES = ["dna", "rna", "protein", "codon", "binary", "standard"];

export async function file(place, name, analysis) {
  show(place, el("h1", {}, name), el("p", { class: "quiet", role: "status" }, "Reading …"));
  const views = [], before = analysis && await get(`analyses/${analysis}`);
  const look = async (datatype) => {
    const body = el("div", {});
    show(place, el("h1", {}, name), body);
    try {
      const found = await get("look", { file: name, datatype });
      if (found.content === "alignment") await alignment(body, name, found, datatype, look, views, before);
      else if (found.content === "trees") await trees(body, name, found, views, before);
      else if (found.content === "matrix") await matrix(body, name, found, views, before);
      else if (found.content === "partitions") partitions(body, found);
      else table_(body, name, found);
    } catch (error) {
      show(body, trouble(error), datatype && el("button", { type: "button", onclick: () => look() }, "Back"),
        el("p", {}, el("a", { href: fileUrl(name) }, "Download the file"), " to mend it, and drop it again."));
    }
  };
  await look(before?.answers.datatype || undefined);
  return () => views.forEach((view) => view.close());
}

function warnings(found) {
  const block = found.has_block ? ["“As its MrBayes block says”, below, obeys the block of this file; other analyses do not."] : [];
  return [...found.warnings, ...block].map((text) => el("div", { class: "panel warn", role: "note" }, el("b", {}, "Note: "), text));
}

async function alignment(body, name, found, datatype, again, views, before) {
  const chooser = el("select", { id: "as", onchange: () => again(chooser.value || undefined) },
    el("option", { value: "" }, found.guessed || datatype ? "guess" : "as the file says"),
    DATA_TYPES.map((one) => el("option", { value: one, selected: one === datatype }, one)));
  const picture = el("section", {}, el("h2", {}, "The alignment at a glance"), el("p", { class: "quiet" }, "Drawing …"));
  const quick = el("section", {}, el("h2", {}, "A first tree"), el("p", { class: "quiet", role: "status" },
    "Neighbour joining …"));
  const form = el("section", {});
  if (found.parts.length) {
    show(body, warnings(found), alignmentFacts(found), parts(found), missing(found), identical(found), form);
    return analysisForm(form, name, found, datatype, before);
  }
  show(body, warnings(found), el("div", { class: "columns" },
    el("div", {}, alignmentFacts(found), el("div", { class: "row" }, el("label", { for: "as" }, "Read as"), chooser),
      missing(found), identical(found)),
    picture), quick, form);
  analysisForm(form, name, found, datatype, before);
  overview(picture, name, found, datatype).catch((error) => picture.append(trouble(error)));
  await firstTree(quick, name, datatype, found, views);
}

function alignmentFacts(found) {
  return facts([
    ["Sequences", number(found.taxa)],
    ["Sites", `${number(found.sites)}, of which ${number(found.variable)} vary and ${number(found.informative)} are informative`],
    ["Patterns", `${number(found.patterns)} different columns`],
    ["Kind of data", found.parts.length ? "mixed, which the analyses below read as parts"
      : `${found.datatype}${found.guessed ? " (guessed)" : ""}, ${found.states.length} states`],
    ["Missing", `${(100 * found.missing_share).toFixed(1)} % of all characters`],
    ["Ambiguous", `${number(found.ambiguous)} characters`],
    ["Dates", found.names_have_dates ? "every name ends in a date" : null],
  ]);
}

function parts(found) {
  return table("Parts of the file", [["part", (one) => one[0]], ["kind of data", (one) => one[1]],
    ["sites", (one) => number(one[2]), true]], found.parts);
}

function missing(found) {
  const worst = found.names.map((name, k) => [name, found.missing_by_taxon[k]]).filter((one) => one[1] > 0)
    .sort((a, b) => b[1] - a[1]).slice(0, 10);
  if (!worst.length) return null;
  return el("details", {}, el("summary", {}, "Sequences with most missing data"), table("Missing data", [
    ["sequence", (one) => one[0]], ["missing", (one) => `${(100 * one[1]).toFixed(1)} %`, true]], worst));
}

function identical(found) {
  if (!found.identical.length) return el("p", { class: "quiet" }, "No two sequences are identical.");
  return el("details", {}, el("summary", {}, `${number(found.identical.length)} groups of identical sequences`),
    el("ul", {}, found.identical.map((group) => el("li", {}, group.join(", ")))));
}

async function firstTree(quick, name, datatype, found, views) {
  try {
    const { tree, command } = await get("quick-tree", { file: name, datatype });
    if (!quick.isConnected) return;
    const canvas = el("div", {});
    show(quick, el("h2", {}, "A first tree"),
      el("p", { class: "quiet" }, "Neighbour joining, drawn from the middle of its longest path: ", el("code", {}, command)), canvas);
    views.push(new TreeView(canvas, tree));
  } catch (error) {
    show(quick, el("h2", {}, "A first tree"), trouble(error));
  }
}

async function matrix(body, name, found, views, before) {
  const quick = el("section", {}), form = el("section", {});
  show(body, warnings(found), facts([["Distance matrix of", `${number(found.taxa)} taxa`]]), quick, form);
  analysisForm(form, name, found, undefined, before);
  await firstTree(quick, name, undefined, found, views);
}

async function trees(body, name, found, views, before) {
  const picture = el("section", {}), form = el("section", {});
  show(body, warnings(found), facts([["Trees", number(found.trees)], ["Taxa", number(found.taxa)]]), picture,
    el("p", {}, el("a", { class: "button", href: address("tree", name) }, "Tree on a page of its own")), form);
  analysisForm(form, name, found, undefined, before).catch((error) => show(form, trouble(error)));
  views.push(new TreeView(picture, await get("tree", { file: name }), { file: name, height: 420 }));
}

function partitions(body, found) {
  show(body, warnings(found), facts([["Parts", number(found.subsets.length)]]),
    el("p", {}, found.subsets.slice(0, 200).join(", "), found.subsets.length > 200 && " …"),
    el("p", {}, "Choose this file as “Partition file”, under “More options” of an analysis of the alignment."));
}

function table_(body, name, found) {
  show(body, warnings(found), facts([
    ["Dates of", `${number(found.taxa)} names`],
    ["From", number(found.dates[0], 7)], ["To", number(found.dates[1], 7)]]),
    el("p", {}, "Choose this table in “Is there a clock?” or “Time tree” of an alignment."));
}
