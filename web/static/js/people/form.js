// The parts of the dialogs about people: a frame, sections, rows with a button, and forms that report their results.

import { el, setText } from "../base/dom.js";
import { t } from "../base/language.js";

/**
 * A separate dialog, which is removed when it is closed.
 * @param {string} role
 * @param {string} title
 */
export function frame(role, title) {
  const id = `${role}-title`;
  const news = el("p", { className: "facts", role: "status" });
  const content = el("div", { className: "people" });
  const dialog = el("dialog", { className: "settings", "data-role": role, "aria-labelledby": id },
    el("header", {}, el("h2", { id }, title), el("form", { method: "dialog" }, el("button", {}, t("Close")))), news, content);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  const say = (/** @type {unknown} */ words) => setText(news, words instanceof Error ? words.message : String(words));
  return { dialog, content, say };
}

/**
 * @param {string} title
 * @param {(Node|string)[]} rows
 * @param {string} none the text if there are no rows
 */
export function section(title, rows, none) {
  const list = rows.length ? el("ul", { className: "modules" }, ...rows) : el("p", { className: "nothing" }, none);
  return el("section", {}, el("h3", {}, title), list);
}

/**
 * @param {string} title
 * @param {string[]} facts
 * @param {...Node} buttons
 */
export function row(title, facts, ...buttons) {
  return el("li", {}, el("strong", { dir: "auto" }, title), " ", ...buttons, el("p", { className: "facts" }, facts.filter(Boolean).join(" · ")));
}

/**
 * @param {string} label
 * @param {string} about the object of the action, for screen readers
 * @param {() => unknown} run
 */
export function button(label, about, run) {
  const made = el("button", { type: "button", "aria-label": `${label}: ${about}` }, label);
  made.addEventListener("click", run);
  return made;
}

/**
 * @param {string} label
 * @param {HTMLElement} field
 */
export function labelled(label, field) {
  const [first, second] = field instanceof HTMLInputElement && field.type === "checkbox" ? [field, ` ${label}`] : [`${label} `, field];
  return el("label", {}, first, second);
}

/**
 * @param {string} send the button's label
 * @param {() => unknown} run
 * @param {...Node} fields
 */
export function form(send, run, ...fields) {
  const made = el("form", { className: "module-add" }, ...fields, el("button", { type: "submit" }, send));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  return made;
}

/**
 * A secret that is shown once, to be copied.
 * @param {string} label
 * @param {string} secret
 */
export function once(label, secret) {
  const field = el("input", { type: "text", readOnly: true, value: secret, "aria-label": label, "data-role": "once" });
  field.addEventListener("focus", () => field.select());
  return el("div", { className: "module-add" }, el("p", {}, label), field);
}

/** @param {string} value @param {[string, string][]} options */
export function choice(value, options) {
  return el("select", {}, ...options.map(([one, name]) => el("option", { value: one, selected: one === value }, name)));
}
