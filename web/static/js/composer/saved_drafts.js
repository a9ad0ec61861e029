// Text that was typed but not sent. Each text belongs to its session and agent, and survives a reload.

const PREFIX = "iact.draft";

/** @type {Map<string, string>} where a browser keeps nothing for us */
const unkept = new Map();

/**
 * The key of a text: its session and agent.
 * @param {import("../state/store.js").Store} store
 */
export function addressee(store) {
  const { session, selected, at, past } = store;
  return past ? `${session.id ?? ""} past ${at ?? ""}` : `${session.id ?? ""} ${selected}`;
}

/** @param {string} key */
export function draftOf(key) {
  try {
    return sessionStorage.getItem(`${PREFIX} ${key}`) ?? "";
  } catch {
    return unkept.get(key) ?? "";
  }
}

/**
 * @param {string} key
 * @param {string} text
 */
export function keepDraft(key, text) {
  try {
    if (text) sessionStorage.setItem(`${PREFIX} ${key}`, text);
    else sessionStorage.removeItem(`${PREFIX} ${key}`);
  } catch {
    unkept.set(key, text);
  }
}
