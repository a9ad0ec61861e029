// The message field. Its addressee is the selected agent: the root gets messages, any other agent gets
// an intervention, in one of three ways. When looking back, a message begins a fork. Typed text
// is kept until the server has it on disk.

import { cancellable } from "../agents/controls.js";
import { addressee, draftOf, keepDraft } from "./saved_drafts.js";
import { el, onceAFrame, part, setText, visible } from "../base/dom.js";
import { timed } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").Mode} Mode */

/** @type {Record<Mode, [string, string]>} */
const MODES = {
  say: [t("Message"), t("Answered after the current answer is finished")],
  deliver: [t("At the next step"), t("As soon as possible; running tools finish first")],
  queue: [t("After this reply"), t("With the results of this turn")],
  interrupt: [t("Interrupt"), t("Stops its reply and its running tools at once; results so far are kept")],
  fork: [t("Branch"), t("Starts a new session with everything up to here, and continues it with this message. Calls that were running or waiting here are not carried out.")],
  run: [t("Branch and let it run"), t("The same, but calls that were running or waiting here are carried out")],
};

/** Whether the user types on a touch screen. */
const GLASS = matchMedia("(hover: none) and (pointer: coarse)");
/** Milliseconds within which Escape counts as pressed twice. */
const TWICE = 800;
/** Milliseconds within which a message is sent again by itself. */
const AGAIN = 120_000;

export class Composer {
  #form = part("composer");
  #text = /** @type {HTMLTextAreaElement} */ (part("text"));
  #send = /** @type {HTMLButtonElement} */ (part("send"));
  #modes = part("modes");
  #label = part("composer-label");
  #news = part("news");
  #stop = /** @type {HTMLButtonElement} */ (part("stop"));
  #ends = part("ends-calls");
  #endsCalls = /** @type {HTMLInputElement} */ (part("ends-calls-box"));
  /** When Escape was pressed last. */ #escaped = -Infinity;
  /** @type {Mode} */ #mode = "say";
  /** The mode for a message to an idle agent. @type {Mode} */ #first = "say";
  #busy = false;
  /** What the field was last addressed to. */ #addressee = "";
  /** The addressee of the text that it contains. */ #whose = "";
  /** Whether calls were running or waiting where a fork would begin. */ #forksOpen = false;
  /** The last message of which it is unknown whether the server has it: sent again, it has the same name there.
   * @type {{text: string, whose: string, mode: Mode, once: string, at: number}|null} */
  #unsure = null;

