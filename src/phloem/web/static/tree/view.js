// A tree one can move in: the canvas, what keys and pointers do, and the tools around it.

import { get } from "../api.js";
import { el, ink, number, say, show, trouble } from "../dom.js";
import { Camera } from "./camera.js";
import { TreeModel } from "./model.js";
import { colourAt, colourSteps, paint } from "./paint.js";
import { CanvasPen } from "./pens.js";
import { pictureOf } from "./picture.js";
import { sameBranch } from "./splits.js";
import { toolbar } from "./tools.js";

const REACH = 12; // pixels from a node that still hit it
const STEP = 60, FACTOR = 1.25;

// Pixels in which all names can be read, where that fits.
function tallEnough(model) {
  return Math.min(Math.max(12 * model.tips + 60, 360), 1600);
}

export class TreeView {
  // file, index: where the record comes from, for other roots and files; marked: node → whether it is ordinary.
  constructor(place, record, options = {}) {
    this.options = options;
    this.record = record;
    this.root = "file";
    this.shape = "rectangular";
    this.colour = "";
    this.selected = null;
    this.shown = { labels: true, support: true, bars: true };
    this.canvas = el("canvas", { class: "tree", tabindex: "0", role: "application" });
    this.about = el("div", { class: "row", "aria-live": "polite" });
    this.key = el("div", { class: "legend" });
    this.setRecord(record);
    show(place, options.plain ? null : toolbar(this), this.canvas, this.key, this.about,
      el("p", { class: "help" }, "Drag to move, wheel to zoom (shift: along the branches). Keys: arrows, +, −, 0 for all."));
    this.listen();
    this.resize();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    this.theme = matchMedia("(prefers-color-scheme: dark)");
    this.theme.addEventListener("change", this.redraw);
    this.tell();
  }

  close() {
    this.observer.disconnect();
    this.theme.removeEventListener("change", this.redraw);
  }

  setRecord(record) {
    this.model = new TreeModel(record);
    this.selected = null;
    this.found = null;
    this.canvas.setAttribute("aria-label", `Tree of ${number(this.model.tips)} taxa. Arrow keys move, plus and minus zoom, 0 shows all.`);
    if (this.camera) this.fit();
  }

  resize() {
    const width = this.canvas.clientWidth || 600, height = this.options.height ?? tallEnough(this.model), ratio = devicePixelRatio || 1;
    if (this.width === width && this.camera) return;
    this.width = width;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.camera = new Camera(this.model, this.shape, width, height);
    this.redraw();
  }

  fit() {
    this.camera = new Camera(this.model, this.shape, this.camera.width, this.camera.height);
    this.redraw();
  }

