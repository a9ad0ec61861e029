// The values of a spreadsheet (.xlsx, ECMA-376): a zip archive with an XML file for each sheet. Read as text, in one pass,
// with bounds on what is unpacked; formulas are not computed, their last values are shown.

import { RequestError } from "../state/connection.js";
import { t } from "../base/language.js";

/** Bytes that are unpacked at most, and rows that are read. */
const LARGEST = 64 << 20;
const ROWS = 200_000;
/** Numbers of formats that show a date, as far as they are the same everywhere. */
const DATES = new Set([14, 15, 16, 17, 22]);
const DAY = 86_400_000;

/**
 * The sheets of a workbook, each with its rows.
 * @param {ArrayBuffer} bytes
 * @returns {Promise<{name: string, rows: () => Promise<string[][]>}[]>}
 */
export async function workbook(bytes) {
  const archive = new Archive(bytes);
  const [book, links] = [await archive.text("xl/workbook.xml"), await archive.text("xl/_rels/workbook.xml.rels")];
  const targets = new Map(tags(links, "Relationship").map((one) => [attribute(one, "Id"), attribute(one, "Target")]));
  const strings = archive.text("xl/sharedStrings.xml").then((text) => elements(text, "si").map(textOf));
  const dates = archive.text("xl/styles.xml").then(dateStyles);
  const found = tags(book, "sheet").map((one) => {
    const target = targets.get(attribute(one, "r:id") || attribute(one, "id")) ?? "";
    const path = target.startsWith("/") ? target.slice(1) : `xl/${target}`;
    // Each is unpacked once: what is unpacked twice would count twice against the bound.
    /** @type {Promise<string[][]>|undefined} */ let read;
    const rows = () => read ??= Promise.all([archive.text(path), strings, dates]).then((parts) => rowsOf(...parts));
    return { name: attribute(one, "name"), rows };
  });
  if (!found.length) throw unreadable();
  return found;
}

/**
 * @param {string} sheet
 * @param {string[]} strings
 * @param {boolean[]} dates whether each style shows a date
 */
function rowsOf(sheet, strings, dates) {
  /** @type {string[][]} */ const rows = [];
  for (const row of elements(sheet, "row", ROWS)) {
    /** @type {string[]} */ const cells = [];
    for (const cell of elements(row, "c")) {
      const head = cell.slice(0, cell.indexOf(">") + 1);
      const column = columnOf(attribute(head, "r")) ?? cells.length;
      while (cells.length < column && cells.length < 1000) cells.push("");
      cells[Math.min(column, 1000)] = valueOf(head, cell, strings, dates);
    }
    rows.push(cells);
  }
  return rows;
}

/**
 * @param {string} head
 * @param {string} cell
 * @param {string[]} strings
 * @param {boolean[]} dates
 */
function valueOf(head, cell, strings, dates) {
  const type = attribute(head, "t");
  if (type === "inlineStr") return textOf(cell);
  const value = plain(inner(elements(cell, "v", 1)[0] ?? ""));
  if (type === "s") return strings[Number(value)] ?? "";
  if (type === "b") return value === "1" ? "TRUE" : "FALSE";
  const isDate = !type && value !== "" && dates[Number(attribute(head, "s"))];
  if (!isDate) return value;
  // Day 0 is 30 December 1899, so that the days since March 1900 are counted as they are there.
  const moment = new Date(Date.UTC(1899, 11, 30) + Math.round(Number(value) * DAY));
  return Number.isNaN(moment.getTime()) ? value : moment.toISOString().replace("T00:00:00.000Z", "").replace(/:\d\d\.\d{3}Z$/, "").replace("T", " ");
}

