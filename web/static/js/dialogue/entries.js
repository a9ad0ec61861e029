// Selects the records that make up the dialogue of one agent, and their headings.
//
// An agent's dialogue consists of its caller's messages, its own turns and their results, its children's
// replies, interventions, and its own replies.

import { homeOf } from "./cards.js";
import { agentName } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {{from: string, html: string|undefined, look: string, source: JournalRecord, agent?: string}} Entry `source`: whose rendering holds `html`; `agent`: another one, whose words these are */

/** Kinds that are shown only in the inspector's list. */
const UNSEEN = new Set(["call", "module", "open", "recall", "node", "extend", "draw", "fire", "draft", "wake", "clearance", "state"]);
const MINOR = new Set(["gate", "control", "ask", "spawn", "discard", "close", "adopt", "migrate", "effects", "settle"]);

/** Why a person ended a text that is shown as far as it got. */
const BROKEN_OFF = new Set(["cancel", "pause", "interrupt"]);
/** The whole reply of an agent that a person stopped (core/views/ending.py). */
const STOPPED = /^The user cancelled this work\.$/;

/** The heading of a message to an agent, by when it is read. @type {Record<string, string>} */
const WHEN = {
  deliver: t("You, to this agent, before its next tool"), queue: t("You, to this agent, after this turn"), interrupt: t("You, to this agent: stop and read now"),
};

/**
 * The entry of `record` in the dialogue of the agent at `path`, or null if it has none there.
 * @param {JournalRecord} record
 * @param {string} path
 * @param {(n: number) => JournalRecord|undefined} find a record by its number
 * @returns {Entry|null}
 */
export function entryOf(record, path, find) {
  if (record.kind === "call" && record.turn && record.agent !== path) {
    const source = find(record.turn);
    const sent = source?.messages?.filter((message) => message.to === path) ?? [];
    const said = sent.find((message) => message.action === record.action) ?? (record.to === path ? sent[0] : undefined);
    return source && said ? { from: agentName(record.agent), html: said.html, look: "incoming", source, agent: record.agent } : null;
  }
  if (record.kind === "reply" && record.to === path && record.agent !== path) {
    return { from: record.agent, html: record.html, look: "child", source: record, agent: record.agent };
  }
  const made = record.agent === path && !UNSEEN.has(record.kind) && !homeOf(record, find) ? own(record) : null;
  return made && { ...made, html: record.html, source: record };
}

/**
 * @param {JournalRecord} record
 * @returns {{from: string, look: string}|null}
 */
function own(record) {
  if (record.kind === "compress" && record.by === "user") return { from: record.who ?? "", look: "minor" };
  if (record.kind === "say") return { from: record.who ?? t("You"), look: "incoming" };
  if (record.kind === "upload") return { from: record.who ?? "", look: "minor" };
  if (record.kind === "control" && (record.op === "send" || record.op === "reword" || record.op === "withdraw")) return null;
  if (record.kind === "control" && record.op === "cancel" && record.by === "user" && !record.node) return null;  // the reply says so
  if (record.kind === "control" && record.op === "inject") return { from: record.who ?? WHEN[record.mode ?? ""] ?? t("You"), look: "intervention" };
  if ((record.kind === "gate" && record.allow) || record.kind === "compress") return null;
  if (record.kind === "settle" && !record.left) return null;
  if (record.kind === "result" && record.status === "incomplete" && !record.call) return null;  // its denial says so
  if (record.kind === "discard" && BROKEN_OFF.has(record.reason ?? "")) return { from: agentName(record.agent), look: "own" };
  if (record.kind === "reply" && record.status === "cancelled" && STOPPED.test(record.body)) return { from: "", look: "minor reply" };
  if (record.kind === "result" || record.kind === "notice" || MINOR.has(record.kind)) return { from: record.who ?? "", look: "minor" };
  return { from: agentName(record.agent), look: record.kind === "reply" ? "own reply" : "own" };
}
