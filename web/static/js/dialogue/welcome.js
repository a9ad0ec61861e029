// The content of an empty dialogue: suggestions, and recorded sessions to view.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {{id: string, title: string, about: string}} Example */
/** A first message that the user saved, under a name. @typedef {{name: string, text: string}} FirstMessage */

const SUGGESTIONS = [
  t("Show me the disk usage of /tmp in your sandbox"),
  t("Write a Python script that prints the first ten square numbers, and run it"),
  t("Make a shopping list as shopping.md with milk, bread and six eggs"),
];

/**
 * @param {string} model the model that answers, in words; "" if that is not known yet
 * @param {Example[]} examples
 * @param {FirstMessage[]} kept
 * @param {{suggest: (text: string) => void, explain: () => void, connect: () => void, open: (id: string) => void, forget: (name: string) => void}} actions
 *   `suggest` puts a text into the composer, `explain` shows what works on this machine, `connect` opens the form that connects a model, `open` opens an example, `forget`
 *   removes a saved first message
 * @returns {HTMLElement}
 */
export function welcome(model, examples, kept, { suggest, explain, connect, open, forget }) {
  const more = el("button", { className: "link", type: "button" }, t("Check this machine"));
  more.addEventListener("click", () => explain());
  const other = el("button", { className: "link", type: "button" }, t("Connect a model"));
  other.addEventListener("click", () => connect());
  return el("div", { className: "empty" }, el("h3", {}, t("What do you want done?")),
    el("p", {}, t("The root agent answers, runs commands in its sandbox, and calls further agents. You can step in anywhere in the tree.")),
    ...(model ? [el("p", { className: "aside", "data-role": "answers" }, t("Model: {model}", { model }))] : []), el("p", {}, other, " · ", more),
    ...kept.map(({ name, text }) => {
      const button = el("button", { className: "suggestion", type: "button", title: text }, name);
      const drop = el("button", { className: "link", type: "button", "aria-label": t("Forget the first message {name}", { name }) }, t("Forget"));
      button.addEventListener("click", () => suggest(text));
      drop.addEventListener("click", () => forget(name));
      return el("div", { className: "kept" }, button, drop);
    }),
    ...SUGGESTIONS.map((text) => {
      const button = el("button", { className: "suggestion", type: "button" }, text);
      button.addEventListener("click", () => suggest(text));
      return button;
    }),
    ...(examples.length ? [el("h3", {}, t("View a recorded session")),
      el("p", {}, t("Recordings with a scripted model; commands and results are real. No model needed.")),
      exampleList(examples, open)] : []));
}

/**
 * @param {Example[]} examples
 * @param {(id: string) => void} open
 */
export function exampleList(examples, open) {
  return el("ul", { className: "examples" }, ...examples.map(({ id, title, about }) => {
    const button = el("button", { type: "button" }, el("strong", {}, title), el("span", {}, about));
    button.addEventListener("click", () => open(id));
    return el("li", {}, button);
  }));
}
