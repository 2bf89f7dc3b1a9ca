// An alignment as coloured cells: a row a sequence, a column a site (or evenly chosen ones).

import { get } from "./api.js";
import { el, ink, number, show } from "./dom.js";

const DNA = { A: "#4c9f38", C: "#2a6fdb", G: "#e0a100", T: "#d1495b", U: "#d1495b" };
// Amino acids by their chemistry.
const GROUPS = [["AVILM", "#3f7fbf"], ["FWY", "#2aa198"], ["STNQ", "#5fa544"], ["DE", "#c2459b"],
  ["KRH", "#d1495b"], ["C", "#d9823b"], ["GP", "#c9a227"]];

export async function overview(place, name, found, datatype) {
  const cells = await get("overview", { file: name, datatype });
  const colours = cells.states.map((state, k) => colourOf(state, k, cells.states.length));
  const [rows, columns] = [cells.rows.length, cells.rows[0].length];
  const canvas = el("canvas", { class: "overview", width: columns, height: rows, role: "img",
    "aria-label": `${number(found.taxa)} sequences, ${number(found.sites)} sites; ${(100 * found.missing_share).toFixed(1)} % missing` });
  canvas.style.height = `${Math.max(120, Math.min(420, rows * 14))}px`;
  paint(canvas, cells, colours);
  const under = el("p", { class: "quiet" }, "Point at a cell to see which it is.");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
    const column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * columns)));
    const code = cells.rows[row].codePointAt(column) - 32;
    const state = code === cells.missing ? "missing or ambiguous" : cells.states[code];
    under.textContent = `${found.names[cells.taxa[row]]}, site ${number(cells.sites[column] + 1)}: ${state}`;
  });
  const shown = rows < found.taxa || columns < found.sites
    ? `${number(rows)} of ${number(found.taxa)} sequences and ${number(columns)} of ${number(found.sites)} sites, evenly chosen.` : "";
  show(place, el("h2", {}, "The alignment at a glance"), canvas, legend(cells, colours), el("p", { class: "quiet" }, shown), under);
}

function paint(canvas, cells, colours) {
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(canvas.width, canvas.height);
  const bytes = [...colours, ink("line")].map(channels);
  let at = 0;
  for (const row of cells.rows) {
    for (let column = 0; column < canvas.width; column++) {
      const [red, green, blue] = bytes[row.codePointAt(column) - 32];
      picture.data.set([red, green, blue, 255], at);
      at += 4;
    }
  }
  pen.putImageData(picture, 0, 0);
}

function channels(colour) {
  const pen = el("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

function colourOf(state, k, n) {
  if (n <= 5 && DNA[state]) return DNA[state];
  if (n === 20) return GROUPS.find(([letters]) => letters.includes(state))?.[1] ?? "#888888";
  return `hsl(${Math.round(360 * k / n)} 55% 50%)`;
}

function legend(cells, colours) {
  const item = (text, colour) => {
    const mark = el("i", { "aria-hidden": "true" });
    mark.style.background = colour;
    return el("span", {}, mark, text);
  };
  const few = cells.states.length <= 24 ? cells.states.map((state, k) => item(state, colours[k])) : [];
  return el("div", { class: "legend" }, few, item("missing or ambiguous", ink("line")));
}
