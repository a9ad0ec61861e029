// A plan as its records tell it: which steps each version has, and what became of each.

/** @typedef {import("./types.js").JournalRecord} JournalRecord */
/**
 * @typedef {object} Step
 * @property {string} id
 * @property {string} kind
 * @property {string} what the function, the child agent, or the task
 * @property {string[]} needs ids of the steps that it stands behind
 * @property {boolean} any one of them is enough
 *
 * @typedef {object} StepState
 * @property {string} state
 * @property {number} attempt
 * @property {string} detail
 * @property {number} n the record of the last change
 * @property {number} version that governed it
 *
 * @typedef {object} Version
 * @property {number} version
 * @property {string} reason
 * @property {number} n its record
 * @property {Map<string, Step>} steps
 */

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
    } else if (record.kind === "node" && fields.node !== undefined) {
      const state = { state: String(fields.to ?? ""), attempt: Number(fields.attempt) || 0, detail: String(fields.detail ?? ""),
        n: record.n, version: Number(fields.version) || 1 };
      changes.push({ step: String(fields.node), state });
    }
  }
  return { versions, changes };
}

/**
 * The state of each step when a version was the newest.
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
  return { id: String(data?.id ?? "?"), kind: String(data?.kind ?? "tool"), what: String(data?.call || data?.task || ""),
    needs: [...new Set(needs)], any: data?.join === "any_of" };
}

/** @param {unknown} value @returns {any[]} */
function list(value) {
  return Array.isArray(value) ? value : [];
}
