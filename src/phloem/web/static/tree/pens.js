// What trees are drawn with: the same few strokes on a canvas, or as the text of an SVG file.

export class CanvasPen {
  constructor(context, width, height) {
    Object.assign(this, { context, width, height });
  }

  // segments: x0, y0, x1, y1, … of straight lines.
  lines(segments, colour, width) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let k = 0; k < segments.length; k += 4) {
      context.moveTo(segments[k], segments[k + 1]);
      context.lineTo(segments[k + 2], segments[k + 3]);
    }
    context.stroke();
  }

  // arcs: x, y of the centre, radius, from, to, … in radians.
  arcs(arcs, colour, width) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let k = 0; k < arcs.length; k += 5) {
      context.moveTo(arcs[k] + arcs[k + 2] * Math.cos(arcs[k + 3]), arcs[k + 1] + arcs[k + 2] * Math.sin(arcs[k + 3]));
      context.arc(arcs[k], arcs[k + 1], arcs[k + 2], arcs[k + 3], arcs[k + 4]);
    }
    context.stroke();
  }

  shape(points, colour, opacity = 1) {
    const { context } = this;
    context.globalAlpha = opacity;
    context.fillStyle = colour;
    context.beginPath();
    for (let k = 0; k < points.length; k += 2) context.lineTo(points[k], points[k + 1]);
    context.fill();
    context.globalAlpha = 1;
  }

  dot(x, y, radius, colour) {
    this.context.fillStyle = colour;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 7);
    this.context.fill();
  }

  text(x, y, text, size, colour, align = "start", angle = 0) {
    const { context } = this;
    context.fillStyle = colour;
    context.font = `${size}px system-ui, sans-serif`;
    context.textAlign = align === "middle" ? "center" : align;
    context.textBaseline = "middle";
    if (!angle) {
      context.fillText(text, x, y);
      return;
    }
    context.save();
    context.translate(x, y);
    context.rotate(angle);
    context.fillText(text, 0, 0);
    context.restore();
  }
}

const NAMESPACE = "http://www.w3.org/2000/svg";
const short = (x) => Math.round(x * 100) / 100;

export class SvgPen {
  constructor(width, height, paper) {
    Object.assign(this, { width, height });
    this.root = document.createElementNS(NAMESPACE, "svg");
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) this.root.setAttribute(name, value);
    this.add("rect", { width, height, fill: paper });
  }

  add(tag, attributes, text) {
    const node = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, typeof value === "number" ? short(value) : value);
    if (text !== undefined) node.textContent = text;
    this.root.append(node);
  }

  lines(segments, colour, width) {
    let path = "";
    for (let k = 0; k < segments.length; k += 4) {
      path += `M${short(segments[k])} ${short(segments[k + 1])}L${short(segments[k + 2])} ${short(segments[k + 3])}`;
    }
    if (path) this.add("path", { d: path, stroke: colour, "stroke-width": width, fill: "none" });
  }

  arcs(arcs, colour, width) {
    let path = "";
    for (let k = 0; k < arcs.length; k += 5) {
      const [x, y, r, from, to] = arcs.slice(k, k + 5);
      const [x0, y0, x1, y1] = [x + r * Math.cos(from), y + r * Math.sin(from), x + r * Math.cos(to), y + r * Math.sin(to)].map(short);
      path += `M${x0} ${y0}A${short(r)} ${short(r)} 0 ${to - from > Math.PI ? 1 : 0} 1 ${x1} ${y1}`;
    }
    if (path) this.add("path", { d: path, stroke: colour, "stroke-width": width, fill: "none" });
  }

  shape(points, colour, opacity = 1) {
    const corners = Array.from({ length: points.length / 2 }, (_, k) => `${short(points[2 * k])},${short(points[2 * k + 1])}`);
    this.add("polygon", { points: corners.join(" "), fill: colour, opacity });
  }

  dot(x, y, radius, colour) {
    this.add("circle", { cx: x, cy: y, r: radius, fill: colour });
  }

  text(x, y, text, size, colour, align = "start", angle = 0) {
    const turn = angle ? { transform: `rotate(${short(angle * 180 / Math.PI)} ${short(x)} ${short(y)})` } : {};
    this.add("text", { x, y, fill: colour, "font-size": size, "font-family": "sans-serif", "dominant-baseline": "central",
      "text-anchor": align, ...turn }, text);
  }

  toString() {
    return new XMLSerializer().serializeToString(this.root);
  }
}

// What is drawn, as plain numbers: the server makes a PDF of it, which has the letters of all names.
export class RecordPen {
  constructor(width, height, paper) {
    Object.assign(this, { width, height, strokes: [], texts: [] });
    this.shape([0, 0, width, 0, width, height, 0, height], paper);
  }

  lines(segments, colour, width) {
    const found = [];
    for (let k = 0; k < segments.length; k += 4) found.push(segments.slice(k, k + 4).map(short));
    if (found.length) this.strokes.push({ lines: found, colour, width });
  }

  arcs(arcs, colour, width) {
    const found = [];
    for (let k = 0; k < arcs.length; k += 5) {
      const [x, y, r, from, to] = arcs.slice(k, k + 5), steps = Math.max(1, Math.ceil(Math.abs(to - from) * Math.sqrt(r)));
      const angles = Array.from({ length: steps + 1 }, (_, j) => from + (to - from) * j / steps);
      found.push(angles.flatMap((angle) => [x + r * Math.cos(angle), y + r * Math.sin(angle)]).map(short));
    }
    if (found.length) this.strokes.push({ lines: found, colour, width });
  }

  shape(points, colour, opacity = 1) {
    this.strokes.push({ lines: [points.map(short)], colour, width: 0, opacity, filled: true });
  }

  text(x, y, text, size, colour, anchor = "start", angle = 0) {
    this.texts.push({ x: short(x), y: short(y), text, size, colour, anchor, angle: angle * 180 / Math.PI });
  }
}
