// Lines and points on a canvas, with axes in round numbers.

import { el, ink, number, show } from "./dom.js";

const HEIGHT = 260, LEFT = 78, BOTTOM = 40, TOP = 10, RIGHT = 34;
const RUNS = ["run1", "run2", "run3", "run4"];

export function ticks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

function frame(place, label, xs, ys, names) {
  const canvas = place.querySelector("canvas") ?? el("canvas", { role: "img" });
  if (!canvas.isConnected) show(place, canvas);
  canvas.setAttribute("aria-label", label);
  const width = Math.max(place.clientWidth || 600, 240), ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.height = `${HEIGHT}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const px = (x) => LEFT + (x - x0) / (x1 - x0) * (width - LEFT - RIGHT);
  const py = (y) => HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP);
  pen.strokeStyle = ink("line");
  pen.fillStyle = ink("quiet");
  pen.textAlign = "center";
  for (const tick of ticks(x0, x1, Math.max(2, (width - LEFT) / 110))) {
    pen.fillText(number(tick, 6), px(tick), HEIGHT - BOTTOM + 16);
    line(pen, px(tick), TOP, px(tick), HEIGHT - BOTTOM);
  }
  pen.textAlign = "right";
  for (const tick of ticks(y0, y1, 5)) {
    pen.fillText(number(tick, 6), LEFT - 6, py(tick) + 4);
    line(pen, LEFT, py(tick), width - RIGHT, py(tick));
  }
  pen.textAlign = "center";
  pen.fillText(names[0], (LEFT + width) / 2, HEIGHT - 6);
  pen.save();
  pen.translate(12, (HEIGHT - BOTTOM) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(names[1], 0, 0);
  pen.restore();
  return { pen, px, py, width, x0, x1 };
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(low <= high)) return [0, 1];
  return low === high ? [low - 1, high + 1] : [low, high];
}

// series: [{x, y}] of the runs; the y axis is that of the values after the burn-in.
export function linePlot(place, { series, x, y, burnIn }) {
  const late = series.flatMap((one) => one.y.slice(Math.floor(burnIn * one.y.length)));
  const last = series.map((one) => number(one.y.at(-1), 7)).join(", ");
  const f = frame(place, `Trace of ${y} in ${series.length} runs; last values ${last}`, series.flatMap((one) => one.x), late, [x, y]);
  f.pen.fillStyle = ink("panel");
  f.pen.globalAlpha = 0.7;
  f.pen.fillRect(LEFT, TOP, burnIn * (f.width - LEFT - RIGHT), HEIGHT - BOTTOM - TOP);
  f.pen.globalAlpha = 1;
  f.pen.save();
  f.pen.beginPath();
  f.pen.rect(LEFT, TOP, f.width - LEFT - RIGHT, HEIGHT - BOTTOM - TOP);
  f.pen.clip();
  series.forEach((one, k) => {
    f.pen.strokeStyle = ink(RUNS[k % RUNS.length]);
    f.pen.beginPath();
    one.x.forEach((at, i) => f.pen.lineTo(f.px(at), f.py(one.y[i])));
    f.pen.stroke();
  });
  f.pen.restore();
  const key = place.querySelector(".legend") ?? place.appendChild(el("div", { class: "legend" }));
  show(key, series.map((_, k) => {
    const mark = el("i", { "aria-hidden": "true" });
    mark.style.background = ink(RUNS[k % RUNS.length]);
    return el("span", {}, mark, `run ${k + 1}`);
  }), el("span", {}, "shaded: burn-in, left out of summaries"));
}

// points: [{x, y, odd, name}]; line: through (at, 0) with a slope.
export function scatterPlot(place, { points, x, y, line: slope }) {
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  if (slope && slope.slope > 0) xs.push(slope.at), ys.push(0);
  const f = frame(place, `${points.length} tips: ${y} against ${x}`, xs, ys, [x, y]);
  if (slope && slope.slope > 0) {
    f.pen.strokeStyle = ink("strong");
    line(f.pen, f.px(f.x0), f.py((f.x0 - slope.at) * slope.slope), f.px(f.x1), f.py((f.x1 - slope.at) * slope.slope));
  }
  f.pen.textAlign = "left";
  for (const point of points) {
    f.pen.fillStyle = ink(point.odd ? "mark" : "run1");
    f.pen.beginPath();
    f.pen.arc(f.px(point.x), f.py(point.y), 3, 0, 7);
    f.pen.fill();
    if (point.odd) f.pen.fillText(point.name, f.px(point.x) + 6, f.py(point.y) + 4);
  }
}