  /**
   * @param {Store} store
   * @param {(path: string, text: string, mode: Mode, calls: boolean, once: string) => Promise<unknown>} send `calls`: whether running tools end, too; `once`: its name
   * @param {import("./mode_picker.js").ModePicker} ways
   * @param {(node: import("../state/types.d.ts").TreeNode) => void} stop
   */
  constructor(store, send, ways, stop) {
    this.store = store;
    this.#stop.addEventListener("click", () => this.#halt(stop));
    addEventListener("keydown", (event) => this.#key(event, stop));
    const update = onceAFrame(() => this.#offer());
    for (const what of ["tree", "selected", "moved", "session", "tick"]) store.addEventListener(what, update);
    this.ways = ways;
    this.send = send;
    store.addEventListener("selected", () => this.#address());
    store.addEventListener("moved", () => this.#address());
    store.addEventListener("tree", () => store.past && this.#address());
    store.addEventListener("session", () => this.#address());
    // What a call waits for, such as the start of its module, is over with its result.
    let told = 0;
    store.addEventListener("notice", () => {
      told = store.ended;
      this.say(store.notice);
    });
    store.addEventListener("records", () => {
      if (store.ended > told && this.#news.textContent === visible(store.notice)) this.say("");
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#text.addEventListener("input", () => {
      this.#fit();
      this.#keep();
    });
    this.#text.addEventListener("keydown", (event) => {
      // An on-screen keyboard has no Shift to begin a new line with, so only the button sends.
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

  /** The text in the field. */
  get text() {
    return this.#text.value;
  }

  /** @param {string} text */
  put(text) {
    this.#text.value = text;
    this.#keep();
    this.#fit();
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

  /** The addressee of the field: an agent, or the session as it was. */
  #address() {
    const { selected, past, shown, session } = this.store;
    this.#swap();
    const open = this.#forksOpen = past && this.store.nodes.some(cancellable);
    const key = past ? `past ${open}` : `${selected} ${session.id === null}`;
    const label = past ? t("Branch from here (entry {shown})", { shown: String(shown) }) : selected === "/" ? t("Message to the root agent") : t("Message {selected}", { selected });
    setText(this.#label, label);
    this.#text.placeholder = past ? t("Branch from here") : selected === "/" ? t("Write a message") : t("Message for {selected}; no other agent reads it", { selected });
    if (key === this.#addressee) return;
    this.#addressee = key;
    const all = /** @type {Mode[]} */ (["say", "deliver", "queue", "interrupt"]);
    const offered = past ? /** @type {Mode[]} */ (open ? ["fork", "run"] : ["fork"]) : selected === "/" ? all : all.slice(1);
    this.#mode = this.#first = offered[0];
    this.ways.offer(this.#mode === "say");
    const legend = this.#modes.firstElementChild;
    this.#modes.replaceChildren(...(legend ? [legend] : []), ...offered.map((mode) => this.#choice(mode)));
    setText(this.#send, past ? t("Branch") : t("Send"));
    this.#form.classList.toggle("forking", past);
    this.say("");
  }

  /** @param {Mode} mode */
  #choice(mode) {
    const input = el("input", { type: "radio", name: "mode", value: mode, checked: mode === this.#mode });
    input.addEventListener("change", () => {
      this.#mode = mode;
      this.ways.offer(mode === "say");
      this.#offer();
    });
    return el("label", { title: MODES[mode][1] }, input, el("span", {}, MODES[mode][0]));
  }

  #keep() {
    keepDraft(this.#whose, this.#text.value);
  }

  /** Typed text belongs to the agent it was typed for. It never goes to the agent that is selected next. */
  #swap() {
    const whose = addressee(this.store);
    if (whose === this.#whose) return;
    // The first message creates its session. Text typed in the meantime is for that session.
    const same = this.#busy && this.#whose === " /";
    if (same) keepDraft(this.#whose, "");
    else this.#text.value = draftOf(whose);
    this.#whose = whose;
    if (same) this.#keep();
    this.#fit();
  }

  #fit() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`;
    this.#send.disabled = this.#busy || !this.#text.value.trim();
    this.#offer();
  }

  /** While an agent works, it can be stopped. With nothing typed, the button does nothing else. */
  #offer() {
    const node = this.store.past ? undefined : this.store.node(this.store.selected);
    const works = node !== undefined && this.store.session.id !== null && cancellable(node);
    const calls = works && this.#mode === "interrupt" ? (node.calls ?? []).map((n) => this.store.record(n)).filter((one) => one !== undefined) : [];
    // An idle agent needs no choice of modes. Without running or waiting calls, there is only one kind of fork.
    this.#modes.hidden = !works && !this.#forksOpen;
    this.#stop.hidden = !works;
    this.#send.hidden = works && !this.#text.value.trim();
    this.#ends.hidden = !calls.length;
    setText(part("ends-calls-text"), t("also stop {calls}", { calls: timed(calls, this.store.now()) }));
  }

  /** @param {(node: import("../state/types.d.ts").TreeNode) => void} stop */
  #halt(stop) {
    const node = this.store.node(this.store.selected);
    if (node && !this.#stop.hidden) stop(node);
    this.#text.focus();
  }

  /** Escape twice stops. @param {KeyboardEvent} event @param {(node: import("../state/types.d.ts").TreeNode) => void} stop */
  #key(event, stop) {
    // Escape first closes what lies over the page and leaves other fields.
    const elsewhere = event.target !== this.#text && (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement);
    if (event.key !== "Escape" || elsewhere || document.querySelector("dialog[open], .pane.open")) return;
    const twice = event.timeStamp - this.#escaped < TWICE;
    this.#escaped = twice ? -Infinity : event.timeStamp;
    if (twice) this.#halt(stop);
  }

  async #submit() {
    const text = this.#text.value;
    const whose = this.#whose;
    if (this.#busy || !text.trim()) return;
    this.#busy = true;
    this.#fit();
    const now = { text, whose, mode: this.#modes.hidden ? this.#first : this.#mode, once: `${Date.now()}.${Math.random()}`, at: Date.now() };
    const sent = this.#isUnsure() && this.#unsure || now;
    this.#unsure = null;
    try {
      await this.send(this.store.selected, text, sent.mode, Boolean(this.#ends.hidden) || this.#endsCalls.checked, sent.once);
      if (draftOf(whose) === text) keepDraft(whose, "");
      if (this.#text.value === text && (whose === this.#whose || whose === " /")) {
        this.#text.value = "";
        this.#keep();
      }
      this.say("");
    } catch (error) {
      const { code } = /** @type {{code?: string}} */ (error);
      if ((code === "offline" || code === "late") && sent.mode !== "fork" && sent.mode !== "run") this.#unsure = sent;
      this.say(error instanceof Error ? error.message : String(error), true);
    } finally {
      this.#busy = false;
      this.#fit();
    }
  }

  /** Whether the field contains the message of which it is unknown whether the server has it. */
  #isUnsure() {
    const { text, whose } = this.#unsure ?? { text: "", whose: "" };
    return text !== "" && text === this.#text.value && (whose === this.#whose || whose === " /");
  }

  /** The server answers again: send what it may not have. After a while, that is up to the person. */
  again() {
    if (this.#isUnsure() && Date.now() - (this.#unsure?.at ?? 0) < AGAIN) this.#submit();
  }
}