  redraw = () => {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.draw();
    });
  };

  style(theme = this.theme?.matches ? "dark" : "light") {
    const { model } = this, tips = model.rows;
    return {
      theme, ink: ink("ink"), quiet: ink("quiet"), mark: ink("mark"), bar: ink("bar"), line: tips > 3000 ? 0.8 : 1.3,
      prune: 0.8, labels: this.shown.labels, bars: this.shown.bars && model.timed ? model.bars : null,
      values: this.shown.support && model.support ? model.written ?? model.numbers[model.support] : null,
      steps: this.colour ? colourSteps(model, this.colour) : null, marked: this.options.marked, found: this.found,
    };
  }

  draw() {
    const begun = performance.now(), { context, camera } = this, style = this.style();
    context.clearRect(0, 0, camera.width, camera.height);
    const pen = new CanvasPen(context, camera.width, camera.height);
    this.visited = paint(pen, camera, style);
    for (const x of [...(this.found ?? [])].filter((one) => !this.model.isHidden(one)).slice(0, 500)) pen.dot(...camera.point(x), 3.5, style.mark);
    if (this.selected !== null) pen.dot(...camera.point(this.selected), 5, style.mark);
    this.legend(style);
    this.canvas.drawn = performance.now() - begun; // milliseconds, for whoever measures
  }

  legend(style) {
    const signature = `${this.colour} ${style.theme}`;
    if (this.legendOf === signature) return;
    this.legendOf = signature;
    if (!style.steps) return show(this.key);
    const swatch = (share) => {
      const mark = el("i", { "aria-hidden": "true" });
      mark.style.background = colourAt(share, style.theme);
      return mark;
    };
    return show(this.key, el("span", {}, `${this.colour}: ${number(style.steps.low, 3)} `),
      [0, 0.25, 0.5, 0.75, 1].map(swatch), el("span", {}, number(style.steps.high, 3)));
  }

  listen() {
    const { canvas } = this, pointers = new Map();
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const along = event.ctrlKey || event.metaKey ? "both" : event.shiftKey ? "x" : "y";
      this.camera.zoom(Math.exp(-(event.deltaY || event.deltaX) * 0.0016), ...at(event), along);
      this.redraw();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      this.pressed = at(event);
      canvas.classList.add("moving");
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const now = at(event);
      if (pointers.size === 1) this.camera.pan(now[0] - before[0], now[1] - before[1]);
      else this.pinch(pointers, event.pointerId, now);
      pointers.set(event.pointerId, now);
      this.redraw();
    });
    const up = (event) => {
      if (pointers.size === 1 && Math.hypot(...at(event).map((v, k) => v - this.pressed[k])) < 4) this.select(this.nearest(...at(event)));
      pointers.delete(event.pointerId);
      canvas.classList.remove("moving");
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  pinch(pointers, id, now) {
    const [other] = [...pointers].filter(([key]) => key !== id).map(([, point]) => point), before = pointers.get(id);
    const spread = (a, b) => Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 1);
    this.camera.zoom(spread(now, other) / spread(before, other), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }

  press(event) {
    const { camera } = this, [px, py] = [camera.width / 2, camera.height / 2];
    const moves = {
      ArrowLeft: () => camera.pan(STEP, 0), ArrowRight: () => camera.pan(-STEP, 0),
      ArrowUp: () => camera.pan(0, STEP), ArrowDown: () => camera.pan(0, -STEP),
      "+": () => camera.zoom(FACTOR, px, py, "y"), "=": () => camera.zoom(FACTOR, px, py, "y"),
      "-": () => camera.zoom(1 / FACTOR, px, py, "y"), 0: () => camera.fit(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
    this.redraw();
  }

  nearest(px, py) {
    const { camera, model } = this;
    let best = null, least = REACH;
    const stack = [model.root];
    while (stack.length) {
      const x = stack.pop(), [nx, ny] = camera.point(x), far = Math.hypot(nx - px, ny - py);
      if (far < least) [best, least] = [x, far];
      if (!model.isLeaf(x)) stack.push(...model.children[x]);
    }
    return best;
  }

  select(x) {
    this.selected = x;
    this.redraw();
    this.tell();
  }

  // About the selected node, and what can be done with it.
  tell() {
    const { model, selected: x } = this;
    if (x === null) return show(this.about, el("span", { class: "quiet" }, "Press a node, or search a taxon, to see more of it."));
    const values = Object.entries(model.numbers).filter(([, list]) => list[x] !== null).slice(0, 6)
      .map(([key, list]) => `${key} ${number(list[x])}`);
    const spans = Object.entries(model.intervals).filter(([, list]) => list[x]).slice(0, 2)
      .map(([key, list]) => `${key} ${list[x].map((v) => number(v)).join(" … ")}`);
    const length = model.timed && x !== model.root ? [`branch ${number(model.lengths[x])}`] : [];
    const act = (text, what) => el("button", { type: "button", onclick: what }, text);
    const inner = x >= model.tips && x !== model.root;
    return show(this.about, el("b", {}, model.title(x)), el("span", {}, [...length, ...values, ...spans].join(", ")),
      x !== model.root && act("Parent", () => this.select(model.parent[x])),
      inner && act(model.collapsed.has(x) ? "Expand" : "Collapse", () => this.fold(x)),
      act("Zoom to it", () => {
        this.camera.frame(x);
        this.redraw();
      }),
      x !== model.root && this.options.file && act("Root here", () => this.rootAt(x)));
  }

  fold(x) {
    this.model.toggle(x);
    this.redraw();
    this.tell();
  }

  search(text) {
    const hits = this.model.found(text);
    this.found = hits.length ? new Set(hits) : null;
    if (hits.length) {
      const next = hits[(hits.indexOf(this.selected) + 1) % hits.length];
      this.model.reveal(next);
      this.select(next);
      this.camera.frame(next);
    }
    say(text ? `${number(hits.length)} ${hits.length === 1 ? "taxon" : "taxa"} found.` : "");
    this.redraw();
  }

  async rootAt(x) {
    const original = this.root === "file" ? x : sameBranch(this.model, x, new TreeModel(this.record));
    await this.rerooted(original === null ? "file" : String(original));
  }

  async rerooted(root) {
    try {
      const { file, index } = this.options;
      this.setRecord(root === "file" ? this.record : await get("tree", { file, index, root }));
      this.root = root;
      this.tell();
    } catch (error) {
      show(this.about, trouble(error));
    }
  }

  picture(kind) {
    return pictureOf(this, kind);
  }
}
