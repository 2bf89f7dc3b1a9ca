// Where on the canvas a node's depth and rank lie, and how panning and zooming change that.

export const TURN = 2 * Math.PI * 0.985; // of a circular tree, which leaves a gap
const PAD = 16, LABELS = 0.26, NARROW = 0.42; // share of the width that names may take, also on a telephone

export class Camera {
  constructor(model, shape, width, height) {
    Object.assign(this, { model, shape, width, height });
    this.fit();
  }

  fit() {
    const { model, width, height } = this;
    const folded = [...model.collapsed].slice(0, 200).map((x) => model.title(x));
    const longest = Math.max(...[...model.names.slice(0, 2000), ...folded].map((name) => Math.min(name.length, 60)), 4);
    const room = Math.min(longest * 7.2 + 10, width * (width < 600 ? NARROW : LABELS));
    if (this.shape === "circular") {
      this.radius = Math.max(Math.min(width, height) / 2 - Math.min(room, Math.min(width, height) * 0.24) - 4, 20);
      [this.x, this.y] = [width / 2, height / 2];
    } else {
      this.sx = (width - 2 * PAD - room) / (model.height + model.before);
      this.sy = (height - 2 * PAD - 16) / model.rows;
      [this.x, this.y] = [PAD + 6 + model.before * this.sx, PAD];
    }
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
