// The tools above a tree: shape, colours, search, root, files.

import { get } from "../api.js";
import { el, say } from "../dom.js";

let count = 0;

export function toolbar(view) {
  const id = `tree${++count}`;
  return el("div", { class: "row", role: "toolbar", "aria-label": "Tree" }, search(view, id), shape(view), colour(view, id),
    switches(view), roots(view), zoom(view), files(view, id));
}

function search(view, id) {
  const input = el("input", { type: "search", id: `${id}-search`, placeholder: "Search a taxon", size: "16", "aria-label": "Search a taxon",
    onkeydown: (event) => event.key === "Enter" && view.search(input.value) });
  return el("span", { class: "row" }, input, el("button", { type: "button", onclick: () => view.search(input.value) }, "Find"));
}

function toggle(text, pressed, act) {
  const button = el("button", { type: "button", "aria-pressed": String(pressed), onclick: () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    act(now);
  } }, text);
  return button;
}

function shape(view) {
  return toggle("Circular", false, (now) => {
    view.shape = now ? "circular" : "rectangular";
    view.fit();
  });
}

function colour(view, id) {
  const keys = Object.keys(view.model.numbers);
  if (!keys.length) return null;
  const select = el("select", { id: `${id}-colour`, onchange: () => {
    view.colour = select.value;
    view.redraw();
  } }, el("option", { value: "" }, "one colour"), keys.map((key) => el("option", { value: key }, `colour by ${key}`)));
  select.setAttribute("aria-label", "Colour of branches");
  return select;
}

function switches(view) {
  const { model } = view;
  const set = (name) => (now) => {
    view.shown[name] = now;
    view.redraw();
  };
  return el("span", { class: "row" }, toggle("Names", true, set("labels")),
    model.support && toggle("Support", true, set("support")), model.bars && toggle("HPD bars", true, set("bars")));
}

function roots(view) {
  if (!view.options.file) return null;
  const act = (text, root) => el("button", { type: "button", onclick: () => view.rerooted(root) }, text);
  return el("span", { class: "row" }, act("Root at midpoint", "midpoint"), act("Root as in file", "file"));
}

function zoom(view) {
  const act = (text, label, what) => el("button", { type: "button", "aria-label": label, onclick: () => {
    what();
    view.redraw();
  } }, text);
  const by = (factor) => () => view.camera.zoom(factor, view.camera.width / 2, view.camera.height / 2, "y");
  return el("span", { class: "row" }, act("+", "Zoom in", by(1.5)), act("−", "Zoom out", by(1 / 1.5)), act("All", "Show all", () => view.camera.fit()));
}

function files(view, id) {
  const server = view.options.file ? ["newick", "nexus"] : [];
  const select = el("select", { id: `${id}-as`, "aria-label": "Kind of file" },
    ["svg", "png", "pdf", ...server].map((kind) => el("option", { value: kind }, kind.toUpperCase())));
  return el("span", { class: "row" }, select, el("button", { type: "button", onclick: () => save(view, select.value) }, "Save"));
}

async function save(view, kind) {
  const stem = (view.options.file ?? "tree").split("/").at(-1).replace(/\.[^.]*$/, "");
  const { file, index = "0" } = view.options, drawn = !["newick", "nexus"].includes(kind);
  let content;
  try {
    content = drawn ? await view.picture(kind) : new Blob([await get("export", { file, index, root: view.root, as: kind })]);
  } catch (error) {
    say(`${error.message}. ${error.hint ?? ""}`);
    return;
  }
  const address = URL.createObjectURL(content);
  const endings = { newick: "nwk", nexus: "nex" };
  el("a", { href: address, download: `${stem}.${endings[kind] ?? kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
