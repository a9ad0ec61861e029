// Reads a plan from its records: the steps of each version, and the outcome of each step.

import { number, t } from "../base/language.js";
import { otherName, wayName } from "./words.js";

/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/**
 * @typedef {object} Step
 * @property {string} id
 * @property {string} kind
 * @property {string} what the function, the child agent, or the task
 * @property {boolean} accepted whether the user must accept its result
 * @property {string} given its parameters, or the task of an agent, in one line each
 * @property {string[]} needs ids of the steps that it needs
 * @property {boolean} any whether one of them is enough
 * @property {string} by the step that it replaces or follows
 *
 * @typedef {object} StepState
 * @property {string} state
 * @property {number} attempt
 * @property {string} detail
 * @property {string} cause
 * @property {string} passed the kind of check that its result passed
 * @property {any} output the output of a thought
 * @property {number} n the record of its last change
 * @property {number} version the version that governed it
 *
 * @typedef {object} Answer what a model answered about the plan
 * @property {string} question
 * @property {string} model
 * @property {string} role
 * @property {number} prompt
 * @property {number} cached
 * @property {number} completion
 * @property {string} failed
 * @property {number} n its record
 *
 * @typedef {object} PlanFacts
 * @property {string} mode
 * @property {string} chosen why this mode was chosen, if it was not given
 * @property {string} options
 * @property {boolean} awaited whether it waits for a person to start it
 * @property {string} digest of its steps, which a yes to start it sends back
 * @property {boolean} paused
 * @property {Set<string>} held steps that a person has paused
 * @property {Answer[]} answers
 * @property {{status: string, reached: string, by: string, shortfall: string, confidence: number|null, bound: string, missing: [string, string][], notes: string[]}|null} ending
 * @property {Set<string>} copies steps that raced in a copy of the workspace
 * @property {[string, string][]} profile the facts of a profiled plan, by name
 *
 * @typedef {object} Version
 * @property {number} version
 * @property {string} reason
 * @property {number} n its record
 * @property {Map<string, Step>} steps
 */

/** Whether a step works, and is no thought about the plan. @param {string} kind */
export const isWork = (kind) => ["tool", "agent", "person"].includes(kind);

/**
 * The versions of a plan and the changes of its steps, in order.
 * @param {JournalRecord[]} records of the plan's path
 * @returns {{versions: Version[], changes: {step: string, state: StepState}[]}}
 */
export function readPlan(records) {
  /** @type {Version[]} */ const versions = [];
  /** @type {{step: string, state: StepState}[]} */ const changes = [];
  for (const record of records) {
    const fields = /** @type {any} */ (record);
    if (record.kind === "plan" && Array.isArray(fields.add)) {
      const steps = new Map(versions[versions.length - 1]?.steps ?? []);
      for (const id of list(fields.drop)) steps.delete(String(id));
      for (const data of [...list(fields.add), ...list(fields.rewire)]) {
        const step = stepOf(data);
        steps.set(step.id, step);
      }
      versions.push({ version: Number(fields.version) || versions.length + 1, reason: String(fields.reason ?? ""), n: record.n, steps });
    } else if (record.kind === "extend" && Array.isArray(fields.add) && versions.length) {
      for (const data of fields.add) {
        const step = stepOf(data);
        versions[versions.length - 1].steps.set(step.id, step);
      }
    } else if (record.kind === "node" && fields.node !== undefined) {
      const state = { state: String(fields.to ?? ""), attempt: Number(fields.attempt) || 0, detail: String(fields.detail ?? ""),
        cause: String(fields.cause ?? ""), passed: String(fields.validation ?? ""), output: fields.output ?? null,
        n: record.n, version: Number(fields.version) || 1 };
      changes.push({ step: String(fields.node), state });
    }
  }
  return { versions, changes };
}

/**
 * The other facts about the plan: how it runs, what models answered about it, and how it ended.
 * @param {JournalRecord[]} records of the plan's path
 * @returns {PlanFacts}
 */
export function factsOfPlan(records) {
  /** @type {PlanFacts} */ const facts = { mode: "", chosen: "", options: "", awaited: false, digest: "", paused: false, held: new Set(), answers: [], ending: null, copies: new Set(), profile: [] };
  for (const record of records) {
    const fields = /** @type {any} */ (record);
    if (record.kind === "spawn" && typeof fields.plan === "object" && fields.plan) {
      const { mode, chosen, options, first } = fields.plan;
      Object.assign(facts, { mode: String(mode ?? ""), chosen: String(chosen ?? ""), awaited: first === true,
        options: Object.entries(options ?? {}).map(([name, value]) => `${otherName(name)} ${value}`).join(", ") });
    } else if (record.kind === "plan" || record.kind === "extend") {
      facts.digest = record.digest ?? "";
    } else if (record.kind === "copy" && fields.op === "make") {
      if (fields.base) facts.copies.add(String(fields.node));
    } else if (record.kind === "ask") {
      const { prompt = 0, cached = 0, completion = 0 } = fields.usage ?? {};
      facts.answers.push({ question: String(fields.question ?? ""), model: String(fields.model ?? ""), role: String(fields.role ?? ""),
        prompt, cached, completion, failed: String(fields.failed ?? ""), n: record.n });
    } else if (record.kind === "control") {
      control(facts, fields);
    } else if (record.kind === "reply") {
      facts.awaited = false;
      const { reached = "", by = "" } = fields.verdict ?? {};
      facts.ending = { status: String(fields.plan || fields.status || ""), reached, by, shortfall: String(fields.shortfall ?? ""), confidence: fields.confidence ?? null,
        bound: String(fields.ended_by ?? "").replaceAll("_", " "), missing: Object.entries(fields.missing ?? {}).map(([id, why]) => [id, String(why)]),
        notes: list(fields.warnings).map(String) };
    }
    if (record.kind === "profile") facts.profile.push(...profiled(fields, facts.profile));
  }
  return facts;
}

