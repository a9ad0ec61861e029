// What files and variables look like, besides their text: a page without scripts, a PDF, formatted Markdown, tables of any
// length, spreadsheets. Nothing of a file becomes part of this page: pages and PDFs are shown in frames of their own, and
// tables are text. Fetched with the first of them.

import { el, insert, setText } from "../base/dom.js";
import { number, plural, t } from "../base/language.js";

/**
 * Where content comes from. `view`: an address for a frame; `bytes`: all of it; `format`: the HTML of Markdown.
 * @typedef {object} Source
 * @property {string} name
 * @property {string} [media] its type, as far as it has one
 * @property {string} text
 * @property {() => Promise<{href: string}>} view
 * @property {() => Promise<ArrayBuffer>} bytes
 * @property {(text: string) => Promise<{closed: number, html: string, open: string}>} format
 */
/** @typedef {NonNullable<import("../state/wire.d.ts").FileContent["look"]>} Look */

/** Characters that are formatted at once. */
const PIECE = 16_000;
/** Rows that are drawn at once, columns, and characters of a cell. */
const PAGE = 200;
const COLUMNS = 200;
const CELL = 500;

/**
 * @param {Look} kind
 * @param {Source} source
 * @returns {Promise<HTMLElement[]>}
 */
export async function look(kind, source) {
  if (kind === "markdown") return [await formatted(source)];
  if (kind === "table") {
    const { rows } = await import("./csv.js");
    const text = new TextDecoder().decode(await source.bytes());
    const hasTabs = /\.tsv$/i.test(source.name) || /tab-separated/i.test(source.media ?? "");
    return [new Table(rows(text, hasTabs ? "\t" : ",")).element];
  }
  if (kind === "sheet") return sheets(await source.bytes());
  return [await framed(kind, source)];
}

/**
 * @param {"html"|"pdf"} kind
 * @param {Source} source
 */
async function framed(kind, source) {
  if (kind === "pdf" && !navigator.pdfViewerEnabled) return el("p", { className: "nothing" }, t("This browser shows no PDFs. Download it to view it."));
  const { href } = await source.view();
  const frame = el("iframe", { className: "look-frame", title: source.name });
  // The server says the same of it; a PDF is shown by the browser's own viewer, which a sandbox would switch off.
  if (kind === "html") frame.setAttribute("sandbox", "");
  frame.src = href;
  const about = kind === "html" ? t("Shown without scripts, and without anything from other addresses.") : "";
  return el("div", { className: "look" }, ...(about ? [el("p", { className: "facts" }, about)] : []), frame);
}

/** @param {Source} source */
async function formatted({ text, format }) {
  const body = el("div", { className: "look md" });
  for (let rest = text; rest;) {
    const { closed, html, open } = await format(rest.slice(0, PIECE));
    insert(body, html);
    const isLast = !closed || closed >= rest.length || rest.length <= PIECE;
    if (isLast) insert(body, open);
    rest = isLast ? "" : rest.slice(closed);
  }
  return body;
}

/** @param {ArrayBuffer} bytes */
async function sheets(bytes) {
  const { workbook } = await import("./spreadsheet.js");
  const found = await workbook(bytes);
  const place = el("div", {});
  const choice = el("select", { "aria-label": t("Sheet") }, ...found.map(({ name }, index) => el("option", { value: String(index) }, name)));
  const show = async () => {
    const sheet = choice.value;
    const rows = await found[Number(sheet)].rows();
    if (choice.value === sheet) place.replaceChildren(new Table(rows).element);
  };
  choice.addEventListener("change", () => show().catch((error) => place.replaceChildren(el("p", { className: "facts", role: "alert" }, error.message))));
  await show();
  return found.length > 1 ? [el("p", {}, el("label", {}, t("Sheet"), " ", choice)), place] : [place];
}

/** A table of any length: a page of it at a time, and only the rows with some words, if any are given. */
class Table {
  element = el("div", { className: "look" });
  #filter = el("input", { type: "search", placeholder: t("Filter rows"), "aria-label": t("Filter rows"), autocomplete: "off" });
  #count = el("span", { className: "facts", role: "status" });
  #back = el("button", { type: "button" }, t("Previous rows"));
  #next = el("button", { type: "button" }, t("Next rows"));
  #body = el("tbody");
  #at = 0;

  /** @param {string[][]} rows the first is the head */
  constructor([head = [], ...rows]) {
    this.rows = rows;
    const width = Math.min(COLUMNS, Math.max(head.length, ...rows.slice(0, PAGE).map((row) => row.length)));
    const columns = Array.from({ length: width }, (_, index) => el("th", { scope: "col" }, head[index] ?? ""));
    this.#filter.addEventListener("input", () => this.#go(0));
    this.#back.addEventListener("click", () => this.#go(this.#at - PAGE));
    this.#next.addEventListener("click", () => this.#go(this.#at + PAGE));
    this.element.append(el("p", { className: "look-tools" }, this.#filter, this.#count, this.#back, this.#next),
      el("div", { className: "table" }, el("table", {}, el("thead", {}, el("tr", {}, ...columns)), this.#body)));
    this.#go(0);
  }

  /** @param {number} at */
  #go(at) {
    const words = this.#filter.value.trim().toLowerCase();
    const found = words ? this.rows.filter((row) => row.some((cell) => cell.toLowerCase().includes(words))) : this.rows;
    this.#at = Math.max(0, Math.min(at, found.length - 1));
    const shown = found.slice(this.#at, this.#at + PAGE);
    this.#body.replaceChildren(...shown.map((row) => el("tr", {}, ...row.slice(0, COLUMNS).map((cell) => el("td", {}, cell.slice(0, CELL))))));
    const isWhole = found.length <= PAGE;
    this.#back.hidden = this.#next.hidden = isWhole;
    this.#back.disabled = this.#at === 0;
    this.#next.disabled = this.#at + PAGE >= found.length;
    setText(this.#count, isWhole ? plural(found.length, "1 row", "{count} rows") : t("Rows {first} to {last} of {count}", { first: number(this.#at + 1), last: number(this.#at + shown.length), count: number(found.length) }));
  }
}
