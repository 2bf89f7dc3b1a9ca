// Questions of an analysis, its command line, its forecast, and the button that starts it.

import { get, post } from "./api.js";
import { address } from "./app.js";
import { command, el, facts, number, say, show, trouble } from "./dom.js";
import { clockPlot } from "./plot.js";

const USUAL_MODELS = { dna: "GTR+F+G4", rna: "GTR+F+G4", protein: "LG+G4", codon: "GY94+F3X4" };
// Models by what they are for.
const PROTEIN = /^(LG|WAG)/, CODON = /^GY94/, ANY = /^MK/;
const FORECAST = ["nj", "upgma", "ml", "fit", "mcmc", "time"];
const DATED = ["date", "time"]; // before which the clock is looked at

let wanted = new AbortController(); // the forecast that is asked for now
addEventListener("hashchange", () => wanted.abort());

// before: an analysis whose answers the questions begin with.
export async function analysisForm(place, name, found, datatype, before) {
  const [kinds, folder] = await Promise.all([get("kinds"), get("folder")]);
  const fitting = kinds.filter((kind) => kind.takes.includes(found.content) && (kind.name === "block" ? found.has_block
    : found.datatype !== "mixed" || takesParts(kind)));
  const body = el("div", {});
  const choose = (kind) => {
    for (const one of cards.children) one.setAttribute("aria-pressed", String(one.dataset.kind === kind.name));
    questions(body, kind, name, found, folder, datatype, kind.name === before?.kind ? before.answers : {});
  };
  const cards = el("div", { class: "cards" }, fitting.map((kind) => el("button", {
    type: "button", "aria-pressed": "false", "data-kind": kind.name, onclick: () => choose(kind),
  }, el("b", {}, kind.title), el("span", {}, kind.plain))));
  show(place, el("h2", {}, "Analyse"), cards, body);
  const same = fitting.find((kind) => kind.name === before?.kind);
  if (same) choose(same), body.scrollIntoView();
}

// Whether it reads parts, each with the usual model of its kind.
function takesParts(kind) {
  const asked = (option) => kind.questions.find((one) => one.option === option);
  return asked("partitions") && !asked("model")?.required;
}

function questions(body, kind, name, found, folder, datatype, given) {
  const asking = kind.questions.map((one) => fitted(one, kind, found, datesOf(name, folder)));
  const fields = asking.map((one) => field({ ...one, usual: given[one.option] ?? one.usual }, folder, datatype));
  const unusual = asking.some((one) => one.further && String(given[one.option] ?? one.usual ?? "") !== String(one.usual ?? ""));
  const answers = () => Object.fromEntries(fields.map((one) => [one.option, one.read()]));
  const line = el("div", {}), forecast = el("div", {}), problem = el("div", {}), clock = el("section", {});
  const asked = () => ({ kind: kind.name, file: name, answers: answers(), usual_model: usualOf(kind, found.datatype) });
  const start = async () => {
    button.disabled = true;
    try {
      const job = await post("analyses", asked());
      say(`${job.id} ${job.state === "waiting" ? "waits for its turn" : "is started"}.`);
      location.hash = address("run", job.id);
    } catch (error) {
      show(problem, trouble(error));
      button.disabled = false;
    }
  };
  const button = el("button", { type: "submit", class: "main" }, `Start ${kind.title}`);
  const further = fields.filter((one) => one.further);
  const form = el("form", { class: "panel", onsubmit: (event) => {
    event.preventDefault();
    start();
  } }, el("h3", {}, kind.title), el("p", { class: "help" }, kind.plain), clock, arranged(fields.filter((one) => !one.further)),
  further.length > 0 && el("details", { open: unusual }, el("summary", {}, "More options"), arranged(further)),
  el("h3", {}, "The same as a command"), line, forecast, problem, el("div", { class: "row" }, button));
  let turn = 0, before = null;
  const changed = async () => {
    const now = JSON.stringify(asked());
    if (now === before) return; // a field that is left says again what was typed
    before = now;
    const mine = ++turn;
    wanted.abort();
    wanted = new AbortController();
    await new Promise((done) => setTimeout(done, 250));
    if (mine !== turn || !form.isConnected) return;
    try {
      const text = (await post("command", asked())).command;
      if (mine === turn) show(line, command(text)), show(problem);
      if (FORECAST.includes(kind.name)) await foresee(forecast, asked(), wanted.signal);
    } catch (error) {
      if (mine === turn) show(problem, trouble(error));
    }
  };
  for (const kind of ["input", "change"]) form.addEventListener(kind, changed);
  const [stones, until] = ["stepping-stone", "until-converged"].map((option) => fields.find((one) => one.option === option));
  stones?.input.addEventListener("input", () => { // stones have a length of their own
    if (stones.input.value.trim()) until.input.checked = false;
  });
  show(body, form);
  changed();
  const dates = fields.find((one) => one.option === "dates");
  if (DATED.includes(kind.name) && dates) firstTheClock(clock, name, found, datatype, dates);
}

