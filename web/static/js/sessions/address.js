// The address of what the page shows: #SESSION/agent/path, or #replay:SESSION/agent/path for a stored session that is
// only looked at. Going back leads to the session before.

/** @typedef {{session: string|null, path: string, readonly: boolean}} Place */

const STORED = "replay:";

/** What the browser's address names. @returns {Place} */
export function readAddress() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const slash = hash.indexOf("/");
  const session = slash < 0 ? hash : hash.slice(0, slash);
  const readonly = session.startsWith(STORED);
  return { session: (readonly ? session.slice(STORED.length) : session) || null, path: slash < 0 ? "/" : hash.slice(slash), readonly };
}

/**
 * Make the browser's address name a place.
 * @param {Place} place
 * @param {boolean} fresh it is a new place, which one can come back from
 */
export function writeAddress({ session, path, readonly }, fresh) {
  const name = `${readonly ? STORED : ""}${encodeURIComponent(session ?? "")}`;
  const hash = session === null ? "" : `#${name}${path === "/" ? "" : encodeURI(path)}`;
  if (!fresh && hash === location.hash) return;
  const address = `${location.pathname}${hash}`;
  if (fresh) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
