// Draws a tree. A clade that is less than a pixel wide is one stroke, and what lies outside is not visited: a
// picture costs what can be seen of it, not what the tree has.

import { ticks } from "../plot.js";
import { LEAST_ROW } from "./camera.js";

const SCALE = {
  light: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [84, 168, 70], [214, 150, 10]],
  dark: [[178, 140, 235], [110, 160, 230], [70, 190, 175], [140, 215, 120], [250, 210, 80]],
};
const STEPS = 32;
export const FONT = 12, AROUND = 11; // pixels, of names
const LEAST_FONT = 9, MOST_SHOWN = 60; // letters of a name, where the picture does not say

export function colourAt(share, theme) {
  const anchors = SCALE[theme], at = Math.min(Math.max(share, 0), 1) * (anchors.length - 1);
  const k = Math.min(Math.floor(at), anchors.length - 2);
  const mixed = anchors[k].map((from, i) => Math.round(from + (at - k) * (anchors[k + 1][i] - from)));
  return `#${mixed.map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}

// A colour index for every node: -1 is ink.
export function colourSteps(model, key) {
  const values = model.numbers[key];
  if (!values) return null;
  const known = values.filter((value) => value !== null);
  const [low, high] = known.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const step = (v) => (v === null ? -1 : Math.round((high > low ? (v - low) / (high - low) : 0) * (STEPS - 1)));
  return { low, high, of: Int8Array.from(values, step) };
}

class Strokes {
  constructor(style) {
    this.style = style;
    this.lines = new Map();
    this.arcs = new Map();
  }

  of(kind, x) {
    const { style } = this;
    const step = style.marked && !style.marked[x] ? "marked" : style.steps ? style.steps.of[x] : -1;
    const group = this[kind];
    if (!group.has(step)) group.set(step, []);
    return group.get(step);
  }

  draw(pen) {
    const { style } = this;
    for (const [kind, groups] of [["lines", this.lines], ["arcs", this.arcs]]) {
      for (const [step, found] of groups) {
        const colour = step === "marked" ? style.mark : step < 0 ? style.ink : colourAt(step / (STEPS - 1), style.theme);
        pen[kind](found, colour, step === "marked" ? style.line * 2.4 : style.line);
      }
    }
  }
}

export function paint(pen, camera, style) {
  const drawn = { strokes: new Strokes(style), names: [], last: -Infinity, visited: 0 };
  (camera.shape === "circular" ? circular : rectangular)(pen, camera, style, drawn);
  if (camera.model.timed && camera.shape !== "circular" && !style.bare) {
    (camera.model.begin === null ? scaleBar : timeAxis)(pen, camera, style);
  }
  return drawn.visited;
}

function rectangular(pen, camera, style, drawn) {
  const { model } = camera, stack = [model.root], { height } = pen;
  const top = model.far[model.root];
  while (stack.length) {
    const x = stack.pop(), low = camera.down(model.low[x]), high = camera.down(model.high[x]);
    if (high < -20 || low > height + 20) continue;
    drawn.visited++;
    const y = camera.down(model.rank[x]), right = camera.across(model.depth[x]);
    const left = x === model.root ? right - 6 : camera.across(model.depth[model.parent[x]]);
    const lines = drawn.strokes.of("lines", x);
    if (!model.isLeaf(x) && high - low < style.prune) {
      lines.push(left, y, camera.across(model.far[x]), y);
      continue;
    }
    lines.push(left, y, right, y);
    if (model.isLeaf(x)) {
      if (x >= model.tips) triangle(pen, camera, style, x, right, y);
      name(camera, style, drawn, x, (x >= model.tips ? camera.across(model.far[x]) : right) + 5, y, camera.sy);
      continue;
    }
    lines.push(right, Math.max(camera.down(model.first[x]), -9), right, Math.min(camera.down(model.last[x]), height + 9));
    if (style.bars) bar(pen, camera, style, x, y, top);
    if (style.values && right - left > 16 && high - low > 13) value(style, drawn, x, right - 3, y - 7);
    for (let k = model.children[x].length - 1; k >= 0; k--) stack.push(model.drawn[x][k]);
  }
  drawn.strokes.draw(pen);
  for (const [x, y, text, size, colour, align] of drawn.names) pen.text(x, y, text, size, colour, align);
}

function triangle(pen, camera, style, x, right, y) {
  const end = camera.across(camera.model.far[x]), half = Math.min(camera.sy * 0.42, 12);
  pen.shape([right, y, Math.max(end, right + 4), y - half, Math.max(end, right + 4), y + half], style.quiet, 0.55);
}

function wedge(pen, camera, style, angle, out, rim, rowAngle) {
  const end = Math.max(rim, out + 4), half = Math.min(rowAngle * 0.42, 12 / end);
  const at = (radius, turn) => [camera.x + radius * Math.cos(turn), camera.y + radius * Math.sin(turn)];
  pen.shape([...at(out, angle), ...at(end, angle - half), ...at(end, angle + half)], style.quiet, 0.55);
}

function bar(pen, camera, style, x, y, top) {
  const interval = camera.model.intervals[style.bars][x];
  if (!interval) return;
  const [from, to] = [camera.across(top - interval[1]), camera.across(top - interval[0])];
  const half = Math.min(Math.max(camera.sy * 0.22, 1.5), 5);
  pen.shape([from, y - half, to, y - half, to, y + half, from, y + half], style.bar, 0.55);
}

function value(style, drawn, x, px, py) {
  const text = valueText(style.values[x]);
  if (text) drawn.names.push([px, py, text, 10, style.quiet, "end"]);
}

function valueText(number) {
  if (number === null || number === undefined || typeof number === "string") return number;
  return number > 1 ? String(Math.round(number)) : String(+number.toPrecision(3));
}

// On the spoke of a node, above the line.
function valueAround(pen, camera, style, x, angle, out) {
  const text = valueText(style.values[x]), turned = Math.cos(angle) < 0, turn = turned ? angle + Math.PI : angle;
  if (!text) return;
  const px = camera.x + out * Math.cos(angle) + 7 * Math.sin(turn), py = camera.y + out * Math.sin(angle) - 7 * Math.cos(turn);
  pen.text(px, py, text, 10, style.quiet, turned ? "start" : "end", turn);
}

function name(camera, style, drawn, x, px, py, row) {
  if (!style.labels || row < LEAST_ROW || py - drawn.last < LEAST_FONT + 1 || px > camera.width) return;
  drawn.last = py;
  const size = Math.min(Math.max(row * 0.85, LEAST_FONT), style.font ?? FONT);
  drawn.names.push([px, py, shown(camera.model, x, style.most), size, style.found?.has(x) ? style.mark : style.ink, "start"]);
}

export function shown(model, x, most = MOST_SHOWN) {
  const text = model.title(x);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function circular(pen, camera, style, drawn) {
  const { model } = camera, stack = [model.root], names = [], values = [];
  const rowAngle = camera.angle(1) - camera.angle(0);
  let last = -Infinity;
  while (stack.length) {
    const x = stack.pop();
    const inner = camera.out(x === model.root ? 0 : model.depth[model.parent[x]]), rim = camera.out(model.far[x]);
    const [low, high] = [camera.angle(model.low[x]), camera.angle(model.high[x])];
    if (outside(camera, inner, rim + 200, low, high)) continue;
    drawn.visited++;
    const angle = camera.angle(model.rank[x]), out = camera.out(model.depth[x]);
    const lines = drawn.strokes.of("lines", x), pruned = !model.isLeaf(x) && (high - low) * rim < style.prune;
    spoke(lines, camera, angle, inner, pruned ? rim : out);
    if (pruned) continue;
    if (model.isLeaf(x)) {
      const end = x >= model.tips ? rim : out;
      if (x >= model.tips) wedge(pen, camera, style, angle, out, rim, rowAngle);
      if (style.labels && end * rowAngle >= LEAST_ROW && (angle - last) * Math.max(end, 1) >= LEAST_FONT + 1) {
        last = angle;
        names.push([x, angle, end + 5]);
      }
      continue;
    }
    if (style.values && out - inner > 16 && (high - low) * out > 13) values.push([x, angle, out - 3]);
    drawn.strokes.of("arcs", x).push(camera.x, camera.y, out, camera.angle(model.first[x]), camera.angle(model.last[x]));
    for (let k = model.children[x].length - 1; k >= 0; k--) stack.push(model.drawn[x][k]);
  }
  drawn.strokes.draw(pen);
  for (const one of values) valueAround(pen, camera, style, ...one);
  for (const [x, angle, out] of names) {
    const turned = Math.cos(angle) < 0;
    pen.text(camera.x + out * Math.cos(angle), camera.y + out * Math.sin(angle), shown(model, x, style.most), AROUND,
      style.found?.has(x) ? style.mark : style.ink, turned ? "end" : "start", turned ? angle + Math.PI : angle);
  }
}

function spoke(lines, camera, angle, from, to) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  lines.push(camera.x + from * cos, camera.y + from * sin, camera.x + to * cos, camera.y + to * sin);
}

// Whether a sector of a ring lies off the canvas: by the box of its corners, where it is narrow.
function outside(camera, inner, rim, low, high) {
  if (high - low > 1) return false;
  const bulge = rim * (1 - Math.cos((high - low) / 2)) + 2;
  const corners = [[inner, low], [inner, high], [rim, low], [rim, high]];
  const xs = corners.map(([r, a]) => camera.x + r * Math.cos(a)), ys = corners.map(([r, a]) => camera.y + r * Math.sin(a));
  return Math.max(...xs) + bulge < 0 || Math.min(...xs) - bulge > camera.width
    || Math.max(...ys) + bulge < 0 || Math.min(...ys) - bulge > camera.height;
}

// Years, or ages before the present, along the foot, as far as the tree reaches.
function timeAxis(pen, camera, style) {
  const { model } = camera, y = pen.height - 20, first = Math.max(camera.across(-model.before), 0);
  const last = Math.min(camera.across(model.height), camera.width);
  const year = (x) => model.begin + (x - camera.x) / camera.sx;
  pen.lines([first, y, last, y], style.quiet, 1);
  for (const tick of last > first ? ticks(year(first), year(last), (last - first) / 90) : []) {
    const x = camera.across(tick - model.begin);
    pen.lines([x, y, x, y + 4], style.quiet, 1);
    pen.text(x, y + 11, String(+Math.abs(tick).toPrecision(8)), 11, style.quiet, "middle");
  }
  if (model.youngest === null) pen.text(last + 8, y, "age", 11, style.quiet);
}

function scaleBar(pen, camera, style) {
  const most = Math.min(160, camera.width * 0.3) / camera.sx, power = 10 ** Math.floor(Math.log10(most));
  const length = [5, 2, 1].map((m) => m * power).find((one) => one <= most);
  const [x, y] = [16, pen.height - 10], end = x + length * camera.sx;
  pen.lines([x, y, end, y, x, y - 3, x, y + 3, end, y - 3, end, y + 3], style.ink, 1.2);
  pen.text(end + 6, y, String(+length.toPrecision(3)), 11, style.quiet);
}
