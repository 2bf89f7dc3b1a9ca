// A tree on a page of its own, and two trees side by side.

import { get } from "./api.js";
import { address } from "./app.js";
import { el, facts, number, show, table, trouble } from "./dom.js";
import { Tanglegram } from "./tree/tangle.js";
import { TreeView } from "./tree/view.js";

export async function treePage(place, file, index = "0") {
  const record = await get("tree", { file, index });
  const picture = el("div", {});
  const chooser = record.trees > 1 && el("label", { class: "row" }, `Tree of ${number(record.trees)}`, el("input", {
    type: "number", min: "1", max: String(record.trees), value: String(Number(index) + 1),
    onchange: (event) => (location.hash = address("tree", file, String(event.target.value - 1))) }));
  show(place, el("h1", {}, file), chooser, picture);
  const view = new TreeView(picture, record, { height: Math.max(420, innerHeight - 330), file, index });
  return () => view.close();
}

export async function compare(place, first, second) {
  const { files, analyses } = await get("folder");
  const names = [...files.filter((one) => one.kind === "tree").map((one) => one.name), ...analyses.map((one) => one.tree).filter(Boolean)];
  const choose = (id, text, chosen) => el("label", { class: "row" }, text, el("select", { id },
    names.map((name) => el("option", { value: name, selected: name === chosen }, name))));
  const form = el("form", { class: "panel", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("compare", form.querySelector("#first").value, form.querySelector("#second").value);
  } }, choose("first", "First tree", first), choose("second", "Second tree", second), el("p", {}, el("button", { class: "main" }, "Compare")));
  const result = el("div", {});
  show(place, el("h1", {}, "Compare two trees"), names.length ? form : el("p", {}, "There is no tree in the folder yet."), result);
  if (!first || !second) return undefined;
  try {
    const views = await side(result, await get("compare", { file: first, other: second }));
    return () => views.forEach((view) => view.close());
  } catch (error) {
    show(result, trouble(error));
    return undefined;
  }
}

async function side(place, { first, second, comparison }) {
  const [left, right, tangle, list] = [0, 1, 2, 3].map(() => el("div", {}));
  const same = comparison.distance === 0;
  show(place, facts([
    ["Splits that only one has", `${number(comparison.distance)} of ${number(comparison.most)} (Robinson–Foulds distance)`]]),
  el("p", {}, same ? "The topologies are the same." : "Branches whose split the other tree does not have are drawn in red, with a thick line."),
  el("h2", {}, "Face to face"), tangle, list, el("h2", {}, "Side by side"), el("div", { class: "side" }, left, right));
  const options = { height: 480, plain: true };
  const views = [new TreeView(left, first, { ...options, marked: comparison.shared[0] }),
    new TreeView(right, second, { ...options, marked: comparison.shared[1] })];
  const facing = new Tanglegram(tangle, ...views.map((view) => view.model), comparison.shared);
  views[1].redraw();
  if (!same) show(list, el("h2", {}, "Splits that only one has"), differing(comparison.shared, views));
  return [...views, facing];
}

const MOST_LISTED = 200, MOST_NAMES = 12;

// A row for every split that one tree lacks: the taxa on its smaller side; pressed, it is shown below.
function differing(shared, views) {
  const rows = shared.flatMap((known, k) => known.flatMap((ordinary, x) => (ordinary ? [] : [[k, x]])));
  const taxa = ([k, x]) => {
    const { model } = views[k], below = [], stack = [x];
    while (stack.length) {
      const y = stack.pop();
      if (y < model.tips) below.push(model.names[y]);
      stack.push(...model.children[y]);
    }
    const inside = new Set(below), small = 2 * below.length <= model.tips;
    const side = small ? below : model.names.filter((name) => !inside.has(name));
    return side.length > MOST_NAMES ? `${side.slice(0, MOST_NAMES).join(", ")} and ${number(side.length - MOST_NAMES)} more` : side.join(", ");
  };
  const look = ([k, x]) => () => {
    views[k].select(x);
    views[k].canvas.scrollIntoView({ block: "center" });
  };
  const support = ([k, x]) => {
    const { model } = views[k], value = model.support ? model.numbers[model.support][x] : null;
    return value === null || value === undefined ? "" : number(value);
  };
  return el("div", {}, table("Splits that only one tree has", [
    ["in", ([k]) => (k ? "second" : "first")], ["taxa on one side", taxa], ["support", support, true],
    ["", (row) => el("button", { type: "button", onclick: look(row) }, "Show")]], rows.slice(0, MOST_LISTED)),
  rows.length > MOST_LISTED && el("p", { class: "quiet" }, `${number(rows.length - MOST_LISTED)} more are not listed.`));
}
