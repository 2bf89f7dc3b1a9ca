// The whole tree as it is shown, as an SVG, PNG or PDF file.

import { Camera, PAD } from "./camera.js";
import { AROUND, FONT, paint, shown } from "./paint.js";
import { CanvasPen, RecordPen, SvgPen } from "./pens.js";
import { post } from "../api.js";
import { el, ink } from "../dom.js";

const ROW = 15, TREE = 740, TALLEST = 16000, CIRCLE = 3000;
const LONGEST = 300; // letters of a name
const OTHER_FONT = 1.18; // how much wider than here a name may be where the picture is looked at

export async function pictureOf(view, kind) {
  const { model } = view;
  const around = view.shape === "circular";
  const style = { ...view.style(), prune: 0.3, most: LONGEST };
  const wide = widths(model, style, around ? AROUND : FONT);
  const radius = Math.min(Math.max(340, model.rows * 12 / Math.PI / 2), CIRCLE / 2);
  const side = 2 * (reach(model, radius / model.height, 0, wide) + 4);
  const width = around ? side : reach(model, TREE / (model.height + model.before), model.before, wide) + 2 * PAD;
  const height = around ? side : Math.min(model.rows * ROW + 60, TALLEST);
  const camera = new Camera(model, view.shape, width, height, wide);
  if (kind === "svg") {
    const pen = new SvgPen(width, height, ink("paper"));
    paint(pen, camera, style);
    return new Blob([pen.toString()], { type: "image/svg+xml" });
  }
  if (kind === "pdf") {
    const pen = new RecordPen(width, height, ink("paper"));
    paint(pen, camera, style);
    return post("pdf", pen);
  }
  const canvas = el("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = ink("paper");
  context.fillRect(0, 0, width, height);
  paint(new CanvasPen(context, width, height), camera, style);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// Pixels that names need, of every tip and collapsed clade.
function widths(model, style, size) {
  const context = el("canvas").getContext("2d"), found = new Map();
  context.font = `${size}px system-ui, sans-serif`;
  const measure = (x) => (style.labels ? context.measureText(shown(model, x, style.most)).width * OTHER_FONT : 0) + 10;
  return (x) => found.get(x) ?? (found.set(x, measure(x)), found.get(x));
}

// Pixels from the root to the end of the last name.
function reach(model, scale, before, wide) {
  const ends = model.order.filter((x) => model.isLeaf(x)).map((x) => ((x < model.tips ? model.depth[x] : model.far[x]) + before) * scale + wide(x));
  return Math.ceil(ends.reduce((a, b) => Math.max(a, b), (model.height + before) * scale));
}
