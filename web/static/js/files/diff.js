// A unified diff as hunks with line numbers. It shows characters of untrusted files, so everything is inserted as text.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";

/** The number of lines that are put into the page; the rest is only counted. */
const MOST = 4000;

/** @typedef {{sign: string, old: number|null, now: number|null, text: string}} Line */
/** @typedef {{head: string, lines: Line[]}} Hunk */

/**
 * @param {string} text
 * @returns {{about: string[], hunks: Hunk[]}} `about`: the lines about the file before its first hunk
 */
export function parse(text) {
  /** @type {string[]} */ const about = [];
  /** @type {Hunk[]} */ const hunks = [];
  let old = 0;
  let now = 0;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (head) {
      [old, now] = [Number(head[1]), Number(head[2])];
      hunks.push({ head: line, lines: [] });
    } else if (hunks.length === 0) {
      if (line && !line.startsWith("--- ") && !line.startsWith("+++ ")) about.push(line);
    } else {
      const sign = "+- ".includes(line[0] ?? " ") ? (line[0] ?? " ") : "";
      hunks[hunks.length - 1].lines.push({
        sign, old: sign === "-" || sign === " " ? old : null, now: sign === "+" || sign === " " ? now : null,
        text: sign ? line.slice(1) : line,
      });
      if (sign === "-" || sign === " ") old += 1;
      if (sign === "+" || sign === " ") now += 1;
    }
  }
  return { about, hunks };
}

/**
 * @param {string} text a unified diff
 * @returns {HTMLElement[]}
 */
export function drawn(text) {
  const { about, hunks } = parse(text);
  /** @type {HTMLElement[]} */
  const parts = about.length ? [el("ul", { className: "diff-about" }, ...about.map((line) => el("li", {}, line)))] : [];
  let left = MOST;
  for (const hunk of hunks) {
    if (left <= 0) break;
    const shown = hunk.lines.slice(0, left);
    left -= shown.length;
    parts.push(el("table", { className: "diff-hunk" }, el("caption", {}, hunk.head),
      el("thead", { className: "sr" }, el("tr", {}, ...[t("Old line number"), t("New line number"), t("Change"), t("Text")].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...shown.map(row))));
  }
  const all = hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  if (all > MOST) parts.push(el("p", { className: "facts" }, t("{count} more lines are not shown here; see them with: iact workspace diff", { count: all - MOST })));
  return parts;
}

/** @param {Line} line */
function row(line) {
  const look = line.sign === "+" ? "added" : line.sign === "-" ? "removed" : "";
  return el("tr", { className: look }, el("td", { className: "number" }, line.old === null ? "" : String(line.old)),
    el("td", { className: "number" }, line.now === null ? "" : String(line.now)),
    el("td", { className: "sign" }, line.sign === "-" ? "−" : line.sign.trim()), el("td", { className: "text" }, line.text));
}