/** @param {string} styles */
function dateStyles(styles) {
  const own = new Map(tags(styles, "numFmt").map((one) => [Number(attribute(one, "numFmtId")), /[ymd]/i.test(attribute(one, "formatCode").replace(/"[^"]*"|\[[^\]]*\]/g, ""))]));
  const formats = elements(styles, "cellXfs", 1)[0] ?? "";
  return tags(formats, "xf").map((one) => {
    const id = Number(attribute(one, "numFmtId"));
    return DATES.has(id) || own.get(id) === true;
  });
}

/** The column of a cell by its name ("B3": 1). @param {string} name */
function columnOf(name) {
  const letters = /^[A-Z]{1,3}/.exec(name)?.[0];
  if (!letters) return undefined;
  return [...letters].reduce((sum, one) => 26 * sum + one.charCodeAt(0) - 64, 0) - 1;
}

// --- XML, as far as spreadsheets need it

/**
 * The elements of a name, from their begin to their end; none of them contains another of its name.
 * @param {string} text
 * @param {string} name
 * @param {number} [most]
 */
function elements(text, name, most = Infinity) {
  const found = [];
  for (let at = begin(text, name, 0); at >= 0 && found.length < most; at = begin(text, name, at + 1)) {
    const open = text.indexOf(">", at);
    if (open < 0) break;
    const isEmpty = text[open - 1] === "/";
    const close = isEmpty ? open : text.indexOf(`</${name}>`, open);
    if (close < 0) break;
    found.push(text.slice(at, isEmpty ? open + 1 : close));
    at = close;
  }
  return found;
}

/**
 * The opening tags of a name.
 * @param {string} text
 * @param {string} name
 */
function tags(text, name) {
  const found = [];
  for (let at = begin(text, name, 0); at >= 0; at = begin(text, name, at + 1)) {
    const open = text.indexOf(">", at);
    if (open < 0) break;
    found.push(text.slice(at, open + 1));
  }
  return found;
}

/**
 * @param {string} text
 * @param {string} name
 * @param {number} from
 */
function begin(text, name, from) {
  let at = text.indexOf(`<${name}`, from);
  while (at >= 0 && !/[\s/>]/.test(text[at + name.length + 1] ?? "")) at = text.indexOf(`<${name}`, at + 1);
  return at;
}

/** What is in an element, without its opening tag. @param {string} element */
function inner(element) {
  return element.endsWith("/>") ? "" : element.slice(element.indexOf(">") + 1);
}

/** The text of a string, whose parts may look differently. @param {string} element */
function textOf(element) {
  return elements(element, "t").map((one) => plain(inner(one))).join("");
}

/**
 * @param {string} tag
 * @param {string} name
 */
function attribute(tag, name) {
  const at = tag.indexOf(` ${name}="`);
  if (at < 0) return "";
  const from = at + name.length + 3;
  return plain(tag.slice(from, tag.indexOf('"', from)));
}

/** @param {string} text */
function plain(text) {
  /** @type {Record<string, string>} */
  const named = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  return text.replace(/&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});/g, (whole, name) => {
    if (!name.startsWith("#")) return named[name];
    const code = name[1] === "x" ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

// --- the archive

class Archive {
  /** Where each file's data begins, how long it is packed, and how. @type {Map<string, {at: number, packed: number, method: number}>} */
  #files = new Map();
  #room = LARGEST;

  /** @param {ArrayBuffer} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    const view = new DataView(bytes);
    try {
      this.#read(view);
    } catch (error) {
      if (error instanceof RangeError) throw unreadable();
      throw error;
    }
  }

  /** Read the directory at the archive's end. @param {DataView} view */
  #read(view) {
    let end = view.byteLength - 22;
    while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
    if (end < 0) throw unreadable();
    let at = view.getUint32(end + 16, true);
    for (let count = view.getUint16(end + 10, true); count > 0; count -= 1) {
      if (view.getUint32(at, true) !== 0x02014b50) throw unreadable();
      const [named, extra, comment] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true), view.getUint16(at + 32, true)];
      const name = new TextDecoder().decode(new Uint8Array(this.bytes, at + 46, named));
      const local = view.getUint32(at + 42, true);
      const data = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
      this.#files.set(name, { at: data, packed: view.getUint32(at + 20, true), method: view.getUint16(at + 10, true) });
      at += 46 + named + extra + comment;
    }
  }

  /** The text of a file; empty if there is none. @param {string} name */
  async text(name) {
    const file = this.#files.get(name);
    if (!file) return "";
    const packed = new Blob([new Uint8Array(this.bytes, file.at, file.packed)]).stream();
    const reader = (file.method === 0 ? packed : packed.pipeThrough(new DecompressionStream("deflate-raw"))).getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      this.#room -= value.byteLength;
      if (this.#room < 0) throw new RequestError("usage", t("This spreadsheet is too large to be shown here; download it to look."));
      text += decoder.decode(value, { stream: true });
    }
  }
}

function unreadable() {
  return new RequestError("usage", t("This spreadsheet can't be read; download it to look."));
}
