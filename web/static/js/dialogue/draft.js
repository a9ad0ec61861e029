// Text while a model writes it: prose and fenced blocks, as plain text. The record that follows
// replaces it with the HTML that the server rendered.

import { el, setText } from "../base/dom.js";
import { t } from "../base/language.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n]*)$/;

/**
 * Split unfinished Markdown at its top-level fences.
 * @param {string} text
 * @returns {{info: string|null, text: string}[]} `info` is null for prose
 */
export function segments(text) {
  /** @type {{info: string|null, lines: string[]}[]} */
  const found = [{ info: null, lines: [] }];
  let mark = "";
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line);
    const current = found[found.length - 1];
    if (!mark && fence) {
      mark = fence[1];
      found.push({ info: fence[2], lines: [] });
    } else if (mark && fence && !fence[2].trim() && fence[1].startsWith(mark)) {
      mark = "";
      found.push({ info: null, lines: [] });
    } else {
      current.lines.push(line);
    }
  }
  return found
    .map(({ info, lines }) => ({ info, text: lines.join("\n").replace(/^\n+|\n+$/g, "") }))
    .filter((segment) => segment.info !== null || segment.text);
}

/**
 * Show `text` in `parent`, touching only what changed since the last call.
 * @param {Element} parent
 * @param {string} text
 */
export function showDraft(parent, text) {
  const wanted = segments(text);
  wanted.forEach((segment, index) => {
    const tag = segment.info === null ? "draft-text" : "draft-code";
    let element = parent.children[index];
    if (!element || element.className !== tag) {
      const fresh = segment.info === null ? el("div", { className: tag }) : codeBlock();
      if (element) element.replaceWith(fresh);
      else parent.append(fresh);
      element = fresh;
    }
    if (segment.info === null) {
      setText(element, segment.text);
    } else {
      setText(element.children[0], segment.info || "code");
      setText(element.children[1], segment.text);
    }
  });
  while (parent.children.length > wanted.length) parent.lastElementChild?.remove();
}

function codeBlock() {
  return el("div", { className: "draft-code" }, el("header"), el("pre"));
}

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
