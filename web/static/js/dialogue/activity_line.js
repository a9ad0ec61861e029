// What happens now, in words with a clock: the line at the end of a dialogue, and each row of the tree.
//
// The server reports what a model does, or what it waits for, as that changes. How long a tool, a child or a person has
// taken follows from the records. Only the counting is done here, once a second.

import { el, onceAFrame, part, setText } from "../base/dom.js";
import { agentName, span } from "../base/format.js";
import { heard, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").TreeNode} TreeNode */
/** @typedef {{text: string, kind: "works"|"waits"|"person"|"paused", why?: string, stop?: boolean}} Line */

/** Characters per token, approximately. */
const TOKEN = 4;
/** The number of children that are named in full. */
const NAMED = 3;

/**
 * What an agent or plan does now; null if nothing is worth a line.
 * @param {Store} store
 * @param {TreeNode} node
 * @param {number} now
 * @returns {Line|null}
 */
export function lineOf(store, node, now) {
  if (node.state === "paused") return { text: timed(t("Paused"), pausedSince(store, node), now), kind: "paused" };
  const asked = [...store.asked.values()].find((record) => record.agent === node.path);
  if (asked?.function === "PERSON") return { text: timed(t("Waits for you"), asked.at, now), kind: "person" };
  if (asked) {
    const words = asked.function ? t("Waits for your approval: {function}", { function: asked.function }) : t("Waits for your approval");
    return { text: timed(words, asked.at, now), kind: "person" };
  }
  if (node.awaited?.length) return { text: awaited(store, node, now), kind: "waits" };
  const activity = store.activities.get(node.path);
  if (activity && (node.state === "thinking" || node.kind === "plan")) return modelLine(store, activity, now);
  if (node.state === "thinking") return { text: t("Preparing the next turn"), kind: "works" };
  if (node.kind === "plan" && !node.doing && waitsForStart(store.own(node.path))) return { text: t("It waits for you to start it."), kind: "person" };
  if (node.state === "acting") return { text: acting(store, node, now), kind: "works" };
  return null;
}

/**
 * @param {Store} store
 * @param {import("../state/types.d.ts").Activity} activity
 * @param {number} now
 * @returns {Line}
 */
function modelLine(store, activity, now) {
  const { state, since, why } = activity;
  switch (state) {
    case "writing": return { text: timed(t("Model writing"), since, now) + speed(store, activity, now), kind: "works" };
    case "reasoning": return { text: timed(t("Model thinking"), since, now), kind: "works" };
    case "limited": return { text: again(t("Rate limited"), activity, now), kind: "waits", why, stop: true };
    case "retrying": return { text: again(t("Trying again"), activity, now), kind: "waits", why, stop: true };
    case "stalled": return { text: timed(t("Model has stopped sending"), since, now), kind: "waits", why, stop: true };
    case "loading": return { text: timed(t("Getting the small model on board ready"), since, now), kind: "waits", why, stop: true };
    case "slot": return { text: timed(t("Waiting for a free place at the model"), since, now), kind: "waits", why, stop: true };
    default: return { text: timed(t("Waiting for the model"), since, now), kind: "works" };
  }
}

/**
 * The next attempt, and when it comes.
 * @param {string} what
 * @param {import("../state/types.d.ts").Activity} activity
 * @param {number} now
 */
function again(what, { until, attempt, of }, now) {
  const count = Math.max(0, Math.ceil((Date.parse(until ?? "") - now) / 1000));
  if (!until) return what;
  if (!attempt || !of) return t("{what}, next in {count} s", { what, count });
  return t("{what}, attempt {attempt} of {of}, next in {count} s", { what, attempt, of, count });
}

/**
 * How fast a model writes, once that is known.
 * @param {Store} store
 * @param {import("../state/types.d.ts").Activity} activity
 * @param {number} now
 */
function speed(store, { agent, since }, now) {
  const seconds = (now - Date.parse(since)) / 1000;
  const count = Math.round((store.drafts.get(agent)?.length ?? 0) / TOKEN / seconds);
  return seconds >= 2 && count ? ` · ${t("{count} tokens/s", { count })}` : "";
}

/**
 * @param {Store} store
 * @param {TreeNode} node
 * @param {number} now
 */
function awaited(store, node, now) {
  const running = node.awaited ?? [];
  const all = node.awaited_of ?? 0;
  const named = running.slice(0, NAMED).map((path) => path.slice(path.lastIndexOf("/") + 1)).join(", ");
  const names = running.length > NAMED ? t("{names} and {count} more", { names: named, count: running.length - NAMED }) : named;
  const held = store.nodes.find((one) => one.paused && one.path !== node.path && one.path.startsWith(node.path === "/" ? "/" : `${node.path}/`));
  const paused = held ? ` · ${t("{agent} is paused", { agent: held.path })}` : "";
  const text = (all > 1 ? t("Waiting for {names} ({running} of {all})", { names, running: running.length, all }) : t("Waiting for {names}", { names })) + paused;
  const begun = running.map((path) => Date.parse(calledAt(store, path))).filter((at) => !Number.isNaN(at));
  if (!begun.length) return text;
  const time = span(now - Math.min(...begun));
  return `${text} · ${running.length > 1 ? t("longest {time}", { time }) : time}`;
}

/** When an agent was called last. @param {Store} store @param {string} path */
function calledAt(store, path) {
  return (store.calls.get(path) ?? store.birth(path))?.at ?? "";
}

/**
 * @param {Store} store
 * @param {TreeNode} node
 * @param {number} now
 */
function acting(store, node, now) {
  if (node.kind === "plan") return node.doing ? t("Running: {steps}", { steps: node.doing }) : t("Deciding what to do next");
  const calls = [...store.outputs].filter(([, output]) => output.agent === node.path).map(([n]) => store.record(n));
  return timed(t("{function} is running", { function: node.doing || t("A tool") }), calls[0]?.at ?? "", now);
}

/** When the pause of an agent began: its own pause, or that of the nearest paused ancestor. @param {Store} store @param {TreeNode} node */
function pausedSince(store, node) {
  for (let path = node.path; path; path = path === "/" ? "" : path.slice(0, path.lastIndexOf("/")) || "/") {
    if (store.node(path)?.paused) return store.own(path).findLast((record) => record.kind === "control" && record.op === "pause")?.at ?? "";
  }
  return "";
}

/**
 * Words with the elapsed time, if the start is known.
 * @param {string} text
 * @param {string} since
 * @param {number} now
 */
function timed(text, since, now) {
  const at = Date.parse(since);
  return Number.isNaN(at) ? text : `${text} · ${span(now - at)}`;
}

/** The line at the end of the selected agent's dialogue. */
export class ActivityLine {
  #line = el("p", { className: "live-line", "aria-live": "off", hidden: true });
  #text = el("span", { className: "live-text" });
  #why = el("span", { className: "live-why" });
  #stop = el("button", { type: "button", className: "link" }, t("Stop"));

  /**
   * @param {Store} store
   * @param {(node: TreeNode) => void} stop
   */
  constructor(store, stop) {
    this.store = store;
    this.#line.append(this.#text, this.#stop, this.#why);
    part("drafts").after(this.#line);
    this.#stop.addEventListener("click", () => {
      const node = store.node(store.selected);
      if (node) stop(node);
    });
    const update = onceAFrame(() => this.#update());
    for (const what of ["tree", "activity", "selected", "moved", "records", "reset", "tick"]) store.addEventListener(what, update);
    setInterval(() => document.hidden || store.tick(), 1000);
    update();
  }

  #update() {
    const { store } = this;
    const node = store.past ? undefined : store.node(store.selected);
    const line = node && lineOf(store, node, store.now());
    this.#line.hidden = !line;
    if (!line) return;
    this.#line.dataset.kind = line.kind;
    setText(this.#text, line.text);
    setText(this.#why, heard(line.why ?? ""));
    this.#stop.hidden = !line.stop;
    this.#stop.setAttribute("aria-label", t("Stop {agent}", { agent: agentName(store.selected) }));
  }
}

/** Whether a plan waits to be started. @param {import("../state/types.d.ts").JournalRecord[]} records of the plan's path */
export function waitsForStart(records) {
  let first = false;
  for (const record of records) {
    const fields = /** @type {any} */ (record);
    if (record.kind === "spawn") first = fields.plan?.first === true;
    else if (record.kind === "reply" || (record.kind === "control" && fields.op === "start")) first = false;
  }
  return first;
}
