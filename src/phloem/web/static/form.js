// Questions of an analysis, its command line, its forecast, and the button that starts it.

import { get, post } from "./api.js";
import { address } from "./app.js";
import { command, el, facts, say, show, trouble } from "./dom.js";

const USUAL_MODELS = { dna: "GTR+F+G4", rna: "GTR+F+G4", protein: "LG+G4", codon: "GY94+F3X4" };
// Models by what they are for.
const PROTEIN = /^(LG|WAG)/, CODON = /^GY94/, ANY = /^MK/;
const FORECAST = ["nj", "upgma", "ml", "fit", "mcmc"];

export async function analysisForm(place, name, found, datatype) {
  const [kinds, folder] = await Promise.all([get("kinds"), get("folder")]);
  const fitting = kinds.filter((kind) => kind.takes.includes(found.content));
  const body = el("div", {});
  const choose = (kind) => {
    for (const one of cards.children) one.setAttribute("aria-pressed", String(one.dataset.kind === kind.name));
    questions(body, kind, name, found, folder, datatype);
  };
  const cards = el("div", { class: "cards" }, fitting.map((kind) => el("button", {
    type: "button", "aria-pressed": "false", "data-kind": kind.name, onclick: () => choose(kind),
  }, el("b", {}, kind.title), el("span", {}, kind.plain))));
  show(place, el("h2", {}, "Analyse"), cards, body);
}

function questions(body, kind, name, found, folder, datatype) {
  const fields = kind.questions.map((one) => field(fitted(one, found), folder, datatype));
  const answers = () => Object.fromEntries(fields.map((one) => [one.option, one.read()]));
  const line = el("div", {}), forecast = el("div", {}), problem = el("div", {});
  const asked = () => ({ kind: kind.name, file: name, answers: answers(), usual_model: USUAL_MODELS[found.datatype] });
  const start = async () => {
    button.disabled = true;
    try {
      const job = await post("analyses", asked());
      say(`${job.id} is started.`);
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
  } }, el("h3", {}, kind.title), el("p", { class: "help" }, kind.plain), arranged(fields.filter((one) => !one.further)),
  further.length > 0 && el("details", {}, el("summary", {}, "More options"), arranged(further)),
  el("h3", {}, "The same as a command"), line, forecast, problem, el("div", { class: "row" }, button));
  let turn = 0;
  const changed = async () => {
    const mine = ++turn;
    await new Promise((done) => setTimeout(done, 250));
    if (mine !== turn || !form.isConnected) return;
    try {
      const text = (await post("command", asked())).command;
      if (mine === turn) show(line, command(text)), show(problem);
      if (FORECAST.includes(kind.name)) await foresee(forecast, asked(), () => mine === turn);
    } catch (error) {
      if (mine === turn) show(problem, trouble(error));
    }
  };
  form.addEventListener("input", changed);
  show(body, form);
  changed();
}

// A question with the models that are for these data, and one of them where the command has no usual one.
function fitted(question, found) {
  if (question.option !== "model") return question;
  const kind = found.datatype;
  const fits = (value) => {
    if (PROTEIN.test(value)) return kind === "protein";
    if (CODON.test(value)) return kind === "codon";
    return ANY.test(value) || value === "auto" || ["dna", "rna"].includes(kind);
  };
  const choices = question.choices.filter(([value]) => !value || fits(value));
  return { ...question, choices, usual: question.required ? USUAL_MODELS[kind] ?? "MK+G4" : question.usual };
}

// Numbers and lists stand side by side, what needs a line has one.
function arranged(fields) {
  const narrow = (one) => ["whole", "number", "choice", "file"].includes(one.kind);
  return [...fields.filter((one) => !narrow(one)).map((one) => one.node),
    el("div", { class: "numbers" }, fields.filter(narrow).map((one) => one.node))];
}

async function foresee(place, asked, current) {
  show(place, el("h3", {}, "Forecast"), el("p", { class: "quiet", role: "status" }, "Measuring a sample of the data …"));
  try {
    const { rows, command: text } = await post("plan", asked);
    if (current()) show(place, el("h3", {}, "Forecast"), facts(rows), el("p", { class: "quiet" }, el("code", {}, text)));
  } catch (error) {
    if (current()) show(place, el("h3", {}, "Forecast"), trouble(error));
  }
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
    const choices = question.kind === "file" ? [["", "none"], ...folder.files.map((one) => [one.name, one.name])] : question.choices;
    input = el("select", described, choices.map(([value, text]) => el("option", { value, selected: value === (usual ?? "") }, text)));
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
  return { option: question.option, kind: question.kind, further: question.further, read,
    node: el("div", { class: `question ${question.kind}` }, parts) };
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
