// What a person can do after a reply that is no answer: go on where a limit was reached, knowing what that will take, or look
// at the settings of the model that failed. Fetched with the first such reply.

import { el } from "../base/dom.js";
import { cost, tokens } from "../base/format.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

/** Limits of one task. A message begins the next task, so that the work goes on; more tokens or money must be given first. */
const OF_ONE_TASK = new Set(["turns", "time"]);

/**
 * @param {Element} entry the reply's
 * @param {JournalRecord} record
 * @param {Store} store
 * @param {() => void} settings shows the models
 */
export function offerAfter(entry, record, store, settings) {
  if (entry.querySelector(":scope > .after-reply")) return;
  if (record.kind === "reply" && record.status === "bound" && OF_ONE_TASK.has(record.bound ?? "") && !store.session.readonly) {
    const button = el("button", { type: "button", className: "go-on" }, t("Continue"));
    button.dataset.say = t("Continue where you stopped.");
    entry.append(el("p", { className: "after-reply" }, button, " ", taken(record, store)));
  }
  if (record.kind === "reply" && record.status === "failed" && !record.plan) {
    const button = el("button", { type: "button", className: "link" }, t("Model settings"));
    button.addEventListener("click", () => settings());
    entry.append(el("p", { className: "after-reply" }, button));
  }
}

/**
 * What the task took so far, as a measure of what going on will take.
 * @param {JournalRecord} reply
 * @param {Store} store
 */
function taken(reply, store) {
  const begun = store.records.findLast((record) => record.n < reply.n && begins(record, reply.agent))?.n ?? 0;
  const below = reply.agent === "/" ? "/" : `${reply.agent}/`;
  const turns = store.records.filter((record) => record.kind === "turn" && record.n > begun && record.n < reply.n && (record.agent === reply.agent || record.agent.startsWith(below)));
  const used = turns.map(({ model, usage }) => ({ model: model ?? "", prompt_tokens: usage?.prompt ?? 0, cached_tokens: usage?.cached ?? 0, completion_tokens: usage?.completion ?? 0 }));
  const count = used.reduce((sum, one) => sum + one.prompt_tokens + one.completion_tokens, 0);
  const words = [plural(turns.length, "1 model reply", "{count} model replies"), t("{count} tokens", { count: tokens(count) }), cost(store.session.prices, used)];
  return t("So far it took {what}; going on may take as much again.", { what: words.filter(Boolean).join(", ") });
}

/**
 * @param {JournalRecord} record
 * @param {string} agent
 */
function begins(record, agent) {
  const said = record.kind === "say" && agent === "/";
  const called = record.kind === "call" && record.to === agent;
  return said || called;
}
