// The cards of a dialogue: a call and its result are one card. A child that was called is a link with its state, time and
// tokens; long output is folded.

import { el, insert, setText } from "../base/dom.js";
import { agentName, tokens } from "../base/format.js";
import { heard, joined, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

/** The number of lines of an output that are shown before the user asks for all. */
const LINES = 20;

/**
 * The turn in whose card a record is shown; undefined if the record has its own entry.
 * @param {JournalRecord} record
 * @param {(n: number) => JournalRecord|undefined} find
 */
export function homeOf(record, find) {
  if (!OUTCOMES.has(record.kind) || !record.turn || (record.kind === "gate" && record.allow)) return undefined;
  const turn = find(record.turn);
  return turn?.kind === "turn" && turn.agent === record.agent ? turn : undefined;
}

const OUTCOMES = new Set(["result", "gate", "select"]);

export class Cards {
  /** The results of each turn's actions, by the turn's number. @type {Map<number, JournalRecord[]>} */ #came = new Map();
  /** Calls of agents and plans, by turn and action. @type {Map<string, JournalRecord>} */ #calls = new Map();
  /** How many of the store's records have been read. */ #seen = 0;
  /** @type {ReturnType<typeof setInterval>|undefined} */ #clock;

  /**
   * @param {Store} store
   * @param {Element} list the element that contains the entries
   * @param {(path: string) => void} choose shows an agent
   * @param {(outcome: Element, result: JournalRecord) => void} figures shows what a call made
   */
  constructor(store, list, choose, figures) {
    this.figures = figures;
    this.store = store;
    this.list = list;
    this.choose = choose;
    for (const what of ["reset", "earlier"]) store.addEventListener(what, () => {
      this.#came.clear();
      this.#calls.clear();
      this.#seen = 0;
    });
    list.addEventListener("click", (event) => this.#clicked(event));
  }

  /** Update all cards in the page to the shown state of the session. */
  refresh() {
    this.#collect();
    let running = false;
    for (const entry of this.list.querySelectorAll('.entry[data-kind="turn"]')) running = this.#dress(entry) || running;
    if (running && this.#clock === undefined) this.#clock = setInterval(() => document.hidden || this.refresh(), 1000);
    if (!running) {
      clearInterval(this.#clock);
      this.#clock = undefined;
    }
  }

  #collect() {
    const { records } = this.store;
    for (; this.#seen < records.length; this.#seen += 1) {
      const record = records[this.#seen];
      if (record.kind === "call" && record.to) this.#calls.set(`${record.turn} ${record.action}`, record);
      const turn = homeOf(record, (n) => this.store.record(n));
      if (!turn) continue;
      const before = this.#came.get(turn.n);
      if (before) before.push(record);
      else this.#came.set(turn.n, [record]);
    }
  }

  /**
   * @param {Element} entry of a turn
   * @returns {boolean} whether something that it called is working
   */
  #dress(entry) {
    const turn = Number(entry.getAttribute("data-n"));
    const cards = entry.querySelectorAll(":scope > .entry-body > .card");
    let running = false;
    cards.forEach((card, action) => {
      const call = this.#calls.get(`${turn} ${action}`);
      if (call && call.n <= this.store.shown) running = this.#link(card, call) || running;
      else card.querySelector(":scope > header > .to-agent")?.remove();
    });
    const body = entry.querySelector(":scope > .entry-body:not(.awaited)");
    const came = body ? (this.#came.get(turn) ?? []).filter((record) => record.n <= this.store.shown) : [];
    for (const shown of entry.querySelectorAll(".outcome")) {
      if (!came.some((record) => String(record.n) === shown.getAttribute("data-n"))) shown.remove();
    }
    for (const record of came) {
      // If the gate denied a call, there is nothing else to show.
      const denied = record.kind === "result" && record.status === "incomplete" && came.some((one) => one.kind === "gate" && one.action === record.action);
      if (denied || entry.querySelector(`.outcome[data-n="${record.n}"]`) || !this.store.rendered(record)) continue;
      const outcome = el("div", { className: `outcome ${record.kind}`, "data-n": record.n });
      outcome.dataset.agent = record.agent;
      if (record.kind === "select") outcome.append(this.#replies(record));
      else insert(outcome, record.html ?? "");
      fold(outcome);
      // A text that could not be formatted has no cards; its results are shown below it.
      (cards[record.action ?? -1] ?? body).append(outcome);
      if (record.kind === "result" && record.artifacts?.length) this.figures(outcome, record);
    }
    return running;
  }

  /** The agents whose replies were waited for. @param {JournalRecord} record */
  #replies({ took }) {
    const names = [...new Set((took ?? []).map((n) => this.store.record(n)?.agent ?? ""))].filter(Boolean);
    const words = names.length === 0 ? t("There was no reply.")
      : names.length === 1 ? t("The reply of {name} has arrived.", { name: nameOf(names[0]) })
        : t("The replies of {names} have arrived.", { names: joined(names.map(nameOf), "and") });
    return el("p", { className: "aside" }, words);
  }

  /**
   * Show in a card's head which agent it called, and how that agent is doing.
   * @param {Element} card
   * @param {JournalRecord} call
   */
  #link(card, call) {
    const path = call.to ?? "";
    const node = this.store.node(path);
    const head = card.querySelector(":scope > header");
    if (!head || !node) return !this.store.past;
    let link = head.querySelector(".to-agent");
    if (!link) {
      link = agentLink(path, el("span", { className: "arrow" }, `→ ${nameOf(path)}`), el("span", { className: "mark" }), el("span", { className: "fact" }));
      head.append(link);
    }
    const end = this.#end(call);
    const state = end ? (end.status === "ok" ? "done" : (end.status ?? "done")) : node.state;
    link.children[1].className = `mark ${state}`;
    const until = end ? Date.parse(end.at) : this.store.past ? Date.parse(this.store.record(this.store.shown)?.at ?? "") : Date.now();
    const words = [clock(until - Date.parse(call.at)), tokens(node.prompt_tokens + node.completion_tokens)].join(" · ");
    setText(link.children[2], words);
    link.setAttribute("aria-label", `${agentName(path)}, ${heard(state)}, ${words}`);
    return !end && !this.store.past;
  }

  /** The reply to a call, if it has arrived. @param {JournalRecord} call */
  #end(call) {
    const { store } = this;
    return store.own(call.to ?? "").find((record) => record.kind === "reply" && record.to === call.agent && record.n > call.n);
  }

  /** @param {Event} event */
  #clicked(event) {
    const target = event.target instanceof Element ? event.target : null;
    const link = target?.closest("a.to-agent");
    if (!link || !(event instanceof MouseEvent) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.choose(link.getAttribute("data-to") ?? "/");
  }
}

/**
 * A link that shows an agent. It can also be opened in another tab.
 * @param {string} path
 * @param {...(Node|string)} children
 */
export function agentLink(path, ...children) {
  const session = location.hash.slice(1).split("/")[0];
  return el("a", { className: "to-agent", href: `#${session}${path === "/" ? "" : encodeURI(path)}`, "data-to": path }, ...children);
}

/** Fold long output. @param {Element} body */
export function fold(body) {
  for (const pre of body.querySelectorAll(".output > pre:first-child")) {
    const lines = (pre.textContent ?? "").replace(/\n$/, "").split("\n").length;
    if (lines <= LINES || pre.parentElement?.querySelector(".fold")) continue;
    pre.classList.add("folded");
    const all = el("button", { type: "button", className: "link", "aria-expanded": "false" }, t("Show all {lines} lines", { lines }));
    all.addEventListener("click", () => {
      const folded = pre.classList.toggle("folded");
      all.setAttribute("aria-expanded", String(!folded));
      setText(all, folded ? t("Show all {lines} lines", { lines }) : t("Show the first {lines} lines", { lines: LINES }));
    });
    pre.after(el("p", { className: "fold" }, all));
  }
}

/** The last name of a path. @param {string} path */
function nameOf(path) {
  return path === "/" ? t("Root agent") : path.slice(path.lastIndexOf("/") + 1);
}

/** Hours, minutes and seconds. @param {number} ms */
function clock(ms) {
  const seconds = Math.max(0, Math.round((ms || 0) / 1000));
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60].map((one) => String(one).padStart(2, "0"));
  return seconds < 3600 ? parts.join(":").replace(/^0/, "") : [Math.floor(seconds / 3600), ...parts].join(":");
}
