// The view of a plan: how it runs, its versions to step through, the steps as a layered graph and as a list, with
// the controls for each step.

import { el, part, setText, styled, visible } from "../base/dom.js";
import { heard, joined, number, plural, t } from "../base/language.js";
import { layered, routeOf } from "./layers.js";
import { cost, tokens } from "../base/format.js";
import { factsOfPlan, isWork, readPlan, statesOf } from "./plan.js";
import { kindName, otherName, questionName, wayName } from "./words.js";

/** @typedef {import("./plan.js").Version} Version */
/** @typedef {import("./plan.js").StepState} StepState */
/** @typedef {import("./plan.js").PlanFacts} PlanFacts */
/** @typedef {import("./plan.js").Step} Step */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {import("../state/types.d.ts").Prices} Prices */
/** @typedef {import("../state/types.d.ts").Request} Ask asks the server */
/**
 * @typedef {object} Situation the facts about the plan from its session
 * @property {string} path
 * @property {boolean} live whether it can be changed
 * @property {Prices|undefined} prices
 * @property {number} allowance tokens for its work
 */

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 136;
const HEIGHT = 38;
const BESIDE = 18;
const BETWEEN = 46;
/** The width that a line takes in a layer that it passes. */
const SLIM = 8;
const LETTERS = 19;

export class PlanView {
  /** The version that is shown; 0 for the newest. */ #version = 0;
  /** What is drawn, so that nothing is drawn twice. */ #drawn = "";
  #dialog = /** @type {HTMLDialogElement} */ (part("plan-dialog"));
  #large = part("plan-content");
  #form = planForm();
  element = el("div", { className: "plan" });

  /**
   * @param {(n: number) => void} reveal shows a record
   * @param {Ask} ask
   */
  constructor(reveal, ask) {
    this.reveal = reveal;
    this.ask = ask;
    this.#dialog.addEventListener("close", () => this.#large.replaceChildren());
  }

