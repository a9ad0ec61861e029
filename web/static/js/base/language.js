// The words of the page in the reader's language. The English text is the name of each: what has no line in
// languages/LANGUAGE.json, or for what the server says in LANGUAGE.server.json, stays English. Which language is spoken
// was settled by early.js, before the first paint. Importing this waits until the words are there, so what is made when
// a module is loaded is right, too; it changes nothing on the page.

/** @typedef {Record<string, string|number>} Values */
/** What a line says: one text, or one for each plural category of the language. @typedef {string|Record<string, string>} Line */

/** What can be chosen, each in its own words. @type {[string, string][]} */
export const LANGUAGES = [["en", "English"], ["de", "Deutsch"]];

export const language = document.documentElement.lang;
/** The reader's own variety of it, for dates and numbers. */
export const locale = navigator.languages.find((one) => one.split("-")[0] === language) ?? language;

/** The version of the page's files, as a query: whoever asks for one by name names it, too. */
export const version = new URL(import.meta.url).search;

const plurals = new Intl.PluralRules(locale);
const numbers = new Intl.NumberFormat(locale);

const [page, server] = language === "en" ? [{}, {}] : await Promise.all([fetched(language), fetched(`${language}.server`)]);
/** @type {Record<string, Line>} */
const lines = Object.assign(Object.create(null), server, page);
/** Sentences of the server with something in them, the longest first. @type {[RegExp, string[], string][]|undefined} */
let patterns;

/** Say what is in index.html in the reader's language, and show it. */
export function translatePage() {
  if (language === "en") return;
  translate(document.body);
  document.documentElement.classList.remove("translating");
}

/** @param {string} name */
async function fetched(name) {
  try {
    return await (await fetch(`/static/languages/${name}.json${version}`)).json();
  } catch {
    return {};
  }
}

/**
 * A text of the page, with `values` where it names them in braces. Numbers are written as the reader writes them.
 * @param {string} text
 * @param {Values} [values]
 * @returns {string}
 */
export function t(text, values) {
  return filled(lineOf(text), values);
}

/**
 * A text that says how many; `{count}` in it is the number.
 * @param {number} count
 * @param {string} one
 * @param {string} many its name among the lines
 * @param {Values} [values]
 * @returns {string}
 */
export function plural(count, one, many, values) {
  const line = lines[many];
  const words = line === undefined ? (count === 1 ? one : many) : typeof line === "string" ? line : (line[plurals.select(count)] ?? line.other);
  return filled(words, { count, ...values });
}

/** A number as the reader writes it. @param {number} value */
export function number(value) {
  return numbers.format(value);
}

/**
 * Words joined by a word.
 * @param {string[]} words
 * @param {"and"|"or"} by
 */
export function joined(words, by) {
  return new Intl.ListFormat(locale, { type: by === "or" ? "disjunction" : "conjunction" }).format(words);
}

/**
 * A sentence of the server: it comes whole and in English, and is found again by what stands around its values, which
 * may be sentences of its own.
 * @param {string} text
 * @returns {string}
 */
export function heard(text) {
  if (language === "en" || !text) return text;
  if (lines[text] !== undefined) return lineOf(text);
  patterns ??= Object.keys(server).filter((key) => key.includes("{")).sort((a, b) => b.length - a.length).map(pattern);
  for (const [found, names, key] of patterns) {
    const match = found.exec(text);
    if (match) return filled(lineOf(key), Object.fromEntries(names.map((name, index) => [name, heard(match[index + 1])])));
  }
  return text;
}

/**
 * Say what stands in `root` in the reader's language: its own words, and those that its elements are named by.
 * @param {Element|DocumentFragment} root
 */
export function translate(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.nodeValue ?? "";
    const words = text.trim();
    if (lines[words] !== undefined) walker.currentNode.nodeValue = text.replace(words, () => lineOf(words));
  }
  for (const name of ["title", "placeholder", "aria-label"]) {
    for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, lineOf(element.getAttribute(name) ?? ""));
  }
}

/** @param {string} text */
function lineOf(text) {
  const line = lines[text] ?? text;
  return typeof line === "string" ? line : line.other;
}

/**
 * @param {string} text
 * @param {Values|undefined} values
 */
function filled(text, values) {
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : value;
  });
}

/** @param {string} key @returns {[RegExp, string[], string]} */
function pattern(key) {
  const names = [...key.matchAll(/\{(\w+)\}/g)].map((one) => one[1]);
  const source = key.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("([^]*?)");
  return [new RegExp(`^${source}$`), names, key];
}
