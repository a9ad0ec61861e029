// Numbers, times and words for people.

/** @param {number} count */
export function tokens(count) {
  if (count < 1000) return String(count);
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`;
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/**
 * @param {number} part
 * @param {number} whole
 */
export function share(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** @param {string} iso */
export function timeOfDay(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : clock.format(at);
}

/** @param {string} iso */
export function dateTime(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : day.format(at);
}

/** @param {string} path */
export function agentName(path) {
  return path === "/" ? "Root agent" : path;
}

/** The first line with words in it, without Markdown's marks. @param {string} text */
export function snippet(text) {
  const line = text.split("\n").find((each) => /[\p{L}\p{N}]/u.test(each)) ?? "";
  return line.replace(/[`*_#>]/g, "").trim().slice(0, 120);
}

/** @param {number} size */
export function bytes(size) {
  if (size < 1024) return `${size} B`;
  return size < 1024 * 1024 ? `${(size / 1024).toFixed(1)} kB` : `${(size / 1024 / 1024).toFixed(1)} MB`;
}
