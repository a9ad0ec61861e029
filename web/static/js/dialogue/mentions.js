// Files of the workspace in the text of agents: a path that was a file when the text was written opens it, and what is embedded
// is shown where it stands (`embeds.js`). The server is asked which words are files, for all texts at once.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** @typedef {{at: number, shown: number|null, files: Record<string, string>}} Found */

/** Characters that end a sentence or close a bracket, but not a name. */
const AROUND = /^[(\["'“‘«]+|[)\]"'”’»,;:!?]+$|\.$/g;
const PATH = /^(?!\w+:\/\/)[^\s<>|*?"]{0,400}(?:\.\w{1,12}|\/[^\s/]+)$/;
const MOST = 60;

export class Mentions {
  /** Texts whose words must be looked up. @type {Map<Element, number>} */ #waiting = new Map();

  /**
   * @param {Ask} ask
   * @param {import("./embeds.js").FetchEmbeds} embeds
   * @param {(path: string, options: {at: number|null}) => void} open
   */
  constructor(ask, embeds, open) {
    this.ask = ask;
    this.embeds = embeds;
    this.open = open;
  }

  /**
   * @param {Element} body the rendered text
   * @param {number} n the record that contains the text
   */
  mark(body, n) {
    if (!this.#waiting.size) queueMicrotask(() => this.#look());
    this.#waiting.set(body, n);
  }

  async #look() {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    /** @type {Map<number, Set<string>>} */ const wanted = new Map();
    for (const [body, n] of waiting) {
      const words = wordsOf(body);
      const before = wanted.get(n) ?? new Set();
      for (const word of words) if (before.size < MOST) before.add(word);
      if (before.size) wanted.set(n, before);
    }
    const texts = [...wanted].map(([at, words]) => ({ at, words: [...words] }));
    for (let from = 0; from < texts.length; from += 100) {
      let list = /** @type {Found[]} */ ([]);
      try {
        ({ list } = await this.ask("files.find", { texts: texts.slice(from, from + 100) }));
      } catch {
        return; // nothing is known about the files, so the words stay plain
      }
      for (const found of list) for (const [body, n] of waiting) if (n === found.at && body.isConnected) this.#put(body, found);
    }
  }

  /**
   * @param {Element} body
   * @param {Found} found
   */
  #put(body, { files, shown }) {
    for (const embed of body.querySelectorAll(".embed")) {
      const path = files[addressOf(embed)];
      if (path) void this.embeds().then((embeds) => embeds.file(embed, path, shown, this.#button(path, shown, path)));
    }
    for (const link of body.querySelectorAll(".dead-link")) {
      const path = files[addressOf(link)];
      if (!path) continue;
      link.querySelector(".address")?.remove();
      link.replaceWith(this.#button(path, shown, (link.textContent ?? path).trim()));
    }
    for (const code of body.querySelectorAll("code")) {
      const path = code.closest("pre, button, a, .output") ? undefined : files[code.textContent ?? ""];
      if (path) code.replaceWith(this.#button(path, shown, code.textContent ?? path, true));
    }
    for (const node of textsOf(body)) {
      const parts = (node.nodeValue ?? "").split(/(\s+)/);
      if (!parts.some((part) => files[bare(part)])) continue;
      node.replaceWith(...parts.flatMap((part) => {
        const word = bare(part);
        if (!word || !files[word]) return [part];
        const at = part.indexOf(word);
        return [part.slice(0, at), this.#button(files[word], shown, word), part.slice(at + word.length)].filter(Boolean);
      }));
    }
  }

  /**
   * @param {string} path
   * @param {number|null} at
   * @param {string} label
   * @param {boolean} [code]
   */
  #button(path, at, label, code = false) {
    const button = el("button", { type: "button", className: `file-link${code ? " in-code" : ""}`, title: t("Show the file {path}", { path }) }, label);
    button.addEventListener("click", () => this.open(path, { at }));
    return button;
  }
}

/** The words of a text that may be files. @param {Element} body */
function wordsOf(body) {
  const found = new Set();
  for (const tag of body.querySelectorAll(".embed, .dead-link")) found.add(addressOf(tag));
  for (const code of body.querySelectorAll("code")) if (!code.closest("pre, button, a, .output")) found.add(code.textContent ?? "");
  for (const node of textsOf(body)) for (const word of (node.nodeValue ?? "").split(/\s+/)) found.add(bare(word));
  return [...found].filter((word) => word.length <= 400 && (PATH.test(word) || /^[\w.-]{2,80}$/.test(word) && codeHas(body, word)));
}

/** Whether a word may be a file. A name without an extension counts only if it is written as code. @param {Element} body @param {string} word */
function codeHas(body, word) {
  return [...body.querySelectorAll("code")].some((code) => code.textContent === word);
}

/** @param {Element} tag */
function addressOf(tag) {
  const address = tag.querySelector(".address")?.textContent ?? "";
  try {
    return decodeURI(address);
  } catch {
    return address;
  }
}

/** @param {string} word */
function bare(word) {
  return word.replace(AROUND, "");
}

/** The text nodes of a body that are prose. @param {Element} body */
function textsOf(body) {
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement?.closest("pre, code, button, a, .output, .embed, .dead-link, summary, header") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  /** @type {Text[]} */ const found = [];
  while (walker.nextNode()) found.push(/** @type {Text} */ (walker.currentNode));
  return found;
}
