// The texts of the page in the reader's language. The English text is the key: a text without a line in
// languages/LANGUAGE.json (for the server's texts, LANGUAGE.server.json) stays English. The language was chosen
// by early.js, before the first paint. Importing this waits until the lines are loaded, so that texts created while
// a module loads are right, too. Importing it changes nothing on the page.

/** @typedef {Record<string, string|number>} Values */
/** A line: one text, or one for each plural category of the language. @typedef {string|Record<string, string>} Line */

/** The languages to choose from, each by its own name. @type {[string, string][]} */
export const LANGUAGES = [["en", "English"], ["de", "Deutsch"]];

export const language = document.documentElement.lang;
/** The reader's own variant of the language, for dates and numbers. */
export const locale = navigator.languages.find((one) => one.split("-")[0] === language) ?? language;

/** The version of the page's files, as a query that is added to the address of each file. */
export const version = new URL(import.meta.url).search;

const plurals = new Intl.PluralRules(locale);
const numbers = new Intl.NumberFormat(locale);

const [page, server] = language === "en" ? [{}, {}] : await Promise.all([fetched(language), fetched(`${language}.server`)]);
/** @type {Record<string, Line>} */
const lines = Object.assign(Object.create(null), server, page);
/** Sentences of the server that contain values, longest first. @type {[RegExp, string[], string][]|undefined} */
let patterns;

/** Translate index.html into the reader's language, and show it. */
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
 * Return a text of the page, with `values` in place of their names in braces. Numbers are formatted for the reader.
 * @param {string} text
 * @param {Values} [values]
 * @returns {string}
 */
export function t(text, values) {
  return filled(lineOf(text), values);
}

/**
 * Return a text for a count; `{count}` in it stands for the number.
 * @param {number} count
 * @param {string} one
 * @param {string} many the key of its line
 * @param {Values} [values]
 * @returns {string}
 */
export function plural(count, one, many, values) {
  const line = lines[many];
  const words = line === undefined ? (count === 1 ? one : many) : typeof line === "string" ? line : (line[plurals.select(count)] ?? line.other);
  return filled(words, { count, ...values });
}

/** A number, formatted for the reader. @param {number} value */
export function number(value) {
  return numbers.format(value);
}

/**
 * Join words by a conjunction.
 * @param {string[]} words
 * @param {"and"|"or"} by
 */
export function joined(words, by) {
  return new Intl.ListFormat(locale, { type: by === "or" ? "disjunction" : "conjunction" }).format(words);
}

/**
 * Translate a sentence of the server. It arrives whole and in English, and is recognized by the text around its values, which
 * may be sentences themselves.
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
 * Translate the text in `root` and the labels of its elements into the reader's language.
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
