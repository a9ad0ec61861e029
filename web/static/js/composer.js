// The message field. Its addressee is the selected agent: the root is spoken to, any other is
// intervened in, in one of three ways. In the past, what is said there goes into a fork. What was typed
// stays until the server has it on disk.

import { el, part, setText } from "./dom.js";
import { t } from "./language.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./types.js").Mode} Mode */

/** @type {Record<Mode, [string, string]>} */
const MODES = {
  say: [t("Say"), t("A message to the root agent, answered in its turn")],
  deliver: [t("Deliver"), t("As soon as possible, between two tool calls")],
  queue: [t("Queue"), t("At the agent's next turn")],
  interrupt: [t("Interrupt"), t("Stop what is being written now, and go on with this")],
  fork: [t("Fork"), t("A new session that begins with all up to here and goes on with this")],
};

/** Whether the text is typed on a screen. */
const GLASS = matchMedia("(hover: none) and (pointer: coarse)");

export class Composer {
  #form = part("composer");
  #text = /** @type {HTMLTextAreaElement} */ (part("text"));
  #send = /** @type {HTMLButtonElement} */ (part("send"));
  #modes = part("modes");
  #label = part("composer-label");
  #news = part("news");
  /** @type {Mode} */ #mode = "say";
  #busy = false;
  /** What the field was last addressed to. */ #addressee = "";

  /**
   * @param {Store} store
   * @param {(path: string, text: string, mode: Mode) => Promise<unknown>} send
   * @param {import("./ways.js").Ways} ways
   */
  constructor(store, send, ways) {
    this.store = store;
    this.ways = ways;
    this.send = send;
    store.addEventListener("selected", () => this.#address());
    store.addEventListener("moved", () => this.#address());
    store.addEventListener("session", () => this.#address());
    store.addEventListener("notice", () => this.say(store.notice));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#text.addEventListener("input", () => {
      this.#fit();
      ways.written(this.#text.value);
    });
    this.#text.addEventListener("keydown", (event) => {
      // A keyboard of glass has no Shift to begin a line with: there, the button sends.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !GLASS.matches) {
        event.preventDefault();
        this.#submit();
      }
    });
    this.#address();
    this.#fit();
  }

  focus() {
    this.#text.focus();
  }

  /** What stands in the field. */
  get text() {
    return this.#text.value;
  }

  /** @param {string} text */
  put(text) {
    this.#text.value = text;
    this.#fit();
    this.ways.written(text);
    this.focus();
  }

  /**
   * One line above the field.
   * @param {string} text
   * @param {boolean} [bad]
   */
  say(text, bad = false) {
    setText(this.#news, text);
    this.#news.classList.toggle("bad", bad);
  }

  /** Whom the field speaks to: an agent, or the session as it was. */
  #address() {
    const { selected, past, shown, session } = this.store;
    const key = past ? "past" : `${selected} ${session.id === null}`;
    const label = past ? t("Go on from record {shown} in a fork", { shown: String(shown) }) : selected === "/" ? t("Message to the root agent") : t("Intervene in {selected}", { selected });
    setText(this.#label, label);
    this.#text.placeholder = past ? t("Say something at record {shown}, in a fork", { shown: String(shown) }) : selected === "/" ? t("Write a message") : t("Tell {selected} something; only it will read this", { selected });
    if (key === this.#addressee) return;
    this.#addressee = key;
    const all = /** @type {Mode[]} */ (["say", "deliver", "queue", "interrupt"]);
    const offered = past ? /** @type {Mode[]} */ (["fork"]) : selected === "/" ? all : all.slice(1);
    this.#mode = offered[0];
    this.ways.offer(this.#mode === "say");
    const legend = this.#modes.firstElementChild;
    this.#modes.replaceChildren(...(legend ? [legend] : []), ...offered.map((mode) => this.#choice(mode)));
    // Before there is a session, there is nothing to interrupt.
    this.#modes.hidden = past || session.id === null;
    setText(this.#send, past ? t("Fork") : t("Send"));
    this.#form.classList.toggle("forking", past);
    this.say("");
  }

  /** @param {Mode} mode */
  #choice(mode) {
    const input = el("input", { type: "radio", name: "mode", value: mode, checked: mode === this.#mode });
    input.addEventListener("change", () => {
      this.#mode = mode;
      this.ways.offer(mode === "say");
    });
    return el("label", { title: MODES[mode][1] }, input, el("span", {}, MODES[mode][0]));
  }

  #fit() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`;
    this.#send.disabled = this.#busy || !this.#text.value.trim();
  }

  async #submit() {
    const text = this.#text.value;
    if (this.#busy || !text.trim()) return;
    this.#busy = true;
    this.#fit();
    try {
      await this.send(this.store.selected, text, this.#mode);
      if (this.#text.value === text) this.#text.value = "";
      this.ways.written(this.#text.value);
      this.say("");
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error), true);
    } finally {
      this.#busy = false;
      this.#fit();
    }
  }
}
