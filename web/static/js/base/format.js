// Formats numbers, times and words for people.

import { locale, t } from "./language.js";

const tenths = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const hundredths = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** A sum, in the currency in which prices were given. @param {number} sum */
export function money(sum) {
  return hundredths.format(sum);
}

/** @param {number} count */
export function tokens(count) {
  if (count < 1000) return String(count);
  if (count < 100_000) return `${tenths.format(count / 1000)}k`;
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${tenths.format(count / 1_000_000)}M`;
}

/**
 * @param {number} part
 * @param {number} whole
 */
export function share(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

const date = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });

/** The time, with the day if it is not today. @param {string} iso */
export function timeOfDay(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : `${date.format(at)}, ${clock.format(at)}`;
}

/** @param {string} iso */
export function dateTime(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : day.format(at);
}

/** An elapsed time: 0:41, 12:05, 1:02:33. @param {number} ms */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}:${two(seconds % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** Tools by name, each with its running time. @param {{function?: string, at: string}[]} calls @param {number} now */
export function timed(calls, now) {
  return calls.map((call) => `${call.function ?? ""} (${span(now - Date.parse(call.at))})`).join(", ");
}

/** An agent's state, for people. @param {string} state */
export function stateName(state) {
  if (state === "opening") return t("opening…");
  return state === "cancelled" ? t("stopped") : t(state);
}

/** @param {string} path */
export function agentName(path) {
  return path === "/" ? t("Root agent") : path;
}

/** The first line that contains words, as it was typed. @param {string} text */
export function firstLine(text) {
  return (text.split("\n").find((each) => /[\p{L}\p{N}]/u.test(each)) ?? "").trim().slice(0, 120);
}

/** The same for a model's text, without Markdown markup. @param {string} text */
export function snippet(text) {
  return firstLine(text).replace(/[`*_#>]/g, "").trim();
}

/** @param {number} size */
export function bytes(size) {
  if (size < 1024) return `${size} B`;
  return size < 1024 * 1024 ? `${tenths.format(size / 1024)} kB` : `${tenths.format(size / 1024 / 1024)} MB`;
}
