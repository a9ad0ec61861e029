// Formats numbers, times and words for people.

import { locale, t } from "./language.js";

const tenths = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const hundredths = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** A sum, in the currency in which prices were given. @param {number} sum */
export function money(sum) {
  return hundredths.format(sum);
}

/**
 * The total cost of all nodes, each at the price of its model.
 * @param {import("../state/types.d.ts").Prices|undefined} prices
 * @param {{model: string, prompt_tokens: number, cached_tokens: number, completion_tokens: number}[]} nodes
 */
export function cost(prices, nodes) {
  if (!prices) return "";
  const sum = nodes.reduce((total, { model, prompt_tokens: prompt, cached_tokens: cached, completion_tokens: written }) => {
    const price = prices.models?.[model] ?? prices;
    return total + (prompt - cached) * price.prompt + cached * price.cached + written * price.completion;
  }, 0) / 1e6;
  return sum > 0 && sum < 0.01 ? t("below 0.01") : money(sum);
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

/** What a finished agent did not achieve, or that it waits for an answer, if so. @param {import("../state/types.d.ts").TreeNode} node */
export function endedAs(node) {
  switch (node.ended) {
    case "partial": return t("some steps failed");
    case "failed": case "not_reached": return t("did not reach its goal");
    case "partly": return t("goal reached in part");
    case "unknown": return t("not known whether its goal is reached");
    case "stopped": return t("stopped");
    case "tokens": return t("token limit reached");
    case "turns": return t("limit of turns reached");
    case "money": return t("budget of money reached");
    case "quota": return t("quota reached");
    case "time": return t("time limit reached");
    case "context": return t("context is full");
    case "loop": return t("repeated itself");
    case "asks": return t("asks its caller");
    case "length": return t("cut off at the length limit");
    default: return "";
  }
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
