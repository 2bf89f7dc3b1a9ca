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

// Draw now, and again when the place gets another width or the colours change, as long as it is shown.
function kept(place, draw) {
  place.draw = draw;
  draw();
  if (place.watched) return;
  place.watched = true;
  let width = place.clientWidth;
  const theme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => place.isConnected ? place.draw() : theme.removeEventListener("change", again);
  theme.addEventListener("change", again);
  new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    again();
  }).observe(place);
}

// Round numbers between powers of ten, as their logarithms; where hardly one lies there, those of a plain axis.
export function powers(low, high) {
  const steps = high - low > 3 ? [1] : [1, 2, 5], found = [];
  for (let k = Math.floor(low); k <= high; k++) found.push(...steps.map((m) => k + Math.log10(m)));
  const inside = found.filter((one) => one >= low && one <= high);
  return inside.length > 2 ? inside : ticks(10 ** low, 10 ** high, 4).map(Math.log10).filter((one) => one >= low && one <= high);
}

function frame(place, label, xs, ys, names, logarithmic = false) {
  const canvas = place.querySelector("canvas") ?? el("canvas", { role: "img" });
  if (canvas.parentElement !== place) place.prepend(canvas);
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
  for (const tick of logarithmic ? powers(y0, y1) : ticks(y0, y1, 5)) {
    pen.fillText(number(logarithmic ? 10 ** tick : tick, logarithmic ? 2 : 6), LEFT - 6, py(tick) + 4);
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

function clipped(f, draw) {
  f.pen.save();
  f.pen.beginPath();
  f.pen.rect(LEFT, TOP, f.width - LEFT - RIGHT, HEIGHT - BOTTOM - TOP);
  f.pen.clip();
  draw();
  f.pen.restore();
}

function path(f, xs, ys) {
  f.pen.beginPath();
  xs.forEach((at, i) => f.pen.lineTo(f.px(at), f.py(ys[i])));
}

function key(place, count, more) {
  const found = place.querySelector(".legend") ?? place.appendChild(el("div", { class: "legend" }));
  show(found, Array.from({ length: count }, (_, k) => {
    const mark = el("i", { "aria-hidden": "true" });
    mark.style.background = ink(RUNS[k % RUNS.length]);
    return el("span", {}, mark, `run ${k + 1}`);
  }), more && el("span", {}, more));
}

// series: [{x, y}] of the runs; usedFrom: the first x that summaries use. What is before is shaded, and the y axis
// is that of the values from there on, where there are any.
export function linePlot(place, { series, x, y, usedFrom = -Infinity, title }) {
  const late = series.flatMap((one) => one.y.filter((_, k) => one.x[k] >= usedFrom));
  const shown = late.length ? late : series.flatMap((one) => one.y);
  const last = series.map((one) => number(one.y.at(-1), 7)).join(", ");
  const label = `${title} of ${y} in ${series.length} runs; last values ${last}`;
  kept(place, () => {
    const f = frame(place, label, series.flatMap((one) => one.x), shown, [x, y]);
    f.pen.fillStyle = ink("line");
    f.pen.globalAlpha = 0.4;
    const end = Math.min(Math.max(f.px(usedFrom), LEFT), f.width - RIGHT);
    f.pen.fillRect(LEFT, TOP, end - LEFT, HEIGHT - BOTTOM - TOP);
    f.pen.globalAlpha = 1;
    clipped(f, () => series.forEach((one, k) => {
      f.pen.strokeStyle = ink(RUNS[k % RUNS.length]);
      path(f, one.x, one.y);
      f.pen.stroke();
    }));
    key(place, series.length, usedFrom > -Infinity ? "shaded: burn-in and tuning, left out of summaries" : "");
  });
}

// A median with its interval: xs, and rows of (median, low, high); logarithmic: the y axis.
export function bandPlot(place, { xs, rows, x, y, logarithmic }) {
  const scale = logarithmic ? (v) => Math.log10(Math.max(v, 1e-300)) : (v) => v;
  const [middle, low, high] = [0, 1, 2].map((k) => rows.map((row) => scale(row[k])));
  const last = rows[0].map((v) => number(v)).join(", ");
  const label = `${y} against ${x}; at ${number(xs[0], 6)} median, low and high ${last}`;
  kept(place, () => {
    const f = frame(place, label, xs, [...low, ...high], [x, y], logarithmic);
    clipped(f, () => {
      path(f, [...xs, ...xs.toReversed()], [...low, ...high.toReversed()]);
      f.pen.fillStyle = ink("bar");
      f.pen.globalAlpha = 0.35;
      f.pen.fill();
      f.pen.globalAlpha = 1;
      f.pen.strokeStyle = ink("run1");
      f.pen.lineWidth = 2;
      path(f, xs, middle);
      f.pen.stroke();
    });
  });
}

// points: [{x, y, odd, name}]; line: through (at, 0) with a slope.
export function scatterPlot(place, { points, x, y, line: slope }) {
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y), rises = slope && slope.slope > 0;
  if (rises) xs.push(slope.at), ys.push(0);
  const odd = points.filter((p) => p.odd).map((p) => p.name);
  const label = `${points.length} tips: ${y} against ${x}${odd.length ? `; outliers ${odd.join(", ")}` : ""}`;
  kept(place, () => {
    const f = frame(place, label, xs, ys, [x, y]);
    if (rises) {
      f.pen.strokeStyle = ink("strong");
      line(f.pen, f.px(f.x0), f.py((f.x0 - slope.at) * slope.slope), f.px(f.x1), f.py((f.x1 - slope.at) * slope.slope));
    }
    for (const point of points) {
      f.pen.fillStyle = ink(point.odd ? "mark" : "run1");
      f.pen.beginPath();
      f.pen.arc(f.px(point.x), f.py(point.y), 3, 0, 7);
      f.pen.fill();
      f.pen.textAlign = f.px(point.x) > f.width * 0.6 ? "right" : "left";
      if (point.odd) f.pen.fillText(point.name, f.px(point.x) + (f.pen.textAlign === "left" ? 6 : -6), f.py(point.y) + 4);
    }
  });
}

// What `phloem temporal-signal` found: its table as rows with a head, and its record.
export function clockPlot(place, rows, record) {
  const [head, ...tips] = rows;
  const [date, distance, outlier, name] = ["date", "distance", "outlier", "name"].map((one) => head.indexOf(one));
  const points = tips.filter((tip) => tip[date] !== "").map((tip) => ({
    x: Number(tip[date]), y: Number(tip[distance]), odd: tip[outlier] === "yes", name: tip[name] }));
  scatterPlot(place, { points, x: "sampling date", y: "distance from the root",
    line: record?.root_year ? { at: record.root_year, slope: record.rate } : null });
}
