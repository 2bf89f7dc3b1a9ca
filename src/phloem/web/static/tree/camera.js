// Where on the canvas a node's depth and rank lie, and how panning and zooming change that.

export const TURN = 2 * Math.PI * 0.985; // of a circular tree, which leaves a gap
export const LEAST_ROW = 6; // pixels; where rows are closer, names would hide the branches
export const PAD = 16;
const HIDDEN = 0.26, NARROW = 0.42, LABELS = 0.45; // shares of the width for names: too close to be drawn, on a telephone, else
const RIM = 0.24; // of a circle's width

export class Camera {
  // wide: pixels that the name of a tip or of a collapsed clade needs; without it a guess, and names of more
  // than their share run out of the picture.
  constructor(model, shape, width, height, wide = null) {
    Object.assign(this, { model, shape, width, height, whole: wide !== null });
    this.wide = wide ?? ((x) => Math.min(model.title(x).length, 60) * 7.2 + 10);
    this.fit();
  }

  fit() {
    const { model, width, height } = this;
    if (this.shape === "circular") {
      const side = Math.min(width, height) / 2 - 4, names = LEAST_ROW / (this.angle(1) - this.angle(0)); // the least radius with names
      const radius = this.scale(side, 0, this.whole ? 0 : side * (1 - 2 * RIM)) * model.height;
      this.radius = Math.max(names > side ? side : Math.max(radius, names), 20);
      [this.x, this.y] = [width / 2, height / 2];
    } else {
      const inside = width - 2 * PAD;
      this.sy = (height - 2 * PAD - 16) / model.rows;
      const share = width < 600 ? NARROW : this.sy < LEAST_ROW ? HIDDEN : LABELS;
      this.sx = this.scale(inside, model.before, this.whole ? 0 : inside * (1 - share));
      [this.x, this.y] = [PAD + 6 + model.before * this.sx, PAD];
    }
  }

  // Pixels for a unit of depth, with which all names end inside so many pixels; least: of the whole depth.
  scale(inside, before, least) {
    const { model } = this;
    let found = inside / (model.height + before);
    for (const x of model.order) {
      const end = before + (x < model.tips ? model.depth[x] : model.far[x]);
      if (model.isLeaf(x) && end > 0) found = Math.min(found, (inside - this.wide(x)) / end);
    }
    return Math.max(found, least / (model.height + before));
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
  }

  // Around a point; along: "x", "y" or both, of a rectangular tree.
  zoom(factor, px, py, along = "both") {
    const bounded = (scale, unit) => Math.min(Math.max(scale * factor, unit * 0.2), unit * 5e4);
    if (this.shape === "circular") {
      const before = this.radius;
      this.radius = bounded(this.radius, Math.min(this.width, this.height) / 2);
      this.x = px - (px - this.x) * this.radius / before;
      this.y = py - (py - this.y) * this.radius / before;
      return;
    }
    if (along !== "y") {
      const before = this.sx;
      this.sx = bounded(this.sx, this.width / this.model.height);
      this.x = px - (px - this.x) * this.sx / before;
    }
    if (along !== "x") {
      const before = this.sy;
      this.sy = bounded(this.sy, this.height / this.model.rows);
      this.y = py - (py - this.y) * this.sy / before;
    }
  }

  across(depth) {
    return this.x + depth * this.sx;
  }

  down(rank) {
    return this.y + (rank + 0.5) * this.sy;
  }

  angle(rank) {
    return (rank + 0.5) / this.model.rows * TURN;
  }

  out(depth) {
    return depth / this.model.height * this.radius;
  }

  // The point of a node.
  point(x) {
    const { model } = this;
    if (this.shape !== "circular") return [this.across(model.depth[x]), this.down(model.rank[x])];
    const [angle, out] = [this.angle(model.rank[x]), this.out(model.depth[x])];
    return [this.x + out * Math.cos(angle), this.y + out * Math.sin(angle)];
  }

  // Bring a node's clade into view, as large as it fits.
  frame(x) {
    const { model } = this;
    if (this.shape === "circular") {
      const span = (model.high[x] - model.low[x] + 1) / model.rows;
      this.fit();
      this.radius = Math.min(this.radius / Math.max(span, 1e-4) ** 0.8, this.radius * 2000);
      const [px, py] = this.point(x);
      this.pan(this.width / 2 - px, this.height / 2 - py);
      return;
    }
    const rows = model.high[x] - model.low[x] + 1;
    this.fit();
    this.sy = Math.min((this.height - 2 * PAD - 16) / Math.max(rows, 12), 60);
    this.y = this.height / 2 - ((model.low[x] + model.high[x]) / 2 + 0.5) * this.sy;
  }
}
