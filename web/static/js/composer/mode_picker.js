// The way of working for the next message: in a dialogue, or as the goal of a plan. Under `auto`, the page asks what would be
// chosen after a moment without typing, and shows it before the message is sent.

import { el, part, setText } from "../base/dom.js";
import { heard, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {Pick<import("../state/types.d.ts").Fields<"say">, "mode"|"plan_first">} Way */

/** The modes in the order in which they are offered: value, name, description. @type {[string, string, string][]} */
const WAYS = [
  ["dialogue", t("Dialogue"), t("The root agent works step by step and sees each result before it continues")],
  ["auto", t("Auto"), t("Chosen depending on what the message asks for")],
  ["profile", t("Profile"), t("A plan with its risks and alternatives, written beforehand in two or three model calls")],
  ["static", t("Static"), t("The steps run as planned; no model judges the results on the way")],
  ["reflect", t("Reflect"), t("A model judges the results after each wave of steps and decides how to continue")],
  ["nreflect", t("N-reflect"), t("A model judges the results after every few steps, while other steps run")],
  ["orchestrator", t("Orchestrator"), t("A model reads each result and may add or cancel steps")],
  ["analyze", t("Analyze"), t("A model judges the result at the end and plans again until the goal is reached")],
];

/** Milliseconds without a key after which a message counts as written. */
const STILL = 700;
/** How many characters of a message decide how it is worked on. */
const DECIDING = 20_000;

export class ModePicker {
  #place = part("ways");
  #choice = /** @type {HTMLSelectElement} */ (part("way"));
  #first = /** @type {HTMLInputElement} */ (part("plan-first"));
  #foreseen = part("foreseen");
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;
  #text = "";

  /**
   * @param {Store} store
   * @param {(text: string) => Promise<import("../state/wire.d.ts").Foreseen>} foresee
   */
  constructor(store, foresee) {
    this.store = store;
    this.foresee = foresee;
    this.#choice.replaceChildren(...WAYS.map(([value, name, title]) => el("option", { value, title }, name)));
    this.#choice.addEventListener("change", () => this.#show());
    for (const what of ["tree", "session", "moved", "selected"]) store.addEventListener(what, () => this.#show());
    this.#show();
  }

  /** Whether a message can begin a plan now, which it can if it is for the root and the root is idle. @param {boolean} spoken */
  offer(spoken) {
    this.#place.hidden = !spoken || this.store.past;
    this.#show();
  }

  /** The way of working for the next message. @returns {Way} */
  get way() {
    const chosen = /** @type {NonNullable<Way["mode"]>} */ (this.#choice.value);
    const mode = this.#busy || this.#place.hidden ? "dialogue" : chosen;
    return { mode, ...(mode !== "dialogue" && this.#first.checked ? { plan_first: true } : {}) };
  }

  /** The message field has a new text. @param {string} text */
  written(text) {
    this.#text = text.trim();
    clearTimeout(this.#timer);
    setText(this.#foreseen, this.#about());
    if (this.way.mode === "auto" && this.#text) this.#timer = setTimeout(() => void this.#ask(), STILL);
  }

  get #busy() {
    const root = this.store.nodes.find((node) => node.path === "/");
    return !!root && ["thinking", "acting", "waiting", "paused"].includes(root.state);
  }

  #show() {
    this.#choice.disabled = this.#busy;
    this.#choice.title = this.#busy ? t("The root agent is working, so your message goes to its current task") : (WAYS.find(([value]) => value === this.#choice.value)?.[2] ?? "");
    const label = this.#first.closest("label");
    if (label) label.hidden = this.way.mode === "dialogue";
    this.written(this.#text);
  }

  /** Show what is known about the choice without asking the server. */
  #about() {
    const mode = this.way.mode;
    if (mode === "dialogue" || this.#place.hidden) return "";
    return mode === "auto" ? (this.#text ? "…" : t("Chosen for each message, depending on what it asks for")) : (WAYS.find(([value]) => value === mode)?.[2] ?? "");
  }

  async #ask() {
    const text = this.#text;
    try {
      const found = await this.foresee(text.slice(0, DECIDING));
      if (text === this.#text && this.way.mode === "auto") setText(this.#foreseen, t("Auto would choose {mode}. {why}", { mode: found.mode, why: heard(found.why) }));
    } catch (error) {
      if (text === this.#text) setText(this.#foreseen, error instanceof Error ? error.message : String(error));
    }
  }
}
