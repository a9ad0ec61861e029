// A plan drawn: its versions to step through, the steps as a layered graph, and the same as a list.

import { el, part, setText, visible } from "./dom.js";
import { layered } from "./layers.js";
import { readPlan, statesOf } from "./plan.js";

/** @typedef {import("./plan.js").Version} Version */
/** @typedef {import("./plan.js").StepState} StepState */
/** @typedef {import("./types.js").JournalRecord} JournalRecord */

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 136;
const HEIGHT = 38;
const BESIDE = 18;
const BETWEEN = 46;
const LETTERS = 19;

export class PlanView {
  /** The version that is looked at; 0: the newest. */ #version = 0;
  /** What stands in the view, so that nothing is drawn twice. */ #drawn = "";
  #dialog = /** @type {HTMLDialogElement} */ (part("plan-dialog"));
  #large = part("plan-content");
  element = el("div", { className: "plan" });

  /** @param {(n: number) => void} reveal shows a record */
  constructor(reveal) {
    this.reveal = reveal;
    this.#dialog.addEventListener("close", () => this.#large.replaceChildren());
  }

  /** Show the plan that these records tell. @param {JournalRecord[]} records */
  show(records) {
    const key = `${records.length} ${records[records.length - 1]?.n} ${this.#version}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    const { versions, changes } = readPlan(records);
    if (!versions.length) {
      this.element.replaceChildren(el("p", { className: "nothing" }, "There is no plan here."));
      return;
    }
    const found = versions.findIndex((one) => one.version === this.#version);
    const index = found < 0 ? versions.length - 1 : found;
    const states = statesOf(changes, index === versions.length - 1 ? Infinity : versions[index].version);
    const go = (/** @type {number} */ to) => {
      this.#version = to === versions.length - 1 ? 0 : versions[to].version;
      this.show(records);
    };
    const draw = () => drawing(versions[index], states, (n) => this.#reveal(n));
    const large = el("button", { type: "button" }, "Enlarge");
    large.addEventListener("click", () => this.#enlarge(draw));
    const place = this.element.querySelector(".plan-list")?.scrollTop ?? 0;
    this.element.replaceChildren(
      stepper(versions, index, go, (n) => this.#reveal(n)), summary(versions[index], states, large),
      el("div", { className: "plan-drawing" }, draw()), steps(versions[index], states, (n) => this.#reveal(n)));
    const list = this.element.querySelector(".plan-list");
    if (list) list.scrollTop = place;
    if (this.#dialog.open) this.#large.replaceChildren(draw());
  }

  /** Forget which version was looked at. */
  reset() {
    this.#version = 0;
    this.#drawn = "";
  }

  /** @param {number} n */
  #reveal(n) {
    this.#dialog.close();
    this.reveal(n);
  }

  /** @param {() => Element} draw */
  #enlarge(draw) {
    this.#large.replaceChildren(draw());
    this.#dialog.showModal();
  }
}

/**
 * @param {Version[]} versions
 * @param {number} index
 * @param {(index: number) => void} go
 * @param {(n: number) => void} reveal
 */
function stepper(versions, index, go, reveal) {
  const back = /** @type {HTMLButtonElement} */ (el("button", { type: "button", disabled: index === 0 }, "Earlier"));
  const on = /** @type {HTMLButtonElement} */ (el("button", { type: "button", disabled: index === versions.length - 1 }, "Later"));
  back.addEventListener("click", () => go(index - 1));
  on.addEventListener("click", () => go(index + 1));
  const { version, reason, n } = versions[index];
  const name = el("button", { type: "button", className: "link", title: "Show its record" }, `Version ${version}`);
  name.addEventListener("click", () => reveal(n));
  const words = versions.length > 1 ? ` of ${versions[versions.length - 1].version}` : "";
  return el("div", {}, el("div", { className: "steps" }, back, el("span", {}, name, words), on),
    el("p", { className: "facts plan-reason" }, reason));
}

/**
 * @param {Version} version
 * @param {Map<string, StepState>} states
 * @param {HTMLElement} large
 */
function summary(version, states, large) {
  /** @type {Map<string, number>} */ const count = new Map();
  for (const id of version.steps.keys()) {
    const state = states.get(id)?.state ?? "pending";
    count.set(state, (count.get(state) ?? 0) + 1);
  }
  const words = [...count].map(([state, many]) => `${many} ${readable(state)}`).join(", ");
  return el("div", { className: "steps" }, el("span", { role: "status" }, words), large);
}

/**
 * @param {Version} version
 * @param {Map<string, StepState>} states
 * @param {(n: number) => void} reveal
 */
function steps(version, states, reveal) {
  return el("ul", { className: "plan-list", "aria-label": "Steps" }, ...[...version.steps.values()].map((step) => {
    const state = states.get(step.id);
    const button = el("button", { type: "button", disabled: !state }, el("span", { className: "function" }, step.id), " ",
      el("span", { className: `badge ${state?.state ?? "pending"}` }, readable(state?.state ?? "pending")),
      el("span", { className: "facts" }, [step.kind, step.what, (state?.attempt ?? 0) > 1 && `attempt ${state?.attempt}`].filter(Boolean).join(" · ")));
    if (state) button.addEventListener("click", () => reveal(state.n));
    const detail = state?.detail ? [el("p", { className: "facts" }, state.detail)] : [];
    return el("li", {}, button, ...detail);
  }));
}

/**
 * @param {Version} version
 * @param {Map<string, StepState>} states
 * @param {(n: number) => void} reveal
 * @returns {Element}
 */
function drawing(version, states, reveal) {
  const { at, layers } = layered(version.steps);
  const widest = Math.max(1, ...layers.map((layer) => layer.length));
  const width = widest * (WIDTH + BESIDE) + BESIDE;
  const height = layers.length * (HEIGHT + BETWEEN) - BETWEEN + 2 * BESIDE;
  const where = (/** @type {string} */ id) => {
    const { layer, place } = at.get(id) ?? { layer: 0, place: 0 };
    const free = width - (layers[layer]?.length ?? 1) * (WIDTH + BESIDE) + BESIDE;
    return { x: free / 2 + place * (WIDTH + BESIDE), y: BESIDE + layer * (HEIGHT + BETWEEN) };
  };
  const picture = shape("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `The plan's ${version.steps.size} steps in ${layers.length} layers; the list below says the same.` });
  for (const step of version.steps.values()) {
    const to = where(step.id);
    for (const need of step.needs) if (at.has(need)) picture.append(edge(where(need), to, states.get(need)?.state ?? "", step.any));
  }
  for (const step of version.steps.values()) {
    const { x, y } = where(step.id);
    const state = states.get(step.id);
    const group = shape("g", { class: `step ${state?.state ?? "pending"} ${step.kind}`, "data-step": step.id, transform: `translate(${x} ${y})` });
    const words = shape("title", {});
    words.textContent = visible([step.id, readable(state?.state ?? "pending"), step.what, state?.detail].filter(Boolean).join("\n"));
    group.append(words, shape("rect", { width: WIDTH, height: HEIGHT, rx: step.kind === "agent" ? 19 : 6 }), label(step.id, 16, "id"),
      label(step.what || step.kind, 30, "what"));
    if (state) group.addEventListener("click", () => reveal(state.n));
    picture.append(group);
  }
  return picture;
}

/**
 * @param {{x: number, y: number}} from
 * @param {{x: number, y: number}} to
 * @param {string} state of the step that it leads from
 * @param {boolean} any
 */
function edge(from, to, state, any) {
  const [x, y, u, v] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
  const bend = Math.max(16, (v - y) / 2);
  return shape("path", { class: `edge ${state}${any ? " any" : ""}`, d: `M${x} ${y}C${x} ${y + bend} ${u} ${v - bend} ${u} ${v}` });
}

/**
 * @param {string} text
 * @param {number} y
 * @param {string} kind
 */
function label(text, y, kind) {
  const made = shape("text", { x: 10, y, class: kind });
  setText(made, text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
  return made;
}

/**
 * @param {string} name
 * @param {Record<string, string|number>} attributes
 */
function shape(name, attributes) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** @param {string} state */
function readable(state) {
  return state.replaceAll("_", " ");
}
