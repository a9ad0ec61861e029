// Calls that wait for a person's approval. Questions are shown in one bar above everything else, whichever
// agent, tab or time is shown, until they are answered here or by another user. Everything outside a
// modal dialog is inert while it is open, so the bar moves into the topmost one.

import { el, insert, onceAFrame, part, setText, styled } from "../base/dom.js";
import { agentName } from "../base/format.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {null|"call"|{function: string}} Remember what is to be remembered of a yes */

/** Milliseconds for which a new question can't be answered, because a click may be meant for what was there before. */
const REST = 400;
/** The approximate height of a line of a call, in pixels. */
const LINE = 19;

/** @type {[string, string][]} */
const CHOICES = [["once", t("just once")], ["call", t("for exactly this call")], ["function", t("for every call of this function")]];
/** The largest number of questions that are shown as one. */
const MOST = 20;
/** Choices for a host that a module wants to reach. @type {[string, string][]} */
const HOST_CHOICES = [["once", t("just once")], ["session", t("in this session")], ["always", t("always")]];

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
  #split = part("approvals-split");
  #news = part("approvals-news");
  /** The element that follows the bar when no dialog is open. */ #home = this.#bar.nextElementSibling;
  /** The open dialogs, topmost last. @type {HTMLDialogElement[]} */ #dialogs = [];
  /** The records of the questions that are shown as one; empty if none is. @type {number[]} */ #shown = [];
  /** Whether calls that wait for the same reason are asked about one by one. */ #apart = false;
  #filled = false;
  /** The digests of the questions, as they stand in the bar. @type {string[]} */ #digests = [];
  #styled = false;
  /** The question of a module, once its script is loaded. @type {import("./form_question.js").FormQuestion|undefined} */ #form;

  /**
   * @param {Store} store
   * @param {(calls: number[], digests: string[], allow: boolean, remember: Remember, why: string, lasts?: "once"|"session"|"always") => Promise<unknown>} clear
   * @param {(path: string) => void} choose shows an agent
   * @param {(ask: number, digest: string, accept: boolean, values: import("./form_question.js").Values) => Promise<unknown>} answer
   * @param {(ask: number) => Promise<import("../state/wire.d.ts").Question>} open fetches a question with its long values
   */
  constructor(store, clear, choose, answer, open) {
    this.answer = answer;
    this.open = open;
    this.store = store;
    this.clear = clear;
    const update = onceAFrame(() => (this.#styled || !store.asked.size ? this.#update() : void styled("approvals").then(() => {
      this.#styled = true;
      this.#update();
    })));
    for (const what of ["records", "rendered", "session", "reset"]) store.addEventListener(what, update);
    this.#allow.addEventListener("click", (event) => this.#answer(true, event));
    this.#deny.addEventListener("click", (event) => this.#answer(false, event));
    this.#next.addEventListener("click", () => this.#step());
    this.#split.addEventListener("click", () => {
      this.#apart = !this.#apart;
      this.#show(this.#one(this.#shown[0]));
      this.#update();
    });
    this.#why.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      void this.#answer(false, event);
    });
    this.#call.addEventListener("click", (event) => void this.#openValue(event));
    this.#call.addEventListener("scroll", () => this.#tellMore(), { passive: true });
    new ResizeObserver(() => this.#tellMore()).observe(this.#call);
    setInterval(() => this.#tellLeft(), 1000);
    this.#path.addEventListener("click", () => {
      for (const dialog of [...this.#dialogs]) dialog.close();
      choose(this.store.asked.get(this.#shown[0])?.agent ?? "/");
    });
    const opened = new MutationObserver(() => this.#place());
    // Also for dialogs that are created later.
    opened.observe(document.body, { subtree: true, attributeFilter: ["open"] });
    // Dialogs start below the bar.
    new ResizeObserver(() => document.documentElement.style.setProperty("--asked", `${this.#bar.offsetHeight}px`)).observe(this.#bar);
    update();
  }

  /** Move the bar and the live regions into the topmost dialog, because everything behind a dialog is inert. */
  #place() {
    const open = [...document.querySelectorAll("dialog")].filter((dialog) => dialog.open);
    this.#dialogs = [...this.#dialogs.filter((dialog) => dialog.open), ...open.filter((dialog) => !this.#dialogs.includes(dialog))];
    const over = this.#dialogs[this.#dialogs.length - 1] ?? null;
    if (this.#bar.closest("dialog") === over) return;
    if (over) over.prepend(this.#bar);
    else this.#home?.before(this.#bar);
    (over ?? document.body).append(part("live"));
  }

  /** Focus the buttons, if there is a question. */
  focus() {
    if (!this.#bar.hidden) this.#deny.focus();
  }

  #update() {
    const { asked } = this.store;
    this.#bar.hidden = !asked.size || this.store.session.readonly;
    document.body.classList.toggle("asked", !this.#bar.hidden);
    if (this.#bar.hidden) {
      this.#shown = [];
      this.#apart = false;
      return;
    }
    const still = this.#shown.find((n) => asked.has(n));
    const now = this.#one(still ?? [...asked.keys()][0]);
    if (String(now) !== String(this.#shown)) this.#show(now);
    else if (!this.#filled) this.#fill();
    const all = this.#all();
    const place = all.findIndex((one) => one[0] === this.#shown[0]) + 1;
    setText(this.#count, all.length > 1 ? t("{place} of {length}", { place, length: all.length }) : "");
    this.#next.hidden = all.length < 2;
  }

  #step() {
    const all = this.#all();
    this.#show(all[(all.findIndex((one) => one[0] === this.#shown[0]) + 1) % all.length]);
    this.#update();
  }

  /** The questions, oldest first; each is the list of the records that are shown as one. @returns {number[][]} */
  #all() {
    /** @type {Map<string, number[]>} */ const found = new Map();
    for (const [n, record] of this.store.asked) {
      let key = this.#apart ? String(n) : origin(record);
      while ((found.get(key)?.length ?? 0) >= MOST) key += " ";
      found.set(key, [...(found.get(key) ?? []), n]);
    }
    return [...found.values()];
  }

  /** The records that are shown as one with a question. @param {number} n */
  #one(n) {
    return this.#all().find((one) => one.includes(n)) ?? [];
  }

  /** @param {number[]} numbers */
  #show(numbers) {
    const record = this.store.asked.get(numbers[0]);
    if (!record) return;
    const { length } = this.#shown = numbers;
    this.#form?.leave();
    this.#form = undefined;
    this.#keep.replaceChildren(...(record.kind === "host" ? HOST_CHOICES : CHOICES).map(([value, words]) => el("option", { value }, words)));
    this.#keep.value = "once";
    setText(this.#news, "");
    this.#why.value = "";
    const about = { agent: chain(record.agent), function: record.function ?? "", module: record.module ?? "", host: record.host ?? "", length };
    const said = { ...about, agent: agentName(record.agent) };
    setText(this.#who, this.#words(record, about));
    setText(this.#allow, length > 1 ? t("Approve all {length}", { length }) : t("Approve"));
    setText(this.#deny, length > 1 ? t("Deny all {length}", { length }) : t("Deny"));
    this.#split.hidden = length < 2 && !this.#apart;
    setText(this.#split, this.#apart ? t("Together") : t("One by one"));
    this.#tellLeft();
    this.#fill();
    this.#arm(false);
    setTimeout(() => this.#shown === numbers && this.#arm(true), REST);
    setText(part("live"), `${this.#words(record, said)}${record.kind === "host" || length > 1 ? "" : "."}`);
  }

  /**
   * @param {JournalRecord} record
   * @param {{agent: string, function: string, module: string, host: string, length: number}} about
   */
  #words(record, about) {
    if (record.kind === "form" && record.skill) return t("{agent} offers a skill that it wrote", about);
    if (record.kind === "form" && record.function === "PERSON") return t("{agent} goes on when you have answered", about);
    if (record.kind === "form" && record.tool) return t("{agent} calls a tool of your front end", about);
    if (record.kind === "form") return t("{agent}: {function} asks you something", about);
    if (record.kind === "host") return t("Allow {module} to reach {host}? Asked by {agent}", about);
    return about.length > 1 ? t("{agent} asks {length} times to run {function}", about) : t("{agent} asks to run {function}", about);
  }

  #fill() {
    const records = this.#shown.map((n) => this.store.asked.get(n));
    // Check all of them, not just up to the first that is missing, so that each is requested.
    this.#filled = records.map((record) => this.store.rendered(record)).every(Boolean);
    this.#digests = records.map((record) => record?.digest ?? "");
    this.#call.replaceChildren();
    if (this.#filled) {
      for (const record of records) {
        const call = el("div", { class: "approvals-one", "data-n": String(record?.n) });
        insert(call, record?.html ?? "");
        this.#call.append(call);
        if (record?.kind === "form") void this.#ask(record, call);
      }
    }
    this.#tellMore();
  }

  /**
   * @param {JournalRecord} record
   * @param {Element} below
   */
  async #ask(record, below) {
    const { FormQuestion } = await import("./form_question.js");
    if (!below.isConnected) return;
    this.#form = new FormQuestion(record, below);
    this.#tellMore();
  }

  /** Show a long value in full, in place of its button. @param {Event} event */
  async #openValue(event) {
    const button = event.target instanceof Element ? event.target.closest(".open-value") : null;
    const n = Number(/** @type {HTMLElement|null|undefined} */ (button?.closest(".approvals-one"))?.dataset.n);
    if (!(button instanceof HTMLElement) || !n) return;
    try {
      const value = (await this.open(n)).values.find(({ sha256 }) => sha256 === button.dataset.sha256);
      button.replaceWith(value ? el("pre", { className: "raw whole", tabIndex: 0, dir: "auto" }, value.text) : el("span", {}, t("It can't be shown here.")));
      this.#tellMore();
    } catch (error) {
      setText(this.#news, error instanceof Error ? error.message : String(error));
    }
  }

  /** Show how much of the call is out of sight. */
  #tellMore() {
    const { scrollHeight, scrollTop, clientHeight } = this.#call;
    const below = Math.round((scrollHeight - scrollTop - clientHeight) / LINE);
    this.#more.hidden = below < 1;
    setText(this.#more, plural(below, "One more line below: scroll to read it", "{count} more lines below: scroll to read them"));
  }

  /** Show how much time is left to answer. */
  #tellLeft() {
    const record = this.store.asked.get(this.#shown[0]);
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
    const shown = this.#shown;
    const record = this.store.asked.get(shown[0]);
    // Only a real click or key of the user counts, and only if the call is fully in sight.
    if (!record || !event.isTrusted || !this.#filled || (record.kind === "form" && !this.#form)) return;
    this.#arm(false);
    try {
      if (this.#form) return void (await this.answer(record.n, record.digest ?? "", allow, allow ? this.#form.values() : {}));
      const [why, host] = [allow ? "" : this.#why.value.trim(), record.kind === "host"];
      await this.clear(shown, this.#digests, allow, allow && !host ? this.#remember(record) : null, why, host && allow ? /** @type {"once"|"session"|"always"} */ (this.#keep.value) : undefined);
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

/**
 * The key by which several questions are one: the same function, for the same reason, from one origin.
 * @param {JournalRecord} record
 */
function origin(record) {
  if (record.kind !== "clearance") return String(record.n);
  const labels = new Set([...(record.read ?? []), ...Object.values(record.provenance ?? {}).flat()]);
  return JSON.stringify([record.function, record.rule, record.impact, record.user, [...labels].sort()]);
}

/** The path of agents through which a question came. @param {string} path */
function chain(path) {
  const names = path.split("/").filter(Boolean);
  return [t("Root agent"), ...names].join(" › ");
}
