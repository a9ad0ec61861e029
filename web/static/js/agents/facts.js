// The inspector's first tab: facts about the selected agent and the session. Fetched with the first session.

import { el, insert } from "../base/dom.js";
import { cost, endedAs, share, stateName, tokens } from "../base/format.js";
import { number, t } from "../base/language.js";
import { countUpTo } from "../state/store.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").TreeNode} TreeNode */

/** The number of newest turns over which the speed is measured. */
const RECENT = 10;

const INTENTS = [t("Read only"), t("Change files"), t("Anything")];

/**
 * @param {Store} store
 * @returns {HTMLElement[]}
 */
export function factsOf(store) {
  if (store.session.opening) return [el("p", { className: "nothing" }, t("This session is loading. You can already read its newest messages."))];
  const node = store.node(store.selected);
  const birth = store.birth(store.selected);
  const parts = [];
  if (node) parts.push(facts(agentFacts(store, node)), ...usage(node), ...budget(node));
  if (birth?.kind === "spawn" && birth.body && birth.n <= store.shown) {
    const role = el("div", { className: "md" });
    if (store.rendered(birth)) insert(role, birth.html ?? "");
    parts.push(el("h3", {}, t("Role")), role);
  }
  const session = facts(sessionFacts(store));
  session.title = store.session.journal;
  return [...parts, el("h3", {}, t("Session")), session];
}

/**
 * @param {Store} store
 * @param {TreeNode} node
 * @returns {[string, string][]}
 */
function agentFacts(store, node) {
  const birth = store.birth(node.path);
  return [
    [t("Path"), node.path],
    [t("Started by"), !node.caller || node.caller === "user" ? t("you") : node.caller],
    [t("State"), node.paused ? t("{state}, paused by you", { state: stateName(node.state) }) : endedAs(node) || stateName(node.state)],
    [t("Model"), node.model],
    [t("Model replies"), number(node.turns)],
    // The root's intent is the session's intent, which a person can change.
    ...grantFacts(birth?.grant ? { ...birth.grant, intent: null } : birth),
  ];
}

/**
 * @param {Store} store
 * @returns {[string, string][]}
 */
function sessionFacts(store) {
  const { nodes, session, count } = store;
  const sum = (/** @type {"prompt_tokens"|"cached_tokens"|"completion_tokens"} */ key) =>
    nodes.reduce((total, node) => total + node[key], 0);
  const prompt = sum("prompt_tokens");
  return [
    [t("Permission"), INTENTS[session.intent] ?? String(session.intent)],
    [t("Agents"), number(nodes.length)],
    // With a single agent, this is already shown above.
    ...(nodes.length > 1 ? /** @type {[string, string][]} */ ([
      [t("Tokens"), tokens(prompt + sum("completion_tokens"))],
      [t("From cache"), share(sum("cached_tokens"), prompt)],
    ]) : []),
    [t("Speed"), speed(store)],
    [t("Cost"), cost(session.prices, nodes)],
    ...(store.past ? [] : running(store)),
    [t("Steps recorded"), number(count)],
    [t("Journal"), session.journal.split("/").slice(-3).join("/")],
  ];
}

/**
 * What runs now: models (as thinking agents) and functions, and which modules are ready to run.
 * @param {Store} store
 * @returns {[string, string][]}
 */
function running({ nodes, modules }) {
  const thinking = nodes.filter((node) => node.state === "thinking").length;
  const calls = nodes.reduce((all, node) => all + (node.calls?.length ?? 0), 0);
  return [[t("Models writing now"), number(thinking)], [t("Tools running now"), number(calls)], [t("Modules started"), number(modules)]];
}

/** How fast models wrote the newest turns, including the wait for the first token. @param {Store} store */
function speed({ records, shown }) {
  let written = 0;
  let ms = 0;
  for (let index = countUpTo(records, shown) - 1, turns = 0; index >= 0 && turns < RECENT; index -= 1) {
    const { kind, usage, ms: took } = records[index];
    if (kind !== "turn" || !usage || !took) continue;
    written += usage.completion;
    ms += took;
    turns += 1;
  }
  return ms ? t("{speed} tokens/s", { speed: tokens(Math.round((1000 * written) / ms)) }) : "";
}

/** @param {[string, string][]} pairs */
export function facts(pairs) {
  return el("dl", {}, ...pairs.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/**
 * @param {number} value
 * @param {number} whole
 * @param {string} label
 */
export function meter(value, whole, label) {
  return el("progress", { className: "meter", max: Math.max(1, whole), value, "aria-label": label });
}

/** @param {TreeNode} node */
function usage(node) {
  return [el("h3", {}, t("Tokens")), facts([
    [t("Read"), tokens(node.prompt_tokens)],
    [t("From cache"), `${tokens(node.cached_tokens)} (${share(node.cached_tokens, node.prompt_tokens)})`],
    [t("Written"), tokens(node.completion_tokens)],
  ]), meter(node.cached_tokens, node.prompt_tokens, t("Share of the tokens read that came from the cache"))];
}

/** @param {TreeNode} node */
function budget(node) {
  if (!node.allowance) return [];
  const { left = 0, lent = 0 } = node;
  return [el("h3", {}, t("Budget")), facts([[t("Left"), t("{left} of {allowance} ({share})", { left: tokens(left), allowance: tokens(node.allowance), share: share(left, node.allowance) })],
    [t("Reserved for helpers"), lent ? tokens(lent) : ""]]),
    meter(left, node.allowance, t("Share of the budget that is left"))];
}

/**
 * What an agent may do: from a recorded grant, or for a child, from what its caller narrowed.
 * @param {unknown} grant
 * @returns {[string, string][]}
 */
function grantFacts(grant) {
  if (typeof grant !== "object" || grant === null) return [];
  const { scope, allow, intent } = /** @type {Record<string, unknown>} */ (grant);
  return [
    [t("Access"), typeof scope === "string" ? scope : ""],
    [t("Tools"), Array.isArray(allow) ? toolNames(allow) : ""],
    [t("Maximum permission"), typeof intent === "number" ? (INTENTS[intent] ?? String(intent)) : ""],
  ];
}

/** @param {string[][]} allow */
function toolNames(allow) {
  const names = [...new Set(allow.flat())];
  return names.includes("*") ? t("all") : names.join(", ");
}
