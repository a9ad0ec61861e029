// The bar for replaying a session: a slider over record numbers, step buttons, and play. Fetched when the user first
// looks back.

import { el, icon, onceAFrame, part, setText } from "../base/dom.js";
import { agentName, timeOfDay } from "../base/format.js";
import { heard, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

const SPEEDS = [1, 4, 16, 64];
/** The longest and shortest wait between two records while playing, in milliseconds. */
const LONGEST = 1500;
const SHORTEST = 30;
const MARKS = 150;
/** What happened, in words, by the kind of its record. @type {Record<string, string>} */
const KINDS = {
  open: t("session opened"), say: t("you wrote"), turn: t("model wrote"), reply: t("answered"), call: t("call began"), result: t("call ended"),
  gate: t("permission checked"), clearance: t("permission asked"), form: t("module asked you"), spawn: t("agent began"), select: t("replies read"), control: t("you acted"),
  discard: t("writing stopped"), recall: t("memory searched"), draw: t("tokens set aside"), compress: t("history shortened"), distill: t("memory distilled"), upload: t("file uploaded"),
  module: t("module found"), notice: t("notice"), close: t("closed"), fork: t("branched"), adopt: t("adopted"), effects: t("files checked"), settle: t("changes applied or discarded"),
  plan: t("plan written"), extend: t("plan grew"), node: t("step changed state"), fire: t("step began"), ask: t("model asked about the plan"), wake: t("plan continued"),
};

export class Replay {
  #bar = part("replay");
  #slider = /** @type {HTMLInputElement} */ (part("replay-slider"));
  #number = /** @type {HTMLInputElement} */ (part("replay-number"));
  #total = part("replay-total");
  #what = part("replay-what");
  #marks = part("replay-marks");
  #play = part("replay-play");
  #speed = /** @type {HTMLSelectElement} */ (part("replay-speed"));
  #close = part("replay-close");
  #foreign = part("replay-foreign");
  #opener = part("replay-open");
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;
  #asking = false;
  #asked = 0;
  #marked = "";
  /** Whether an example should be played whose first message has not arrived yet. */ #telling = false;

  /**
   * @param {Store} store
   * @param {(at: number|null) => Promise<unknown>} seek asks for the tree at a record
   * @param {() => void} fork leads to the field where a fork begins
   * @param {() => void} leave goes from a stored session to the live one
   */
  constructor(store, seek, fork, leave) {
    this.store = store;
    this.seek = seek;
    const update = onceAFrame(() => this.#update());
    for (const what of ["records", "session", "moved", "reset"]) store.addEventListener(what, update);
    store.addEventListener("reset", () => this.#stop());
    store.addEventListener("session", () => this.#settle());
    store.addEventListener("records", () => this.#telling && this.#tell());
    store.addEventListener("moved", () => this.#ask());
    for (const speed of SPEEDS) this.#speed.append(el("option", { value: String(speed), selected: speed === 4 }, `${speed}×`));
    part("replay-first").append(icon("first"));
    part("replay-back").append(icon("back"));
    part("replay-next").append(icon("next"));
    part("replay-last").append(icon("last"));
    part("replay-first").addEventListener("click", () => this.#go(1));
    part("replay-back").addEventListener("click", () => this.#go(store.shown - 1));
    part("replay-next").addEventListener("click", () => this.#go(store.shown + 1));
    part("replay-last").addEventListener("click", () => this.#go(store.last));
    this.#play.addEventListener("click", () => this.toggle());
    this.#slider.addEventListener("input", () => this.#go(Number(this.#slider.value)));
    this.#number.addEventListener("change", () => this.#go(Number(this.#number.value) || store.shown));
    this.#bar.addEventListener("keydown", (event) => this.#key(event));
    part("replay-fork").addEventListener("click", fork);
    this.#close.addEventListener("click", () => (store.session.readonly ? leave() : this.#leave()));
    this.#settle();
    this.#ask();
    update();
  }

  /** Begin to look back, or go back to now. */
  flip() {
    if (this.store.at === null) this.open();
    else this.#leave();
  }

  /** Begin to look back, at the newest record. */
  open() {
    if (!this.store.last) return;
    this.store.move(this.store.last);
    // At once, because a user of the keyboard must not lose the focus a frame later.
    this.#update();
    this.#slider.focus();
  }

  toggle() {
    if (this.#timer !== undefined) this.#stop();
    else {
      if (this.store.shown >= this.store.last) this.store.move(1);
      this.#tick();
    }
    this.#update();
  }

  #leave() {
    this.#stop();
    this.store.move(null);
  }

  /** A stored session is always shown as a replay, once its records have arrived. */
  #settle() {
    const { session, at } = this.store;
    if (!session.readonly || at !== null || !session.last) return;
    // A recorded example is played from its beginning: from the user's first message.
    this.#telling = session.example === true;
    this.store.move(session.example ? 1 : session.last);
    if (this.#telling) this.#tell();
  }

  #tell() {
    const { store } = this;
    const said = this.#telling && store.at === 1 && store.whole ? store.records.find((record) => record.kind === "say") : undefined;
    if (said || store.at !== 1) this.#telling = false;
    if (said) store.move(said.n);
  }

  /** Go to a record because the user asked for it. @param {number} at */
  #go(at) {
    this.#stop();
    this.#move(at);
  }

  /** @param {number} at */
  #move(at) {
    this.store.move(Math.max(1, Math.min(this.store.last || 1, Math.round(at))));
  }

  /** Ask for the tree at the current record; one request at a time, and the last one counts. */
  async #ask() {
    if (this.#asking) return;
    this.#asking = true;
    try {
      while (this.store.at !== null && this.store.at !== this.#asked) {
        this.#asked = this.store.at;
        await this.seek(this.#asked);
      }
    } catch {
      // The sender reports the error; the next move asks again.
    } finally {
      this.#asked = 0;
      this.#asking = false;
    }
  }

  #tick() {
    const { store } = this;
    const at = store.record(store.shown);
    const next = store.record(store.shown + 1);
    if (!at || !next) {
      this.#stop();
      return;
    }
    const apart = (Date.parse(next.at) - Date.parse(at.at)) / Number(this.#speed.value);
    this.#timer = setTimeout(() => {
      this.#move(store.shown + 1);
      this.#tick();
    }, Math.max(SHORTEST, Math.min(LONGEST, apart || 0)));
  }

  #stop() {
    clearTimeout(this.#timer);
    if (this.#timer === undefined) return;
    this.#timer = undefined;
    this.#update();
  }

  #update() {
    const { store } = this;
    const { last, session } = store;
    this.#opener.setAttribute("aria-pressed", String(store.at !== null));
    this.#bar.hidden = store.at === null;
    if (store.at === null) {
      part("composer").hidden = false;
      return;
    }
    const at = store.at;
    const record = store.record(at);
    this.#slider.max = this.#number.max = String(Math.max(1, last));
    if (this.#slider.value !== String(at)) this.#slider.value = String(at);
    if (document.activeElement !== this.#number) this.#number.value = String(at);
    const loading = last < session.last || !store.whole;
    setText(this.#total, loading ? t("of {last}, {loaded} loaded", { last: String(Math.max(last, session.last)), loaded: String(store.records.length) }) : t("of {last}", { last: String(last) }));
    const words = record ? [agentName(record.agent), KINDS[record.kind] ?? record.kind, record.function ?? record.op ?? "", timeOfDay(record.at)].filter(Boolean).join(" · ") : "";
    setText(this.#what, words);
    this.#slider.setAttribute("aria-valuetext", t("Entry {at} of {last}: {words}", { at: String(at), last: String(last), words }));
    const playing = this.#timer !== undefined;
    if (this.#play.dataset.shape !== String(playing)) {
      this.#play.dataset.shape = String(playing);
      this.#play.replaceChildren(icon(playing ? "pause" : "resume"), el("span", { className: "sr" }, playing ? t("Stop playing") : t("Play")));
    }
    const foreign = session.foreign ?? "";
    this.#foreign.hidden = part("replay-badge").hidden = !foreign;
    setText(this.#foreign, foreign && `${heard(`${foreign[0].toUpperCase()}${foreign.slice(1)}`)}. ${t("You can view and export this session. Adopt makes your own copy, with its files, under your rules. Calls that were running or waiting in it are not carried out.")}`);
    part("replay-fork").hidden = part("composer").hidden = Boolean(foreign);
    this.#close.classList.toggle("primary", Boolean(foreign) && !session.example);
    setText(this.#close, session.example ? t("Close") : foreign ? t("Adopt") : session.readonly ? t("Open it") : t("Back to live"));
    this.#mark(last);
  }

  /** Mark the user's messages on the slider. @param {number} last */
  #mark(last) {
    const key = `${this.store.session.id} ${this.store.first} ${last}`;
    if (key === this.#marked) return;
    this.#marked = key;
    const said = this.store.records.filter((record) => record.kind === "say");
    const step = Math.ceil(said.length / MARKS) || 1;
    this.#marks.replaceChildren(...said.filter((_, index) => index % step === 0).map((record) => {
      const mark = el("span");
      mark.style.left = `${(100 * (record.n - 1)) / Math.max(1, last - 1)}%`;
      return mark;
    }));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target === this.#number) return;
    const onButton = event.target instanceof HTMLButtonElement;
    /** @type {Record<string, () => void>} */
    const keys = {
      Escape: () => this.store.session.readonly || this.#leave(),
      ...(onButton ? {} : { " ": () => this.toggle() }),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