// Before a time tree: whether there is a clock, from the dates that are chosen, else from those in the names.
function firstTheClock(place, name, found, datatype, dates) {
  const plot = el("div", {}), text = el("div", {}), needed = dates.input.dataset.none !== "names";
  show(place, text, plot);
  let asked = null;
  const told = () => {
    const table = dates.input.value;
    if (table === asked) return undefined;
    asked = table;
    show(plot);
    if (table || (found.names_have_dates && !needed)) return look(table);
    return show(text, found.names_have_dates && el("div", { class: "panel" },
      el("p", {}, "The names carry sampling dates. This analysis reads them from a table:"),
      el("p", {}, el("button", { type: "button", onclick: make }, "Put the dates of the names into a table"))));
  };
  const make = async () => {
    try {
      const made = await post("dates-of-names", { file: name, datatype });
      if (![...dates.input.options].some((one) => one.value === made.name)) dates.input.append(el("option", { value: made.name }, made.name));
      dates.input.value = made.name;
      dates.input.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (error) {
      show(text, trouble(error));
    }
  };
  const look = async (table) => {
    show(text, el("p", { class: "quiet", role: "status" }, "Looking for a clock …"));
    try {
      const { rows, record, command: used } = await get("quick-signal", { file: name, dates: table, datatype });
      if (dates.input.value !== table || !place.isConnected) return;
      const p = record.randomisation?.tips?.p_value;
      show(text, el("h3", {}, "Is there a clock?"), el("p", { class: "help" },
        `Distance from the root against sampling date: R² ${number(record.r_squared, 2)}`,
        p === undefined ? "" : `, p = ${number(p, 2)} by permuted dates`,
        ". Points that rise along the line say that dates and rates can be told; red ones lie far from it. ", el("code", {}, used)));
      clockPlot(plot, rows, record);
    } catch (error) {
      if (dates.input.value === table) show(text, trouble(error)), show(plot);
    }
  };
  for (const kind of ["input", "change"]) dates.input.addEventListener(kind, told);
  told();
}

// The table of dates that lies beside a file under its name.
function datesOf(name, folder) {
  const stem = name.replace(/\.gz$/, "").replace(/\.[^.]*$/, "");
  return folder.files.find((one) => one.name === `${stem}.dates.tsv`)?.name ?? "";
}

// A question with the models that are for these data, and one of them where the command has no usual one.
function fitted(question, kind, found, dates) {
  if (question.option === "dates") return { ...question, none: kind.name === "time" ? "present" : "names", usual: dates };
  if (question.option === "partitions" && found.datatype === "mixed") return { ...question, usual: "declared" };
  if (question.option !== "model" || found.content !== "alignment") return question;
  const data = found.datatype;
  const fits = (value) => {
    if (PROTEIN.test(value)) return data === "protein";
    if (CODON.test(value)) return data === "codon";
    if (data === "mixed") return value === "auto";
    return ANY.test(value) || value === "auto" || ["dna", "rna"].includes(data);
  };
  const choices = question.choices.filter(([value]) => !value || fits(value))
    .map(([value, text]) => [value, value ? text : `${usualOf(kind, data) || "for every part"}, the usual one for these data`]);
  return { ...question, choices, usual: question.required ? USUAL_MODELS[data] ?? "MK+G4" : question.usual };
}

// The model that a command takes if none is asked for; of several kinds of data each part has its own.
function usualOf(kind, datatype) {
  if (datatype === "mixed") return "";
  const usual = USUAL_MODELS[datatype] ?? "MK+G4";
  return kind.samples && ["dna", "rna"].includes(datatype) ? "GTR+G4" : usual;
}

// In their order; numbers and lists that follow each other stand side by side, what needs a line has one.
function arranged(fields) {
  const narrow = (one) => ["whole", "number", "choice", "file"].includes(one.kind);
  const groups = [];
  for (const one of fields) {
    const last = groups.at(-1);
    if (!narrow(one)) groups.push(one.node);
    else if (last?.className === "numbers") last.append(one.node);
    else groups.push(el("div", { class: "numbers" }, one.node));
  }
  return groups;
}

// The forecast of what is asked, until `signal` says that it is asked otherwise; of samplers a pilot too, if wanted.
async function foresee(place, asked, signal) {
  const measured = async (part, title, words, body, buttons = [], until = signal) => {
    show(part, el("h3", {}, title), el("p", { class: "quiet", role: "status" }, words), buttons);
    try {
      const { rows, note, command: text } = await post("plan", body, until);
      const beside = body.kind === "time" ? `${note} Of one tree; a pilot tells hours, the device and why.` : note;
      show(part, el("h3", {}, title), facts(rows), beside && el("p", { class: "help" }, beside), command(text));
    } catch (error) {
      if (error.name !== "AbortError") show(part, el("h3", {}, title), trouble(error));
    }
  };
  const first = el("div", {}), second = el("div", {});
  show(place, first, second);
  await measured(first, "Forecast", "Measuring a sample of the data …", asked);
  if (["mcmc", "time"].includes(asked.kind) && !signal.aborted) offerPilot(second, asked, signal, measured);
}

// How long it would take, by sampling for a while; ended by the button, or by whatever changes what is asked.
function offerPilot(place, asked, signal, measured) {
  const begin = async () => {
    if (signal.aborted) return;
    const stop = new AbortController(), ended = () => stop.abort();
    signal.addEventListener("abort", ended);
    const button = el("button", { type: "button", onclick: ended }, "Stop the pilot");
    await measured(place, "By a pilot", "Sampling for some twenty seconds, more if kernels have to be compiled first …",
      { ...asked, pilot: true }, [button], stop.signal);
    if (stop.signal.aborted && !signal.aborted) offer();
  };
  const offer = () => show(place, el("div", { class: "row" }, el("button", { type: "button", onclick: begin }, "Forecast by a pilot of 20 seconds"),
    el("span", { class: "help" }, "How many generations a second, and hours until 200 effective samples. Other analyses that run slow it down.")));
  offer();
}

function field(question, folder, datatype) {
  const id = `q-${question.option}`, help = `${id}-help`;
  const described = { id, "aria-describedby": help };
  let input, read = () => input.value;
  const extra = [];
  const usual = question.option === "datatype" && datatype ? datatype : question.usual;
  if (question.kind === "switch") {
    input = el("input", { ...described, type: "checkbox", checked: Boolean(usual) });
    read = () => input.checked;
  } else if (question.kind === "choice" || question.kind === "file") {
    const choices = question.kind === "file" ? filesFor(question, folder) : question.choices;
    input = el("select", { ...described, "data-none": question.none }, choices.map(([value, text]) => el("option", { value, selected: value === (usual ?? "") }, text)));
  } else if (question.kind === "lines") {
    input = el("textarea", { ...described, rows: "2", spellcheck: "false" }, usual ?? "");
  } else if (question.kind === "text") {
    input = el("input", { ...described, value: usual ?? "", list: `${id}-list`, autocomplete: "off", spellcheck: "false",
      placeholder: question.required ? "" : question.choices[0]?.[1] ?? "" });
    extra.push(el("datalist", { id: `${id}-list` }, question.choices.filter(([value]) => value)
      .map(([value, text]) => el("option", { value }, text))), meaning(input, question.choices));
  } else {
    input = el("input", { ...described, inputmode: "decimal", value: String(usual ?? ""), size: "12" });
  }
  const label = el("label", { for: id }, question.label);
  const text = el("span", { class: "help", id: help }, question.help);
  const parts = question.kind === "switch" ? [input, label, text] : [label, input, ...extra, text];
  return { option: question.option, kind: question.kind, further: question.further, input, read,
    node: el("div", { class: `question ${question.kind}` }, parts) };
}

// The files that suit a question first, then all others.
function filesFor(question, folder) {
  const trees = folder.analyses.map((one) => one.tree).filter(Boolean).map((name) => ({ name, kind: "tree" }));
  const all = [...folder.files, ...(question.suits === "tree" ? trees : [])];
  const suits = (one) => !question.suits || one.kind === question.suits;
  const ordered = [...all.filter(suits), ...all.filter((one) => !suits(one))];
  return [["", "none"], ...question.choices, ...ordered.map((one) => [one.name, one.name])];
}

// In words what the model in a field is.
function meaning(input, choices) {
  const words = el("span", { class: "help", "aria-live": "polite" });
  const tell = () => {
    const known = choices.find(([value]) => value && value === input.value.trim());
    words.textContent = known ? known[1] : "";
  };
  input.addEventListener("input", tell);
  const list = choices.filter(([value]) => value).map(([value, text]) => el("button", { type: "button", onclick: () => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    tell();
  } }, value, el("span", { class: "skip" }, text)));
  tell();
  return el("div", {}, el("div", { class: "row" }, list), words);
}
