// Search in the shown session. The server searches, because it has the whole session and the page draws only a part.
// Fetched when it is first opened.

import { el, part, setText } from "../base/dom.js";
import { heard, number, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {{n: number, agent: string, kind: string, before: string, match: string, after: string, count: number}} Place */

/** Milliseconds after the last key until a search begins. */
const PAUSE = 150;

export class Search {
  #bar = el("search", { className: "find", "aria-label": t("Search in this session"), "data-role": "find" });
  #text = el("input", { type: "search", autocomplete: "off", spellcheck: false,
    placeholder: t("Search in this session"), "aria-label": t("Text to find") });
  #whose = el("select", { "aria-label": t("Search in") }, ...[["", t("Everything")],
    ["user", t("My messages")], ["agents", t("Agents' messages")], ["tools", t("Tool output")]].map(([value, words]) => el("option", { value }, words)));
  #agent = el("select", { "aria-label": t("Agent to search") });
  #count = el("output", { className: "find-count" });
  #line = el("p", { className: "hit", "aria-live": "polite" });
  /** @type {Place[]} */ #places = [];
  #total = 0;
  #at = -1;
  #asked = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;

  /**
   * @param {Store} store
   * @param {import("../state/types.d.ts").Request} ask
   * @param {(agent: string, n: number) => Promise<Element|null>} reveal shows a record, and returns its entry
   */
  constructor(store, ask, reveal) {
    this.store = store;
    this.ask = ask;
    this.reveal = reveal;
    const button = (/** @type {string} */ words, /** @type {string} */ sign, /** @type {() => void} */ act) => {
      const made = el("button", { type: "button", title: words, "aria-label": words }, sign);
      made.addEventListener("click", act);
      return made;
    };
    this.#bar.append(el("div", { className: "find-line" }, this.#text, this.#count, button(t("Previous (Shift Enter)"), "↑", () => this.#go(-1)),
      button(t("Next (Enter)"), "↓", () => this.#go(1)), this.#whose, this.#agent, button(t("Close (Esc)"), "×", () => this.hide())), this.#line);
    part("scroll").before(this.#bar);
    this.#text.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#seek(), PAUSE);
    });
    for (const select of [this.#whose, this.#agent]) select.addEventListener("change", () => this.#seek());
    this.#bar.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.hide();
      else if (event.key === "Enter" && event.target === this.#text) this.#enter(event.shiftKey ? -1 : 1);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    store.addEventListener("session", () => { if (!this.#bar.hidden) this.#agents(); });
    store.addEventListener("reset", () => this.#forget());
  }

  /** Whether the search is open and its text field has the focus. */
  get focused() {
    return !this.#bar.hidden && document.activeElement === this.#text;
  }

  show() {
    this.#bar.hidden = false;
    this.#agents();
    const chosen = String(getSelection() ?? "").trim();
    if (chosen && !chosen.includes("\n")) this.#text.value = chosen.slice(0, 200);
    this.#text.focus();
    this.#text.select();
    if (this.#text.value) this.#seek();
  }

  hide() {
    this.#bar.hidden = true;
    mark(null, "");
    part("text").focus();
  }

  #agents() {
    const { value } = this.#agent;
    const paths = this.store.nodes.map((node) => node.path);
    this.#agent.replaceChildren(el("option", { value: "" }, t("All agents")),
      ...paths.map((path) => el("option", { value: path }, path === "/" ? t("Root agent") : path)));
    this.#agent.value = paths.includes(value) ? value : "";
    this.#agent.hidden = paths.length < 2;
  }

  #forget() {
    this.#places = [];
    this.#total = 0;
    this.#at = -1;
    this.#tell();
  }

  async #seek() {
    const text = this.#text.value;
    this.#asked += 1;
    const asked = this.#asked;
    this.#forget();
    if (!text) return;
    try {
      const { list, count } = await this.ask("find", { text, whose: /** @type {import("../state/types.d.ts").Fields<"find">["whose"]} */ (this.#whose.value), agent: this.#agent.value || null });
      if (asked !== this.#asked) return;
      this.#places = list;
      this.#total = count;
      this.#tell();
    } catch (error) {
      if (asked === this.#asked) setText(this.#line, error instanceof Error ? heard(error.message) : String(error));
    }
  }

  /** @param {1|-1} by */
  async #enter(by) {
    clearTimeout(this.#timer);
    if (!this.#places.length && this.#text.value) await this.#seek();
    this.#go(by);
  }

  /** Go to the next or previous match, wrapping around; at first, go to the newest. @param {1|-1} by */
  async #go(by) {
    if (!this.#places.length) return;
    const last = this.#places.length - 1;
    // The newest match is probably meant first.
    this.#at = this.#at < 0 ? last : (this.#at + by + last + 1) % (last + 1);
    const { agent, n, match } = this.#places[this.#at];
    this.#tell();
    mark(await this.reveal(agent, n), match);
    this.#text.focus({ preventScroll: true });
  }

  #tell() {
    const asked = this.#text.value !== "";
    const place = this.#places[this.#at];
    setText(this.#count, !asked ? "" : !this.#total ? t("No matches") : place ? t("{n} of {count}", { n: this.#at + 1, count: this.#total }) : t("{count} found", { count: number(this.#total) }));
    this.#line.replaceChildren(...(place ? [`${place.agent === "/" ? t("Root agent") : place.agent}: `, place.before, el("mark", {}, place.match), place.after] : []));
  }
}

/**
 * Highlight a text in an entry, if the browser can do that without changing the entry.
 * @param {Element|null} entry
 * @param {string} text
 */
function mark(entry, text) {
  const { highlights } = /** @type {any} */ (CSS);
  if (!highlights) return;
  highlights.delete("found");
  if (!entry || !text) return;
  const ranges = [];
  const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const held = (walker.currentNode.nodeValue ?? "").toLowerCase();
    for (let at = held.indexOf(text.toLowerCase()); at >= 0; at = held.indexOf(text.toLowerCase(), at + text.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, at + text.length);
      ranges.push(range);
    }
  }
  if (ranges.length) highlights.set("found", new (/** @type {any} */ (globalThis).Highlight)(...ranges));
}