  /**
   * Show the plan that follows from these records.
   * @param {JournalRecord[]} records
   * @param {Situation} situation
   */
  show(records, situation) {
    const key = `${records.length} ${records[records.length - 1]?.n} ${this.#version} ${situation.live} ${situation.path}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    const { versions, changes } = readPlan(records);
    if (!versions.length) {
      this.element.replaceChildren(el("p", { className: "nothing" }, t("There is no plan yet.")));
      return;
    }
    const found = versions.findIndex((one) => one.version === this.#version);
    const index = found < 0 ? versions.length - 1 : found;
    const states = statesOf(changes, index === versions.length - 1 ? Infinity : versions[index].version);
    const go = (/** @type {number} */ to) => {
      this.#version = to === versions.length - 1 ? 0 : versions[to].version;
      this.show(records, situation);
    };
    const facts = factsOfPlan(records);
    const draw = () => drawing(versions[index], states, (n) => this.#reveal(n));
    const large = el("button", { type: "button" }, t("Enlarge"));
    large.addEventListener("click", () => this.#enlarge(draw));
    const place = this.element.querySelector(".plan-list")?.scrollTop ?? 0;
    const held = document.activeElement instanceof HTMLElement && this.element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    this.element.replaceChildren(
      this.#head(facts, situation), stepper(versions, index, go, (n) => this.#reveal(n)), summary(versions[index], states, large),
      el("div", { className: "plan-drawing" }, draw()), this.#steps(versions[index], states, facts, situation), answers(facts, situation.prices, (n) => this.#reveal(n)));
    if (held) /** @type {HTMLElement|null} */ (this.element.querySelector(`[data-key="${CSS.escape(held)}"]`))?.focus();
    const list = this.element.querySelector(".plan-list");
    if (list) list.scrollTop = place;
    if (this.#dialog.open) this.#large.replaceChildren(draw());
  }

  /**
   * How the plan runs, its outcome, and the controls for the whole plan.
   * @param {PlanFacts} facts
   * @param {Situation} situation
   */
  #head(facts, { path, live, allowance }) {
    const { ending } = facts;
    const say = facts.awaited ? t("It waits for you to start it.") : ending ? outcome(ending) : "";
    const rows = [[t("Mode"), [wayName(facts.mode), facts.options].filter(Boolean).join(", ")], [t("Chosen because"), heard(facts.chosen)],
      [t("Budget"), allowance ? t("{count} tokens", { count: tokens(allowance) }) : ""],
      [t("Confidence"), ending && ending.confidence !== null ? number(ending.confidence) : ""], ...facts.profile];
    const list = el("dl", { className: "plan-facts" }, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    const buttons = el("div", { className: "plan-actions" });
    const offer = (/** @type {string} */ label, /** @type {() => unknown} */ act, main = false) => {
      buttons.append(action(label, `plan ${label}`, act, main ? "primary" : ""));
    };
    // A yes is to the steps that are shown, so there is none beside an earlier version.
    if (live && facts.awaited && !this.#version) offer(t("Start"), () => this.#try("plan.start", { path, digest: facts.digest }), true);
    if (live && !ending && (facts.awaited || facts.paused)) offer(t("Edit steps"), () => changeSteps(this.ask, path));
    if (live && facts.awaited) offer(t("Cancel plan"), () => this.#try("cancel", { path }));
    if (live) offer(t("Save as a template"), () => this.#keep(path));
    const notes = ending?.missing.length || ending?.notes.length ? [el("ul", { className: "plan-notes", "aria-label": t("Missing results, and notes") },
      ...(ending?.missing ?? []).map(([id, why]) => el("li", {}, `${id}: ${heard(why)}`)), ...(ending?.notes ?? []).map((one) => el("li", {}, heard(one))))] : [];
    return el("div", { className: "plan-head" }, ...(say ? [el("p", { className: `plan-outcome ${ending?.status ?? "waits"}` }, say)] : []), list, ...notes, buttons,
      el("p", { className: "plan-news", role: "alert" }, ""));
  }

  /**
   * @param {Version} version
   * @param {Map<string, StepState>} states
   * @param {PlanFacts} facts
   * @param {Situation} situation
   */
  #steps(version, states, facts, { path, live }) {
    return el("ul", { className: "plan-list", "aria-label": t("Steps") }, ...[...version.steps.values()].map((step) => {
      const state = states.get(step.id);
      const paused = facts.held.has(step.id) && !ENDED.has(state?.state ?? "");
      const word = paused ? "paused" : state?.state ?? "pending";
      const button = el("button", { type: "button", disabled: !state, "data-key": `step ${step.id}` }, el("span", { className: "function" }, step.id), " ",
        el("span", { className: `badge ${word}` }, readable(word)),
        el("span", { className: "facts" }, [kindName(step.kind), whatOf(step), (state?.attempt ?? 0) > 1 && t("attempt {attempt}", { attempt: state?.attempt ?? 0 }), state?.passed && passed(state.passed)].filter(Boolean).join(" · ")));
      if (state) button.addEventListener("click", () => this.#reveal(state.n));
      const lines = [...step.given.split("\n"), heard(state?.detail ?? ""), step.accepted && !state && t("You are asked to accept its result."), waiting(step, state, states, facts, paused), race(step, version, states, facts), ...diagnosis(step, version, states)].filter(Boolean);
      return el("li", {}, button, ...lines.map((line) => el("p", { className: "facts" }, String(line))), ...(live ? this.#controls(path, step, state, facts, paused) : []));
    }));
  }

  /**
   * The controls for one step.
   * @param {string} path
   * @param {Step} step
   * @param {StepState|undefined} state
   * @param {PlanFacts} facts
   * @param {boolean} paused
   */
  #controls(path, step, state, facts, paused) {
    /** @type {HTMLElement[]} */ const buttons = [];
    const fields = { path, step: step.id };
    const offer = (/** @type {string} */ label, /** @type {() => unknown} */ act) =>
      buttons.push(action(label, `${label} ${step.id}`, act, "", t("{label} step {step}", { label, step: step.id })));
    const work = isWork(step.kind);
    const ended = ENDED.has(state?.state ?? "");
    if (work && !ended && !facts.ending) {
      offer(paused ? t("Resume") : t("Pause"), () => this.#try(paused ? "resume" : "pause", fields));
      offer(t("Message"), () => this.#tell(fields));
      offer(t("Cancel"), () => this.#try("cancel", fields));
    }
    if (work && ["failed", "skipped", "cancelled"].includes(state?.state ?? "") && state?.cause !== "lost_race") offer(t("Try again"), () => this.#try("plan.retry", fields));
    return buttons.length ? [el("div", { className: "step-actions" }, ...buttons)] : [];
  }

  /**
   * @template {import("../state/types.d.ts").RequestType} T
   * @param {T} type
   * @param {import("../state/types.d.ts").Fields<T>} fields
   */
  async #try(type, fields) {
    const news = this.element.querySelector(".plan-news");
    if (news) setText(news, "");
    try {
      await this.ask(type, fields);
    } catch (error) {
      const now = this.element.querySelector(".plan-news");
      if (now) setText(now, error instanceof Error ? error.message : String(error));
    }
  }

  /** @param {{path: string, step: string}} fields */
  #tell(fields) {
    this.#form.show({ title: t("Message about {step}", { step: fields.step }), label: t("If the step is an agent, that agent reads the message. For any other step, a model considers the message before further steps start."), value: "", send: t("Send"), rows: 4,
      act: (text) => this.ask("inject", { ...fields, text, mode: "deliver" }) });
  }

  /** @param {string} path */
  async #keep(path) {
    const [{ savePlan }] = await Promise.all([import("./template.js"), styled("settings")]);
    await savePlan(this.ask, path);
  }

  /** Forget which version was shown. */
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

/** @type {PlanForm|undefined} */ let theForm;

/** The one form that all views of plans share: it is one dialog of the page. */
function planForm() {
  theForm ??= new PlanForm();
  return theForm;
}

/**
 * Let a person change the steps that have not started.
 * @param {Ask} ask
 * @param {string} path of the plan
 */
export async function changeSteps(ask, path) {
  let text = "";
  try {
    text = (await ask("plan.text", { path })).text;
  } catch (error) {
    text = "";
  }
  planForm().show({ title: t("Edit the plan"), label: t("The whole plan, as YAML. Steps that have started stay as they are."), value: text, send: t("Save as a new version"), rows: 16,
    act: (value) => ask("plan.edit", { path, text: value }) });
}

/** A dialog with one field, for text by the user about a plan. */
class PlanForm {
  #dialog = /** @type {HTMLDialogElement} */ (part("plan-form"));
  #title = part("plan-form-title");
  #label = part("plan-form-label");
  #text = /** @type {HTMLTextAreaElement} */ (part("plan-form-text"));
  #news = part("plan-form-news");
  #send = part("plan-form-send");
  /** @type {(text: string) => Promise<unknown>} */ #act = async () => undefined;

  constructor() {
    this.#send.addEventListener("click", () => this.#submit());
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#submit();
      }
    });
  }

  /** @param {{title: string, label: string, value: string, send: string, rows: number, act: (text: string) => Promise<unknown>}} what */
  show({ title, label, value, send, rows, act }) {
    setText(this.#title, title);
    setText(this.#label, label);
    setText(this.#send, send);
    setText(this.#news, "");
    this.#text.value = value;
    this.#text.rows = rows;
    this.#act = act;
    this.#dialog.showModal();
    this.#text.focus();
  }

  async #submit() {
    try {
      await this.#act(this.#text.value);
      this.#dialog.close();
    } catch (error) {
      setText(this.#news, error instanceof Error ? error.message : String(error));
    }
  }
}

const ENDED = new Set(["executed", "failed", "cancelled", "skipped"]);
/** @type {Record<string, string>} */
const PASSED = {
  accepted: t("you accepted its result"), "syntactic+accepted": t("its check passed, and you accepted its result"), syntactic: t("its check passed"),
  judged: t("its check passed: a model judged it"), "syntactic+judged": t("its check passed: a model judged it"), left_out: t("left out"), parsed: "", no_error: "",
};

/** @param {string} kind of the rule that a result passed */
function passed(kind) {
  return PASSED[kind] ?? t("its check passed: {kind}", { kind: otherName(kind) });
}

/**
 * Why a step has not started, or waits.
 * @param {Step} step
 * @param {StepState|undefined} state
 * @param {Map<string, StepState>} states
 * @param {PlanFacts} facts
 * @param {boolean} paused
 */
function waiting(step, state, states, facts, paused) {
  const now = state?.state ?? "pending";
  if (ENDED.has(now) || facts.ending) return "";
  if (paused) return now === "running" ? t("You paused it. The running call continues; nothing starts after it.") : t("You paused it.");
  if (now === "waiting_human" && step.kind === "person") return t("It is yours: say below when it is done.");
  if (now === "waiting_human" && step.accepted) return t("It waits until you accept its result.");
  if (now === "waiting_human") return t("It waits for your approval.");
  if (now === "failed_retryable") return t("It will be tried again after a while.");
  const needs = step.needs.filter((one) => states.get(one)?.state !== "executed");
  if (facts.awaited) return needs.length ? "" : t("It runs first once you start the plan.");
  if (now === "blocked") return t("It waits until a model has judged the results so far, or a message of yours.");
  if (now === "pending" && needs.length) return t("It waits for {steps}.", { steps: joined(needs, step.any ? "or" : "and") });
  if (now === "ready") return facts.paused ? t("The plan is paused.") : t("It waits for a free slot, or for something that another step is using.");
  return "";
}

/**
 * The state or result of a racing step: `any_of` steps after it take the first that succeeds.
 * @param {Step} step
 * @param {Version} version
 * @param {Map<string, StepState>} states
 * @param {PlanFacts} facts
 */
function race(step, version, states, facts) {
  const rivals = new Set([...version.steps.values()].filter((one) => one.any && one.needs.includes(step.id)).flatMap((one) => one.needs));
  if (!rivals.delete(step.id)) return "";
  const copied = facts.copies.has(step.id), cause = states.get(step.id)?.cause ?? "";
  if (cause === "lost_race") {
    const won = [...rivals].find((one) => states.get(one)?.state === "executed") ?? "?";
    return copied ? t("It lost the race to {step}; its copy of the workspace was deleted.", { step: won }) : t("It lost the race to {step}.", { step: won });
  }
  if (cause === "succeeded" && [...rivals].some((one) => states.get(one)?.cause === "lost_race")) {
    return copied ? t("It won the race: the files that it wrote in its copy are in the workspace.") : t("It won the race.");
  }
  return copied && !ENDED.has(states.get(step.id)?.state ?? "") ? t("It races other steps, in a copy of the workspace.") : "";
}

/**
 * How the plan tried to repair a step, and what the models answered about it.
 * @param {Step} step
 * @param {Version} version
 * @param {Map<string, StepState>} states
 * @returns {string[]}
 */
function diagnosis(step, version, states) {
  const found = [];
  for (const one of version.steps.values()) {
    if (one.by !== step.id) continue;
    const output = states.get(one.id)?.output;
    if (one.kind === "micro_planner" && output) {
      const { failure, cause, action: does, confidence, reason } = output;
      const words = [failure, cause && t("cause: {cause}", { cause }), does && t("decision: {does}", { does: otherName(String(does)) }), confidence !== undefined && confidence !== null && t("confidence {confidence}", { confidence }), reason].filter(Boolean);
      found.push(t("Examined by {id}: {words}", { id: one.id, words: words.join(" · ") || t("no fix") }));
    } else if (isWork(one.kind)) {
      found.push(t("{id} replaces it.", { id: one.id }));
    }
  }
  return found;
}

/** @param {NonNullable<PlanFacts["ending"]>} ending */
function outcome({ status, reached, by, shortfall, bound }) {
  const said = { yes: t("It finished: its goal is reached."), partly: t("Its goal is reached in part."), no: t("Its goal is not reached."), unknown: t("Whether its goal is reached is not known.") }[reached];
  const before = { concluded: t("It finished: its goal is reached."), partial: t("It finished, but some steps failed."), failed: t("It failed."), cancelled: t("It was cancelled.") }[status];
  const words = by === "person" && reached !== "yes" ? t("It was stopped.") : (said ?? before ?? readable(status));
  return [words, heard(shortfall), bound && t("It reached its limit of {bound}.", { bound: otherName(bound) })].filter(Boolean).join(" ");
}

/**
 * What models answered about the plan, and at what cost.
 * @param {PlanFacts} facts
 * @param {Prices|undefined} prices
 * @param {(n: number) => void} reveal
 */
function answers(facts, prices, reveal) {
  if (!facts.answers.length) return el("div", {});
  const priced = (/** @type {import("./plan.js").Answer[]} */ some) => cost(prices, some.map((one) => (
    { model: one.model, prompt_tokens: one.prompt, cached_tokens: one.cached, completion_tokens: one.completion })));
  const spent = priced(facts.answers);
  const rows = facts.answers.map((one) => {
    const button = el("button", { type: "button", className: "link", "data-key": `answer ${one.n}` }, questionName(one.question));
    button.addEventListener("click", () => reveal(one.n));
    const price = priced([one]);
    return el("li", {}, button, el("span", { className: "facts" }, [one.failed ? t("no answer") : `${one.model} (${one.role})`, t("{count} tokens", { count: tokens(one.prompt + one.completion) }), price].filter(Boolean).join(" · ")));
  });
  return el("section", { className: "plan-answers" }, el("h3", {}, `${plural(facts.answers.length, "Models asked: 1 time", "Models asked: {count} times")}${spent ? `, ${spent}` : ""}`), el("ul", { "aria-label": t("What models answered about the plan") }, ...rows));
}

/**
 * @param {string} label
 * @param {string} key by which it is found again after the plan is redrawn
 * @param {() => unknown} act
 * @param {string} className
 * @param {string} [name] for screen readers
 */
function action(label, key, act, className = "", name = label) {
  const button = el("button", { type: "button", className, "data-key": key, "aria-label": name }, label);
  button.addEventListener("click", () => act());
  return button;
}

/**
 * @param {Version[]} versions
 * @param {number} index
 * @param {(index: number) => void} go
 * @param {(n: number) => void} reveal
 */
function stepper(versions, index, go, reveal) {
  const back = el("button", { type: "button", disabled: index === 0 }, t("Earlier"));
  const on = el("button", { type: "button", disabled: index === versions.length - 1 }, t("Later"));
  back.addEventListener("click", () => go(index - 1));
  on.addEventListener("click", () => go(index + 1));
  const { version, reason, n } = versions[index];
  const name = el("button", { type: "button", className: "link", title: t("Show its journal entry") }, t("Version {version}", { version }));
  name.addEventListener("click", () => reveal(n));
  const words = versions.length > 1 ? ` ${t("of {last}", { last: versions[versions.length - 1].version })}` : "";
  return el("div", {}, el("div", { className: "steps" }, back, el("span", {}, name, words), on),
    el("p", { className: "facts plan-reason" }, heard(reason)));
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
 * @returns {Element}
 */
function drawing(version, states, reveal) {
  const { at, layers, routes } = layered(version.steps);
  const broad = (/** @type {string} */ id) => (version.steps.has(id) ? WIDTH : SLIM);
  const rows = layers.map((layer) => layer.reduce((sum, id) => sum + broad(id) + BESIDE, BESIDE));
  const width = Math.max(WIDTH + 2 * BESIDE, ...rows);
  const height = layers.length * (HEIGHT + BETWEEN) - BETWEEN + 2 * BESIDE;
  const where = (/** @type {string} */ id) => {
    const { layer, place } = at.get(id) ?? { layer: 0, place: 0 };
    const before = (layers[layer] ?? []).slice(0, place).reduce((sum, one) => sum + broad(one) + BESIDE, BESIDE);
    return { x: (width - (rows[layer] ?? width)) / 2 + before, y: BESIDE + layer * (HEIGHT + BETWEEN), width: broad(id) };
  };
  const picture = shape("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": t("The plan's {steps} steps in {layers} layers; the list below says the same.", { steps: version.steps.size, layers: layers.length }) });
  for (const step of version.steps.values()) {
    const to = where(step.id);
    for (const need of step.needs) {
      const passed = routes.get(routeOf(need, step.id)) ?? [];
      if (at.has(need)) picture.append(edge([where(need), ...passed.map(where), to], states.get(need)?.state ?? "", step.any));
    }
  }
  for (const step of version.steps.values()) {
    const { x, y } = where(step.id);
    const state = states.get(step.id);
    const group = shape("g", { class: `step ${state?.state ?? "pending"} ${step.kind}`, "data-step": step.id, transform: `translate(${x} ${y})` });
    const words = shape("title", {});
    words.textContent = visible([step.id, readable(state?.state ?? "pending"), whatOf(step), heard(state?.detail ?? "")].filter(Boolean).join("\n"));
    group.append(words, shape("rect", { width: WIDTH, height: HEIGHT, rx: step.kind === "agent" ? 19 : 6 }), label(step.id, 16, "id"),
      label(whatOf(step) || kindName(step.kind), 30, "what"));
    if (state) group.addEventListener("click", () => reveal(state.n));
    picture.append(group);
  }
  return picture;
}

/**
 * A line from a step to a step that needs it. It bends only between layers, and is straight at its places within them.
 * @param {{x: number, y: number, width: number}[]} places
 * @param {string} state of the step where it begins
 * @param {boolean} any
 */
function edge(places, state, any) {
  const [first, ...rest] = places.map(({ x, y, width }) => ({ x: x + width / 2, y }));
  const parts = [`M${first.x} ${first.y + HEIGHT}`];
  let at = first;
  rest.forEach((next, index) => {
    const from = at.y + HEIGHT;
    const bend = Math.max(16, (next.y - from) / 2);
    parts.push(`C${at.x} ${from + bend} ${next.x} ${next.y - bend} ${next.x} ${next.y}`);
    if (index < rest.length - 1) parts.push(`V${next.y + HEIGHT}`);
    at = next;
  });
  return shape("path", { class: `edge ${state}${any ? " any" : ""}`, d: parts.join("") });
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

/** What a step does: words of ours if it is a thought about the plan. @param {Step} step */
function whatOf(step) {
  return isWork(step.kind) ? step.what : heard(step.what);
}

/** @param {string} state */
function readable(state) {
  return t(state.replaceAll("_", " "));
}
