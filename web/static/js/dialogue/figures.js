// What a call made besides its output (figures, files), shown under the call. Fetched with the first such result.

import { el, styled } from "../base/dom.js";
import { plural, t } from "../base/language.js";

/** @typedef {{agent: string, function?: string, artifacts?: {name: string, sha256: string}[]}} Result */
/** @typedef {import("./embeds.js").FetchEmbeds} FetchEmbeds */

/** The most that is shown under one call; the variables list all. */
const MOST = 6;
/** How often, and after how many milliseconds, the variables are asked for: an agent has them once it took the result in. */
const TRIES = 5;
const REST = 700;

/**
 * Show what a call made, at the end of its outcome.
 * @param {Element} outcome
 * @param {Result} result
 * @param {import("../state/store.js").Store} store
 * @param {import("../state/types.d.ts").Request} ask
 * @param {FetchEmbeds} embeds
 */
export async function showFigures(outcome, result, store, ask, embeds) {
  const made = result.artifacts ?? [];
  const [names] = await Promise.all([namesOf(result, store, ask), styled("embeds")]);
  const shown = made.slice(0, MOST).map(({ name, sha256 }) => ({ file: name.split("/").pop() ?? name, name: names.get(sha256) })).filter(({ name }) => name);
  if (!shown.length || !outcome.isConnected) return;

  const figures = shown.map(({ file, name }) => el("span", { className: "embed" },
    el("span", { className: "embed-caption" }, t("{file}, made by {call}", { file, call: result.function ?? "" })), " ", el("span", { className: "address" }, `$${name}`)));
  const more = made.length - MOST;
  const rest = more > 0 ? [el("p", { className: "facts" }, plural(more, "1 more is under Variables.", "{count} more are under Variables."))] : [];
  const list = el("div", { className: "figures" }, ...figures, ...rest);
  outcome.append(list);
  (await embeds()).fill(list, result.agent);
}

/**
 * The variables that hold what a call made, by the digest of their content.
 * @param {Result} result
 * @param {import("../state/store.js").Store} store
 * @param {import("../state/types.d.ts").Request} ask
 */
async function namesOf(result, store, ask) {
  const wanted = new Set((result.artifacts ?? []).map(({ sha256 }) => sha256));
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { list } = await ask("variables", { path: result.agent, at: store.at });
    const held = list.filter(({ sha256, origin }) => wanted.has(sha256) && origin === result.function);
    if (held.length) return new Map(held.map(({ sha256, name }) => [sha256, name]));
    await new Promise((again) => { setTimeout(again, REST); });
  }
  return new Map();
}
