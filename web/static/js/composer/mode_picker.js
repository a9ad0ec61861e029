// The way of working for the next message: in a dialogue, or as the goal of a plan. Nothing of a message leaves the page
// before it is sent: what `auto` has chosen for it stands below it in the dialogue.

import { el, part, setText } from "../base/dom.js";
import { t } from "../base/language.js";
import { WAYS } from "../state/ways.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {Pick<import("../state/types.d.ts").Fields<"say">, "mode"|"plan_first">} Way */

export class ModePicker {
  #place = part("ways");
  #choice = /** @type {HTMLSelectElement} */ (part("way"));
  #first = /** @type {HTMLInputElement} */ (part("plan-first"));
  #about = part("mode-about");

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
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

  get #busy() {
    const root = this.store.nodes.find((node) => node.path === "/");
    return !!root && ["thinking", "acting", "waiting", "paused"].includes(root.state);
  }

  #show() {
    this.#choice.disabled = this.#busy;
    this.#choice.title = this.#busy ? t("The root agent is working, so your message goes to its current task") : (WAYS.find(([value]) => value === this.#choice.value)?.[2] ?? "");
    const label = this.#first.closest("label");
    if (label) label.hidden = this.way.mode === "dialogue";
    setText(this.#about, this.#words());
  }

  /** What the chosen way of working means. */
  #words() {
    const mode = this.way.mode;
    if (mode === "dialogue" || this.#place.hidden) return "";
    return mode === "auto" ? t("Chosen for each message, depending on what it asks for") : (WAYS.find(([value]) => value === mode)?.[2] ?? "");
  }
}
