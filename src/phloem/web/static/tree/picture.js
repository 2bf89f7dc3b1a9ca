// The whole tree as it is shown, as an SVG, PNG or PDF file.

import { Camera } from "./camera.js";
import { paint } from "./paint.js";
import { CanvasPen, RecordPen, SvgPen } from "./pens.js";
import { post } from "../api.js";
import { el, ink } from "../dom.js";

const ROW = 15, WIDTH = 1000, TALLEST = 16000, CIRCLE = 4000;

export async function pictureOf(view, kind) {
  const { model } = view;
  const around = view.shape === "circular";
  const side = Math.min(Math.max(900, model.rows * 12 / Math.PI), CIRCLE);
  const width = around ? side : WIDTH;
  const height = around ? side : Math.min(model.rows * ROW + 60, TALLEST);
  const camera = new Camera(model, view.shape, width, height);
  const style = { ...view.style(), prune: 0.3 };
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
