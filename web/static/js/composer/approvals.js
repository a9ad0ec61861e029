// What agents wait for a person's leave to do. Questions stand in one bar above everything else, whichever
// agent, tab or time is looked at, until they are answered here or by somebody else. All that is outside of a
// modal dialog is inert while it is open, so the bar goes into the uppermost one.

import { el, insert, onceAFrame, part, setText } from "../base/dom.js";
import { agentName } from "../base/format.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {null|"call"|{function: string}} Remember what is to be remembered of a yes */

/** Milliseconds for which a question that just came can't be answered: a click was meant for what stood there. */
const REST = 400;
/** Pixels of a line of a call, about. */
const LINE = 19;

/** @type {[string, string][]} */
const CHOICES = [["once", t("every time")], ["call", t("not for exactly this call")], ["function", t("not for any call of this function")]];
/** Of a host that a module wants to reach. @type {[string, string][]} */
const HOST_CHOICES = [["once", t("every time")], ["session", t("not in this session")], ["always", t("never")]];

export class Approvals {
  #bar = part("approvals");
  #count = part("approvals-count");
  #who = part("approvals-who");
  #path = part("approvals-path");
  #call = part("approvals-call");
  #allow = /** @type {HTMLButtonElement} */ (part("approve"));
  #deny = /** @type {HTMLButtonElement} */ (part("deny"));
  #keep = /** @type {HTMLSelectElement} */ (part("approvals-keep"));
  #why = /** @type {HTMLInputElement} */ (part("approvals-why"));
  #left = part("approvals-left");
  #more = part("approvals-more");
  #next = part("approvals-next");
  #news = part("approvals-news");
  /** What follows the bar where it stands without a dialog. */ #home = this.#bar.nextElementSibling;
  /** The dialogs that are open, the uppermost last. @type {HTMLDialogElement[]} */ #dialogs = [];
  /** The record of the question that is shown; 0: none. */ #shown = 0;
  #filled = false;

