// Elements from plain values. Text is always text: nothing that comes from a file is ever read as markup.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function show(place, ...children) {
  place.replaceChildren(...children.flat().filter(Boolean));
  return place;
}

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (place.textContent = ""), 6000);
}

// What went wrong and what to do about it.
export function trouble(error) {
  const where = [error.place, error.taxon && `taxon ${error.taxon}`, error.site && `site ${error.site}`];
  return el("div", { class: "panel bad", role: "alert" },
    el("p", {}, el("b", {}, "This did not work: "), error.message),
    where.some(Boolean) && el("p", {}, `Where: ${where.filter(Boolean).join(", ")}`),
    error.hint && el("p", { class: "remedy" }, el("b", {}, "What to do: "), error.hint));
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter((pair) => pair[1] !== null && pair[1] !== undefined)
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// columns: [title, row → cell, is a number]
export function table(caption, columns, rows) {
  const kind = (column) => (column[2] ? { class: "number" } : {});
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption }, el("table", {},
    el("caption", { class: "skip" }, caption),
    el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col", ...kind(c) }, c[0])))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((c) => el("td", kind(c), c[1](row))))))));
}

export function command(text) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  };
  return el("div", { class: "command" }, el("code", {}, text), " ",
    el("button", { type: "button", onclick: copy, "aria-label": "Copy the command" }, "Copy"));
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return size < 1e4 ? String(value) : value.toLocaleString("en");
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(digits - 1) : String(+value.toPrecision(digits));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// A colour of the style sheet, as canvases need it.
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
