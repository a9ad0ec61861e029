// Text while a model writes it. The server formats it: finished blocks once, the open one again and again. What has
// arrived since then is text at its end. A fenced block is text until it is finished.

import { el, insert, setText, visible } from "../base/dom.js";
import { t } from "../base/language.js";

/** `closed` counts characters, as the server does; a string's own length counts some of them twice. */
/** @typedef {{closed: number, html: string, open: string}} Formatted */
/** @typedef {(agent: string, text: string) => Promise<Formatted>} Format */

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n]*)/;
/** The most characters that are formatted before they are finished. */
const LONGEST = 16_000;
/** The fewest milliseconds between two requests about one text, … */
const PAUSE = 120;
/** … how many times as long as the last request took there is none, … */
const RESTS = 3;
/** … and milliseconds after a request that failed. */
const LONG_PAUSE = 5000;
/** Errors that pass: the next request may be answered. @type {ReadonlySet<string>} */
const PASSING = new Set(["offline", "late", "rate"]);

/** Shows one draft in `parent`. */
export class Draft {
  #text = "";
  /** How many characters are shown as finished. */ #done = 0;
  /** How many more the open block shows. */ #open = 0;
  /** What shows the rest: nodes at the end of `parent`. @type {ChildNode[]} */ #rest = [];
  /** The end of the text, which is not formatted yet. */ #tail = document.createTextNode("");
  #asking = false;
  /** Whether nothing more is formatted: it takes the server too long, is refused, or doesn't fit into a request. */ #plain = false;

  /**
   * @param {Element} parent
   * @param {string} agent
   * @param {Format} format
   */
  constructor(parent, agent, format) {
    this.parent = parent;
    this.agent = agent;
    this.format = format;
  }

