// Builds elements. The only place where rendered HTML enters the page.
//
// Only HTML rendered by the server (web/render.py) may pass `insert`: the page's policy requires Trusted
// Types, and the only policy of this name is created here. Everything else is text.

import { heard, language, version } from "./language.js";

/** @typedef {{createHTML: (html: string) => string}} HtmlPolicy */
/** Created with the first HTML, because there can be only one policy of this name. @type {HtmlPolicy|undefined} */
let policy;

/** @returns {HtmlPolicy} */
function htmlPolicy() {
  const rules = { createHTML: (/** @type {string} */ html) => html };
  /** @type {{createPolicy: (name: string, rules: HtmlPolicy) => HtmlPolicy}|undefined} */
  const factory = Reflect.get(globalThis, "trustedTypes");
  return factory ? factory.createPolicy("iact", rules) : rules;
}

/**
 * Append HTML that the server rendered.
 * @param {Element} parent
 * @param {string} html
 */
export function insert(parent, html) {
  const template = document.createElement("template");
  policy ??= htmlPolicy();
  template.innerHTML = policy.createHTML(html);
  // Text by the server itself, in contrast to text by agents and people.
  for (const words of language === "en" ? [] : template.content.querySelectorAll(".t")) words.textContent = heard(words.textContent ?? "");
  parent.append(template.content);
}

// The characters that core/characters.py calls hidden, except those that shape letters and emoji. A test keeps the two in step.
const HIDDEN = /[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}\u{200e}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{d800}-\u{dfff}\u{fdd0}-\u{fdef}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{fffe}-\u{ffff}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{1fffe}-\u{1ffff}\u{2fffe}-\u{2ffff}\u{3fffe}-\u{3ffff}\u{4fffe}-\u{4ffff}\u{5fffe}-\u{5ffff}\u{6fffe}-\u{6ffff}\u{7fffe}-\u{7ffff}\u{8fffe}-\u{8ffff}\u{9fffe}-\u{9ffff}\u{afffe}-\u{affff}\u{bfffe}-\u{bffff}\u{cfffe}-\u{cffff}\u{dfffe}-\u{e00ff}\u{e01f0}-\u{e0fff}\u{efffe}-\u{effff}\u{ffffe}-\u{fffff}\u{10fffe}-\u{10ffff}]/gu;

/** @param {string} text */
export function visible(text) {
  return text.replace(HIDDEN, (one) => `‹U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

/**
 * A new element. `properties` are set as properties; `data` and `aria…`/`role` keys as attributes.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node|string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "role" || name.startsWith("aria-") || name.startsWith("data-")) {
      element.setAttribute(name, String(value));
    } else {
      Reflect.set(element, name, value);
    }
  }
  element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

/**
 * The element of index.html with this `data-role`.
 * @param {string} role
 * @returns {HTMLElement}
 */
export function part(role) {
  const found = document.querySelector(`[data-role="${role}"]`);
  if (!(found instanceof HTMLElement)) throw new Error(`The page has no part ${role}.`);
  return found;
}

/** @type {Map<string, Promise<unknown>>} */
const sheets = new Map();

/**
 * Load a style sheet that is not needed at the page's start. @param {string} name
 * @returns {Promise<unknown>} settles when it is loaded or has failed
 */
export function styled(name) {
  const found = sheets.get(name) ?? new Promise((resolve) => {
    const link = el("link", { rel: "stylesheet", href: `/static/css/${name}.css${version}` });
    link.addEventListener("load", resolve);
    link.addEventListener("error", resolve);
    document.head.append(link);
  });
  sheets.set(name, found);
  return found;
}

/**
 * Write text only if it changed, to avoid needless layout and announcements.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * Let a button act at its second press only. Leaving it takes the first press back; there is no time limit in between.
 * @param {HTMLElement} button
 * @param {string} words what it says at rest
 * @param {string} sure what it says after the first press
 * @param {() => unknown} act
 * @param {Element|null} [label] the part of the button that holds its words
 * @returns {() => void} takes the first press back
 */
export function twice(button, words, sure, act, label = button) {
  const rest = () => {
    button.classList.remove("sure");
    if (label) setText(label, words);
  };
  button.addEventListener("click", () => {
    if (button.classList.contains("sure")) {
      rest();
      act();
      return;
    }
    button.classList.add("sure");
    if (label) setText(label, sure);
  });
  button.addEventListener("blur", rest);
  return rest;
}

/**
 * Call `work` once before the next paint, however often this is called.
 * @param {() => void} work
 * @returns {() => void}
 */
export function onceAFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const run = () => {
      if (!asked) return;
      asked = false;
      work();
    };
    // A tab in the background paints no frames, but must stay up to date.
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  };
}

const SHAPES = {
  pause: "M6 4v8M10 4v8",
  resume: "M5.5 3.8v8.4L12 8z",
  inject: "M3 8h8M8 4.5 11.5 8 8 11.5M13.5 3.5v9",
  cancel: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  first: "M4 4v8M12 4 6.5 8l5.5 4z",
  back: "M10 4 5 8l5 4z",
  next: "M6 4l5 4-5 4z",
  last: "M12 4v8M4 4l5.5 4L4 12z",
  history: "M8 4.5V8l2.5 1.5M3.2 5.5A5.2 5.2 0 1 1 2.8 8M3 2.8v2.9h2.9",
  tree: "M4 3v8a2 2 0 0 0 2 2h2M4 6h4M10.5 6h3M10.5 13h3",
  commands: "M3 4.5h10M3 8h10M3 11.5h6",
  modules: "M8 2.2 13.2 5v6L8 13.8 2.8 11V5zM2.8 5 8 7.9 13.2 5M8 7.9v5.9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  memory: "M4 3.2h6.5L12 4.7v8.1H4zM6 6h4M6 8.2h4M6 10.4h2.5",
  settings: "M8 5.8a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4M8 2v1.8M8 12.2V14M2 8h1.8M12.2 8H14M3.8 3.8l1.3 1.3M10.9 10.9l1.3 1.3M3.8 12.2l1.3-1.3M10.9 5.1l1.3-1.3",
  share: "M8 10V2.5M5.5 5 8 2.5 10.5 5M3.5 8.5v5h9v-5",
  person: "M8 3a2.4 2.4 0 1 0 0 4.8A2.4 2.4 0 0 0 8 3M3.2 13.2a4.8 4.8 0 0 1 9.6 0",
  shield: "M8 2.2l4.8 1.8v3.6c0 3-2 5-4.8 6.2-2.8-1.2-4.8-3.2-4.8-6.2V4z",
  attach: "M11.5 7.2 7.3 11.4a2.3 2.3 0 0 1-3.3-3.3l4.9-4.9a1.5 1.5 0 0 1 2.2 2.2L6.3 10.2",
  inspector: "M2.5 3.5h11v9h-11zM10 3.5v9",
};

/**
 * A line icon, hidden from screen readers.
 * @param {keyof typeof SHAPES} name
 */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", SHAPES[name]);
  for (const [key, value] of [["viewBox", "0 0 16 16"], ["fill", "none"], ["stroke", "currentColor"],
    ["stroke-width", "1.5"], ["stroke-linecap", "round"], ["stroke-linejoin", "round"], ["aria-hidden", "true"]]) {
    svg.setAttribute(key, value);
  }
  svg.append(path);
  return svg;
}