  /**
   * @param {Store} store
   * @param {(call: number, allow: boolean, remember: Remember, why: string, lasts?: "once"|"session"|"always") => Promise<unknown>} clear
   * @param {(path: string) => void} choose shows an agent
   */
  constructor(store, clear, choose) {
    this.store = store;
    this.clear = clear;
    const update = onceAFrame(() => this.#update());
    for (const what of ["records", "rendered", "session", "reset"]) store.addEventListener(what, update);
    this.#allow.addEventListener("click", (event) => this.#answer(true, event));
    this.#deny.addEventListener("click", (event) => this.#answer(false, event));
    this.#next.addEventListener("click", () => this.#step());
    this.#why.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      void this.#answer(false, event);
    });
    this.#call.addEventListener("scroll", () => this.#tellMore(), { passive: true });
    new ResizeObserver(() => this.#tellMore()).observe(this.#call);
    setInterval(() => this.#tellLeft(), 1000);
    this.#path.addEventListener("click", () => {
      for (const dialog of [...this.#dialogs]) dialog.close();
      choose(this.#path.textContent || "/");
    });
    const opened = new MutationObserver(() => this.#place());
    for (const dialog of document.querySelectorAll("dialog")) opened.observe(dialog, { attributeFilter: ["open"] });
    // Dialogs begin below the bar.
    new ResizeObserver(() => document.documentElement.style.setProperty("--asked", `${this.#bar.offsetHeight}px`)).observe(this.#bar);
    update();
  }

  /** Move the bar to where it can be reached. */
  #place() {
    const open = [...document.querySelectorAll("dialog")].filter((dialog) => dialog.open);
    this.#dialogs = [...this.#dialogs.filter((dialog) => dialog.open), ...open.filter((dialog) => !this.#dialogs.includes(dialog))];
    const over = this.#dialogs[this.#dialogs.length - 1] ?? null;
    if (this.#bar.closest("dialog") === over) return;
    if (over) over.prepend(this.#bar);
    else this.#home?.before(this.#bar);
  }

  /** Go to the buttons, if something is asked. */
  focus() {
    if (!this.#bar.hidden) this.#deny.focus();
  }

  #update() {
    const { asked } = this.store;
    const open = [...asked.keys()];
    this.#bar.hidden = !open.length || this.store.session.readonly;
    document.body.classList.toggle("asked", !this.#bar.hidden);
    if (this.#bar.hidden) {
      this.#shown = 0;
      return;
    }
    if (!asked.has(this.#shown)) this.#show(open[0]);
    else if (!this.#filled) this.#fill();
    const place = open.indexOf(this.#shown) + 1;
    setText(this.#count, open.length > 1 ? t("{place} of {length}", { place, length: open.length }) : "");
    this.#next.hidden = open.length < 2;
  }

  #step() {
    const open = [...this.store.asked.keys()];
    this.#show(open[(open.indexOf(this.#shown) + 1) % open.length]);
    this.#update();
  }

  /** @param {number} n */
  #show(n) {
    const record = this.store.asked.get(n);
    if (!record) return;
    this.#shown = n;
    this.#keep.replaceChildren(...(record.kind === "host" ? HOST_CHOICES : CHOICES).map(([value, words]) => el("option", { value }, words)));
    this.#keep.value = "once";
    setText(this.#news, "");
    this.#why.value = "";
    const about = { agent: chain(record.agent), function: record.function ?? "", module: record.module ?? "", host: record.host ?? "" };
    setText(this.#who, record.kind === "host" ? t("{agent}: the module {module} wants to reach {host}", about) : t("{agent} asks to run {function}", about));
    this.#tellLeft();
    setText(this.#path, record.agent);
    this.#fill();
    this.#arm(false);
    setTimeout(() => this.#shown === n && this.#arm(true), REST);
    const said = { ...about, agent: agentName(record.agent) };
    setText(part("live"), record.kind === "host" ? t("{agent}: the module {module} wants to reach {host}", said) : t("{agent} asks to run {function}.", said));
  }

  #fill() {
    const record = this.store.asked.get(this.#shown);
    this.#filled = this.store.rendered(record);
    this.#call.replaceChildren();
    if (record && this.#filled) insert(this.#call, record.html ?? "");
    this.#tellMore();
  }

  /** Say how much of the call is out of sight. */
  #tellMore() {
    const { scrollHeight, scrollTop, clientHeight } = this.#call;
    const below = Math.round((scrollHeight - scrollTop - clientHeight) / LINE);
    this.#more.hidden = below < 1;
    setText(this.#more, plural(below, "One more line below: scroll to read it", "{count} more lines below: scroll to read them"));
  }

  /** Say how long there is to answer. */
  #tellLeft() {
    const record = this.store.asked.get(this.#shown);
    const left = record?.seconds ? Math.ceil(Date.parse(record.at) / 1000 + record.seconds - Date.now() / 1000) : 0;
    this.#left.hidden = left <= 0;
    const time = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    setText(this.#left, left > 0 ? t("{time} left, then it is denied", { time }) : "");
  }

  /** @param {boolean} armed */
  #arm(armed) {
    this.#allow.disabled = this.#deny.disabled = !armed;
  }

  /**
   * @param {boolean} allow
   * @param {Event} event
   */
  async #answer(allow, event) {
    const record = this.store.asked.get(this.#shown);
    // Only a person's own click or key, and only on what is in sight in full.
    if (!record || !event.isTrusted || !this.#filled) return;
    this.#arm(false);
    try {
      const [why, host] = [allow ? "" : this.#why.value.trim(), record.kind === "host"];
      await this.clear(record.n, allow, allow && !host ? this.#remember(record) : null, why, host && allow ? /** @type {"once"|"session"|"always"} */ (this.#keep.value) : undefined);
    } catch (error) {
      setText(this.#news, error instanceof Error ? error.message : String(error));
    } finally {
      this.#arm(true);
    }
  }

  /**
   * @param {JournalRecord} record
   * @returns {Remember}
   */
  #remember(record) {
    if (this.#keep.value === "function") return { function: record.function ?? "" };
    return this.#keep.value === "call" ? "call" : null;
  }
}

/** By which way a question came up from below. @param {string} path */
function chain(path) {
  const names = path.split("/").filter(Boolean);
  return [t("Root agent"), ...names].join(" › ");
}
