// Two trees face to face, their taxa joined by lines: what one has elsewhere crosses.

import { el, ink, number, say, show } from "../dom.js";
import { Camera } from "./camera.js";
import { paint } from "./paint.js";
import { CanvasPen, SvgPen } from "./pens.js";

const ROW = 15, TALLEST = 12000, LEAST = 220, NAMED = 9; // pixels; a row that low has no name
const MARGIN = 32, LETTER = 6.6;

// The same strokes seen in a mirror that stands at half the width.
class MirrorPen {
  constructor(pen) {
    Object.assign(this, { pen, width: pen.width, height: pen.height });
  }

  lines(segments, colour, width) {
    this.pen.lines(segments.map((v, k) => (k % 2 ? v : this.width - v)), colour, width);
  }

  shape(points, colour, opacity) {
    this.pen.shape(points.map((v, k) => (k % 2 ? v : this.width - v)), colour, opacity);
  }

  text(x, y, text, size, colour, align = "start") {
    this.pen.text(this.width - x, y, text, size, colour, { start: "end", end: "start" }[align] ?? align);
  }
}

export class Tanglegram {
  // first, second: models of the same taxa in the same order; marked: of both, node → whether the other has its split.
  constructor(place, first, second, marked) {
    Object.assign(this, { models: [first, second], marked });
    second.orderLike(first);
    this.canvas = el("canvas", { role: "img", class: "tangle", "aria-label":
      `Two trees of ${number(first.tips)} taxa face to face; ${number(this.crossings())} taxa stand in another order` });
    show(place, this.canvas, el("p", {}, el("button", { type: "button", onclick: () => this.save() }, "Save the tanglegram (SVG)")));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(place);
    this.theme = matchMedia("(prefers-color-scheme: dark)");
    this.theme.addEventListener("change", this.draw);
    this.draw();
  }

  close() {
    this.observer.disconnect();
    this.theme.removeEventListener("change", this.draw);
  }

  // The fewest taxa without which no line crosses another: all but the longest run in the order of both.
  crossings() {
    const [a, b] = this.models, order = [...a.names.keys()].sort((x, y) => a.rank[x] - a.rank[y]).map((x) => b.rank[x]);
    const tails = [];
    for (const rank of order) {
      let [low, high] = [0, tails.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (tails[middle] < rank) low = middle + 1;
        else high = middle;
      }
      tails[low] = rank;
    }
    return order.length - tails.length;
  }

  get tall() {
    return Math.min(Math.max(this.models[0].rows * ROW + MARGIN, LEAST), TALLEST);
  }

  draw = () => {
    const { canvas } = this, width = Math.max(canvas.parentElement?.clientWidth || 600, 260), ratio = devicePixelRatio || 1;
    if (this.width === width && this.dark === this.theme.matches) return;
    [this.width, this.dark] = [width, this.theme.matches];
    canvas.width = width * ratio;
    canvas.height = this.tall * ratio;
    canvas.style.height = `${this.tall}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    this.paint(new CanvasPen(context, width, this.tall));
  };

  paint(pen) {
    const { models } = this, [a, b] = models, named = (pen.height - MARGIN) / a.rows >= NAMED;
    const longest = Math.max(...a.names.map((name) => name.length));
    const room = named ? Math.min(longest * LETTER + 8, pen.width * 0.22) : 4, side = (pen.width - 2 * room) * 0.36;
    const most = Math.max(Math.floor(room / LETTER), 3), pens = [pen, new MirrorPen(pen)];
    const short = (name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
    const style = { theme: this.dark ? "dark" : "light", ink: ink("ink"), quiet: ink("quiet"), mark: ink("mark"), line: 1.3, prune: 0.5, bare: true };
    const cameras = models.map((model, k) => {
      const camera = new Camera(model, "rectangular", side, pen.height);
      camera.sx = (side - camera.x - 4) / model.height;
      paint(pens[k], camera, { ...style, marked: this.marked[k] });
      return camera;
    });
    for (let x = 0; x < a.tips; x++) {
      const ys = cameras.map((camera, k) => camera.down(models[k].rank[x]));
      pens.forEach((one, k) => {
        one.lines([cameras[k].across(models[k].depth[x]) + 2, ys[k], side, ys[k]], ink("line"), 0.8);
        if (named) one.text(side + 3, ys[k], short(models[k].names[x]), 11, style.ink);
      });
      const turned = Math.abs(a.rank[x] - b.rank[x]) > 0.5;
      pen.lines([side + room, ys[0], pen.width - side - room, ys[1]], turned ? style.mark : style.quiet, turned ? 1.4 : 0.8);
    }
  }

  save() {
    const pen = new SvgPen(1200, this.tall, ink("paper"));
    this.paint(pen);
    const address = URL.createObjectURL(new Blob([pen.toString()], { type: "image/svg+xml" }));
    el("a", { href: address, download: "tanglegram.svg" }).click();
    say("Saved.");
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
}
