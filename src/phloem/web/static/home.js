// The first view: drop a file, the files of the folder, the analyses.

import { get, post, put } from "./api.js";
import { address } from "./app.js";
import { duration, el, number, say, show, table, trouble } from "./dom.js";

export async function home(place) {
  const problems = el("div", {});
  const lists = el("div", {});
  show(place, el("h1", {}, "What do you have?"), dropZone(problems), problems, lists);
  const refresh = async () => {
    const found = await get("folder");
    if (!lists.contains(document.activeElement)) show(lists, analyses(found.analyses), files(found.files));
  };
  await refresh();
  const timer = setInterval(() => refresh().catch(() => {}), 3000);
  return () => clearInterval(timer);
}

function dropZone(problems) {
  const input = el("input", { type: "file", id: "pick", hidden: true, onchange: () => take(input.files, problems) });
  const zone = el("section", { class: "drop", "aria-label": "Add a file" },
    el("p", {}, el("b", {}, "Drop an alignment, a distance matrix, a tree or a table of dates here")),
    el("p", { class: "quiet" }, "FASTA, PHYLIP, NEXUS, Newick, CSV, TSV; gzipped or not. It stays on this machine."),
    el("p", {}, el("button", { type: "button", class: "main", onclick: () => input.click() }, "Choose a file")), input);
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files, problems);
  });
  return zone;
}

async function take(files, problems, replace = false) {
  show(problems);
  for (const one of files) {
    try {
      say(`Reading ${one.name} …`);
      await put(one, replace);
      say(`${one.name} is in the folder.`);
    } catch (error) {
      const again = error.status === 409 && el("button", { type: "button", onclick: () => take([one], problems, true) },
        `Replace ${one.name}`);
      show(problems, trouble(error), again);
      return;
    }
  }
  if (files.length === 1) location.hash = address("file", files[0].name);
}

function files(found) {
  const rows = found.length ? table("Files", [
    ["name", (f) => el("a", { href: address("file", f.name) }, f.name)],
    ["looks like", (f) => f.kind],
    ["size", (f) => size(f.size), true],
  ], found) : el("div", {}, el("p", { class: "quiet" }, "No data in this folder yet."),
    el("p", {}, el("button", { type: "button", onclick: examples }, "Put example data here"), " ", el("code", {}, "phloem examples")));
  return el("section", {}, el("h2", {}, "Files in the folder"), rows);
}

async function examples(event) {
  const place = event.target.parentElement;
  try {
    await post("examples");
    say("Primates, carnivores and West Nile virus are in the folder.");
    event.target.blur();
  } catch (error) {
    show(place, trouble(error));
  }
}

function analyses(found) {
  if (!found.length) return null;
  return el("section", {}, el("h2", {}, "Analyses"), table("Analyses", [
    ["name", (a) => el("a", { href: address("run", a.id) }, a.id)],
    ["what", (a) => a.title],
    ["state", (a) => el("span", { class: `state ${a.state}` }, a.state)],
    ["", (a) => far(a)],
  ], found));
}

// How far an analysis is, in a few words.
function far({ state, progress: p, ahead }) {
  if (state === "waiting") return ahead ? `${number(ahead)} before it` : "next";
  if (state !== "running" || !p) return "";
  if (p.generation !== undefined) {
    return p.total ? `${Math.floor(100 * p.generation / p.total)} %, about ${duration(p.seconds_left)} left` : `${number(p.generation)} generations`;
  }
  return p.step;
}

export function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < 3; unit++) bytes /= 1024;
  return `${number(bytes, 3)} ${units[unit]}`;
}