/** @param {PlanFacts} facts @param {any} fields of a `control` record */
function control(facts, fields) {
  const node = String(fields.node ?? "");
  if (fields.op === "pause") node ? facts.held.add(node) : (facts.paused = true);
  else if (fields.op === "resume") node ? facts.held.delete(node) : (facts.paused = false);
  else if (fields.op === "start") facts.awaited = false;
  else if (fields.op === "retry") facts.ending = null;
}

/**
 * A `profile` record in words: the risk of running without asking again, a rule that fired, how far the results are trusted.
 * @param {any} fields
 * @param {[string, string][]} before the facts of earlier ones
 * @returns {[string, string][]}
 */
function profiled(fields, before) {
  const parts = (/** @type {any} */ named) => Object.entries(named ?? {}).map(([name, value]) => `${otherName(name)} ${rounded(value)}`).join(", ");
  const again = (/** @type {string} */ name) => before.some(([one]) => one === name) ? t("{name} after the repair", { name }) : name;
  if (fields.op === "rule") return [[RULES[fields.what] ?? String(fields.what), `${fields.node}: ${fields.rule}`]];
  /** @type {[string, string][]} */ const rows = fields.op === "risk"
    ? [[again(t("Risk")), t("{risk}, so the plan ran {route} ({components})", { risk: rounded(fields.risk), route: otherName(String(fields.route)), components: parts(fields.components) })],
      [again(t("Assumed")), list(fields.assumptions).join("; ")], [again(t("Fragile")), list(fields.fragile).join("; ")]]
    : [[again(t("Trust")), `${rounded(fields.trust)}, ${otherName(String(fields.verification))}${fields.repair ? t("; the plan was repaired once") : ""}`],
      [again(t("Reduced by")), parts(fields.penalties)], [again(t("Problems")), list(fields.issues).join("; ")],
      [t("Continues as"), wayName(String(fields.climbs ?? ""))]];
  return rows.filter(([, value]) => value);
}

/** @type {Record<string, string>} */
const RULES = { auto: t("Filled in by rule"), branch: t("Branched by rule"), recovery: t("Tried again by rule") };

/** @param {any} value */
const rounded = (value) => number(Math.round(Number(value) * 100) / 100);

/**
 * The state of each step while a version was the newest.
 * @param {{step: string, state: StepState}[]} changes
 * @param {number} version
 * @returns {Map<string, StepState>}
 */
export function statesOf(changes, version) {
  /** @type {Map<string, StepState>} */ const found = new Map();
  for (const { step, state } of changes) if (state.version <= version) found.set(step, state);
  return found;
}

/** @param {any} data @returns {Step} */
function stepOf(data) {
  const refs = typeof data?.refs === "object" && data.refs !== null ? Object.values(data.refs) : [];
  const needs = [...list(data?.after), ...refs.map((/** @type {any} */ ref) => ref?.step)].filter(Boolean).map(String);
  return { id: String(data?.id ?? "?"), kind: String(data?.kind ?? "tool"), what: String(data?.call || data?.task || ""), accepted: data?.contract?.by === "person", given: given(data),
    needs: [...new Set(needs)], any: data?.join === "any_of", by: String(data?.spawned_by ?? "") };
}

/** The most characters of one parameter. */
const SHOWN = 200;

/** What a step is given, in one line for each parameter. @param {any} data */
function given(data) {
  const lines = data?.kind === "agent" && data.task ? [short(data.task)] : [];
  for (const [name, value] of Object.entries(data?.params ?? {})) lines.push(`${name}: ${short(value)}`);
  for (const [name, ref] of Object.entries(data?.refs ?? {})) lines.push(`${name}: ← ${/** @type {any} */ (ref)?.step ?? ""}`);
  return lines.join("\n");
}

/** @param {unknown} value */
function short(value) {
  const text = (typeof value === "string" ? value : JSON.stringify(value)).replaceAll(/\s+/g, " ");
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** @param {unknown} value @returns {any[]} */
function list(value) {
  return Array.isArray(value) ? value : [];
}