  /** @param {string} text */
  show(text) {
    if (!text.startsWith(this.#text)) this.#restart();
    this.#text = text;
    this.#showRest();
    this.#ask();
  }

  #restart() {
    this.parent.replaceChildren();
    this.#rest = [];
    this.#done = this.#open = 0;
    this.#plain = false;
  }

  #showRest() {
    this.#finishLongCode();
    const left = this.#text.slice(this.#done);
    const fence = openFence(left);
    const code = this.#rest[0] instanceof Element && this.#rest[0].className === "draft-code" ? this.#rest[0] : null;
    if (fence !== null) {
      showCode(code ?? this.#replace(codeBlock()), fence);
      return;
    }
    if (!this.#open && (code || !this.#rest.length)) this.#replace(el("div", { className: "draft-text" }, this.#tail));
    // Only spaces would be a line of their own.
    const tail = visible(left.slice(this.#open));
    this.#tail.data = tail.trim() ? tail : "";
  }

  /** Code that is too long for a request stays as it is shown once it ends, and what is behind it is formatted. */
  #finishLongCode() {
    for (;;) {
      const fence = leadingFence(this.#text.slice(this.#done));
      if (fence === null || fence.end === null || fence.end <= LONGEST) return;
      showCode(this.#replace(codeBlock()), fence);
      this.#rest = [];
      this.#done += fence.end;
      this.#open = 0;
    }
  }

  /** Show the rest as one element. @param {HTMLElement} element */
  #replace(element) {
    for (const node of this.#rest) node.remove();
    this.#rest = [element];
    this.parent.append(element);
    return element;
  }

  async #ask() {
    const text = pieceOf(this.#text, this.#done);
    const more = this.#text.length - this.#done - this.#open > 0;
    if (this.#asking || this.#plain || !more || !text.trim() || openFence(text) !== null) return;
    this.#asking = true;
    const [whole, done] = [this.#text, this.#done];
    const began = performance.now();
    let pause = PAUSE;
    try {
      const made = await this.format(this.agent, text);
      // The text may have begun again meanwhile.
      if (this.parent.isConnected && this.#text.startsWith(whole) && this.#done === done) this.#took(text, made);
      pause = Math.max(PAUSE, RESTS * (performance.now() - began));
    } catch (error) {
      const { code } = /** @type {import("../state/connection.js").RequestError} */ (error);
      // If it stays plain, the record brings its HTML.
      this.#plain = !PASSING.has(code);
      pause = LONG_PAUSE;
    }
    // Many requests a second would only cost; a reader sees no difference.
    setTimeout(() => {
      this.#asking = false;
      if (this.parent.isConnected) this.#ask();
    }, pause);
  }

  /** @param {string} text what was asked about @param {Formatted} made */
  #took(text, { closed, html, open }) {
    this.#plain = !closed && (!open || text.length >= LONGEST - 1);
    if (this.#plain) return;
    const finished = lengthOf(text, closed);
    this.#tail.remove();
    for (const node of this.#rest) node.remove();
    insert(this.parent, html);
    this.#done += finished;
    const before = this.parent.childNodes.length;
    this.#open = 0;
    if (open && openFence(text.slice(finished)) === null) {
      insert(this.parent, open);
      this.#open = text.length - finished;
    }
    this.#rest = [...this.parent.childNodes].slice(before);
    if (this.#open) lastBlock(this.parent).append(this.#tail);
    this.#showRest();
  }
}

/** The next part of a text that is formatted at once. @param {string} text @param {number} from */
function pieceOf(text, from) {
  const end = from + LONGEST;
  // Half a character can't be sent.
  const isWithinACharacter = (text.codePointAt(end - 1) ?? 0) > 0xffff;
  return text.slice(from, isWithinACharacter ? end - 1 : end);
}

/** The length, as of a string, of a text's first characters. @param {string} text @param {number} characters */
function lengthOf(text, characters) {
  let length = 0;
  for (let left = characters; left > 0; left--) length += (text.codePointAt(length) ?? 0) > 0xffff ? 2 : 1;
  return length;
}

/** @typedef {{info: string, text: string, end: number|null}} Fence `end`: where the text goes on behind it; null if it has no end yet */

/**
 * The fenced block that a text begins with, if that has no end yet.
 * @param {string} text
 */
function openFence(text) {
  const fence = leadingFence(text);
  return fence !== null && fence.end === null ? fence : null;
}

/**
 * The fenced block that a text begins with.
 * @param {string} text
 * @returns {Fence|null}
 */
function leadingFence(text) {
  const begin = text.replace(/^\s*\n/, "");
  const fence = FENCE.exec(begin);
  if (!fence) return null;
  const [line, mark, info] = fence;
  if (mark[0] === "`" && info.includes("`")) return null;

  const body = begin.slice(line.length + 1);
  let at = 0;
  for (const one of body.split("\n").slice(0, -1)) {
    const other = FENCE.exec(one);
    const after = at + one.length + 1;
    if (other !== null && !other[2].trim() && other[1].startsWith(mark)) {
      return { info, text: body.slice(0, at).replace(/\n+$/, ""), end: text.length - body.length + after };
    }
    at = after;
  }
  return { info, text: body.replace(/\n+$/, ""), end: null };
}

function codeBlock() {
  return el("div", { className: "draft-code" }, el("header"), el("pre"));
}

/** @param {Element} block @param {Fence} fence */
function showCode(block, fence) {
  setText(block.children[0], fence.info || "code");
  setText(block.children[1], fence.text);
}

/** Where text goes on: the last paragraph, item or cell. @param {Element} parent */
function lastBlock(parent) {
  let found = parent;
  for (let next = parent.lastElementChild; next && !INLINE.has(next.tagName); next = next.lastElementChild) found = next;
  return found;
}

const INLINE = new Set(["A", "B", "BR", "BUTTON", "CODE", "DEL", "EM", "IMG", "INPUT", "MATH", "S", "SPAN", "STRONG"]);

/**
 * Show the model's reasoning above its text, folded until the user opens it.
 * @param {Element} entry
 * @param {string} text
 */
export function showThought(entry, text) {
  let thought = entry.querySelector(".thinking");
  if (!text) {
    thought?.remove();
    return;
  }
  if (!thought) {
    thought = el("details", { className: "quiet thinking" }, el("summary", {}, t("Thinking")), el("div", { className: "output" }, el("pre")));
    entry.querySelector(".entry-body")?.before(thought);
  }
  const shown = /** @type {Element} */ (thought.querySelector("pre"));
  setText(shown, text);
}
