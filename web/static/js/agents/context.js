// The exact context that a model saw at one turn, with the part that was already there marked.

import { el } from "../base/dom.js";
import { meter } from "./facts.js";
import { share, tokens } from "../base/format.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/types.d.ts").SeenMessage} SeenMessage */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

/**
 * @param {{record: number, messages: SeenMessage[]}} seen
 * @param {JournalRecord|undefined} turn the record that holds the reply
 * @param {{earlier: number, later: number, go: (record: number) => void, reveal: (n: number) => void}} steps
 *   numbers of the records of the previous and next turn, 0 if there is none
 * @returns {HTMLElement}
 */
export function contextView(seen, turn, { earlier, later, go, reveal }) {
  const reused = seen.messages.filter((message) => message.reused);
  const fresh = seen.messages.filter((message) => !message.reused);
  const size = (/** @type {SeenMessage[]} */ messages) => messages.reduce((sum, message) => sum + message.size, 0);
  const all = size(seen.messages);
  const back = step(t("Earlier"), earlier, go);
  const on = step(t("Later"), later, go);
  const at = el("button", { type: "button", className: "link", title: t("Show the reply in the dialogue") }, t("journal entry {n}", { n: String(seen.record) }));
  at.addEventListener("click", () => reveal(seen.record));
  const usage = turn?.usage;
  const counted = usage ? t("The provider counted {prompt} tokens, {cached} of them from its cache.", { prompt: tokens(usage.prompt), cached: share(usage.cached, usage.prompt) }) : "";
  return el("div", { className: "context" },
    el("div", { className: "steps" }, back, el("span", {}, `${t("What the model saw for")} `, at), on),
    meter(size(reused), all, t("Share of the context that is unchanged since its last reply")),
    el("p", { className: "facts" }, t("{reused} of {all} characters are unchanged since its last reply. {counted}", { reused: share(size(reused), all), all: tokens(all), counted })),
    ...section(t("Unchanged"), reused, size(reused), false),
    ...section(t("New"), fresh, size(fresh), true));
}

/**
 * @param {string} title
 * @param {SeenMessage[]} messages
 * @param {number} size
 * @param {boolean} open
 */
function section(title, messages, size, open) {
  if (!messages.length) return [];
  const words = plural(messages.length, "{title}: 1 message, {size} characters", "{title}: {count} messages, {size} characters", { title, size: tokens(size) });
  return [el("h3", {}, words), el("div", { className: open ? "seen fresh" : "seen reused" }, ...messages.map((message) => shown(message, open)))];
}

/**
 * One message. Its text is put into the page when the message is opened.
 * @param {SeenMessage} message
 * @param {boolean} open
 */
function shown(message, open) {
  const summary = el("summary", {}, el("span", { className: "role-name" }, message.role),
    el("span", { className: "snippet" }, message.text.slice(0, 160).replace(/\s+/g, " ")), el("span", { className: "n" }, tokens(message.size)));
  const details = el("details", {}, summary);
  const fill = () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(message.text ? el("pre", { tabIndex: 0 }, message.text) : el("p", { className: "nothing" }, t("Too long to show here. Print it with: iact context")));
  };
  details.addEventListener("toggle", fill);
  details.open = open;
  fill();
  return details;
}

/**
 * @param {string} label
 * @param {number} record
 * @param {(record: number) => void} go
 */
function step(label, record, go) {
  const button = el("button", { type: "button", disabled: !record }, label);
  button.addEventListener("click", () => go(record));
  return button;
}
