// A tree as flat arrays and where its nodes stand: depth from the root, rank among the tips.

export class TreeModel {
  constructor(record) {
    const n = record.parent.length;
    Object.assign(this, {
      n, tips: record.names.length, names: record.names, labels: record.labels, rooted: record.rooted,
      numbers: record.numbers, intervals: record.intervals, support: record.support, written: record.written,
      parent: Int32Array.from(record.parent), collapsed: new Set(), ladderized: true,
    });
    this.timed = record.lengths.slice(0, n - 1).every((length) => length !== null);
    this.lengths = Float64Array.from(record.lengths, (length) => Math.max(length ?? 0, 0));
    this.size = new Int32Array(n);
    this.children = Array.from({ length: n }, () => []);
    for (let x = 0; x < n; x++) {
      this.size[x] += x < this.tips;
      if (x < n - 1) {
        this.size[this.parent[x]] += this.size[x];
        this.children[this.parent[x]].push(x);
      }
    }
    this.depth = this.depths();
    this.far = Float64Array.from(this.depth); // of the deepest tip below
    for (let x = 0; x < n - 1; x++) this.far[this.parent[x]] = Math.max(this.far[this.parent[x]], this.far[x]);
    this.height = this.far[n - 1] || 1;
    this.bars = record.rerooted ? null : Object.keys(this.intervals).find((key) => key.includes("height") && /HPD|CI/.test(key)) ?? null;
    const oldest = this.bars ? Math.max(...this.intervals[this.bars].map((one) => one?.[1] ?? 0)) : 0;
    this.before = this.timed ? Math.max(oldest - this.height, 0) : 0; // how far intervals reach above the root
    // Where time is: the year at the root's depth 0, or minus the root's age where there are ages only.
    const aged = record.rerooted ? false : this.bars || Object.keys(this.numbers).some((key) => key.startsWith("height"));
    this.youngest = record.youngest ?? null;
    this.begin = !this.timed || !(aged || this.youngest !== null) ? null : (this.youngest ?? 0) - this.height;
    for (const name of ["rank", "low", "high", "first", "last"]) this[name] = new Float64Array(n);
    this.sortKey = this.size;
    this.place();
  }

  get root() {
    return this.n - 1;
  }

  depths() {
    const depth = new Float64Array(this.n);
    if (this.timed) {
      for (let x = this.n - 2; x >= 0; x--) depth[x] = depth[this.parent[x]] + this.lengths[x];
      return depth;
    }
    const level = new Float64Array(this.n); // without lengths tips are level
    for (let x = 0; x < this.n - 1; x++) level[this.parent[x]] = Math.max(level[this.parent[x]], level[x] + 1);
    return level.map((one) => level[this.n - 1] - one);
  }

  isLeaf(x) {
    return x < this.tips || this.collapsed.has(x);
  }

  // Rows for tips and collapsed clades in drawing order; parents midway between their outer children.
  place() {
    const order = [], stack = [this.root];
    let row = 0;
    const key = this.ladderized ? this.sortKey : null;
    this.drawn = this.children.slice(); // children in drawing order
    while (stack.length) {
      const x = stack.pop();
      order.push(x);
      if (this.isLeaf(x)) {
        for (const name of ["rank", "low", "high", "first", "last"]) this[name][x] = row;
        row++;
        continue;
      }
      const children = key ? [...this.children[x]].sort((a, b) => key[a] - key[b]) : this.children[x];
      this.drawn[x] = children;
      for (let k = children.length - 1; k >= 0; k--) stack.push(children[k]);
    }
    for (let k = order.length - 1; k >= 0; k--) {
      const x = order[k];
      if (this.isLeaf(x)) continue;
      let [low, high, first, last] = [Infinity, -Infinity, Infinity, -Infinity];
      for (const child of this.children[x]) {
        low = Math.min(low, this.low[child]);
        high = Math.max(high, this.high[child]);
        first = Math.min(first, this.rank[child]);
        last = Math.max(last, this.rank[child]);
      }
      [this.low[x], this.high[x], this.first[x], this.last[x]] = [low, high, first, last];
      this.rank[x] = (first + last) / 2;
    }
    this.rows = row;
    this.order = order;
  }

  toggle(x) {
    if (x < this.tips || x === this.root) return;
    if (!this.collapsed.delete(x)) this.collapsed.add(x);
    this.place();
  }

  // Turn children so that tips come in the order of another tree's, as far as this tree lets them.
  orderLike(other) {
    const sum = new Float64Array(this.n);
    for (let x = 0; x < this.n; x++) {
      if (x < this.tips) sum[x] = other.rank[x];
      if (x < this.n - 1) sum[this.parent[x]] += sum[x];
    }
    this.sortKey = sum.map((one, x) => one / this.size[x]);
    this.place();
  }

  // Tips whose name has the text, in drawing order.
  found(text) {
    const plain = (one) => one.toLowerCase().replaceAll("_", " "); // whichever of the two a user types
    const wanted = plain(text.trim());
    if (!wanted) return [];
    const hits = this.names.flatMap((name, x) => (plain(name).includes(wanted) ? [x] : []));
    return hits.sort((a, b) => this.rank[a] - this.rank[b]);
  }

  // Whether a node lies inside a collapsed clade.
  isHidden(x) {
    for (let y = this.parent[x]; this.collapsed.size && y >= 0; y = this.parent[y]) if (this.collapsed.has(y)) return true;
    return false;
  }

  // Open every collapsed clade around a node.
  reveal(x) {
    let changed = false;
    for (let y = this.parent[x]; y >= 0; y = this.parent[y]) changed = this.collapsed.delete(y) || changed;
    if (changed) this.place();
  }

  title(x) {
    if (x < this.tips) return this.names[x];
    return `${this.labels[x] ? `${this.labels[x]}: ` : ""}clade of ${this.size[x].toLocaleString("en")} taxa`;
  }
}
