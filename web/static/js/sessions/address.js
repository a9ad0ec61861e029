// The address of what the page shows: #SESSION/agent/path, or #replay:SESSION/agent/path for a stored session that is
// only viewed. Going back leads to the previous session.

/** @typedef {{session: string|null, path: string, readonly: boolean}} Place */

const STORED = "replay:";

/** The place in the browser's address. @returns {Place} */
export function readAddress() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const slash = hash.indexOf("/");
  const session = slash < 0 ? hash : hash.slice(0, slash);
  const readonly = session.startsWith(STORED);
  return { session: (readonly ? session.slice(STORED.length) : session) || null, path: slash < 0 ? "/" : hash.slice(slash), readonly };
}

/**
 * Write a place into the browser's address.
 * @param {Place} place
 * @param {boolean} fresh whether it becomes a new entry in the browser's history
 */
export function writeAddress({ session, path, readonly }, fresh) {
  const name = `${readonly ? STORED : ""}${encodeURIComponent(session ?? "")}`;
  const hash = session === null ? "" : `#${name}${path === "/" ? "" : encodeURI(path)}`;
  if (!fresh && hash === location.hash) return;
  const address = `${location.pathname}${hash}`;
  if (fresh) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
