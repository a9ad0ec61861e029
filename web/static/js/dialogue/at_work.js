// A recorded session in little: its agents as a tree, and what each of them does, as it happened. Fetched by an empty page.

import { el, icon, setText } from "../base/dom.js";
import { stateName } from "../base/format.js";
import { heard, t } from "../base/language.js";

/** @typedef {import("../state/wire.d.ts").Timeline} Told */
/** @typedef {{begin: number, end: number, state: string, words: string}} Piece */
/** @typedef {{row: HTMLElement, mark: HTMLElement, words: HTMLElement, bars: HTMLElement[], pieces: Piece[]}} Row */

/** Milliseconds for which the end is shown before it begins again. */
const REST = 4000;
/** The part of the recording that a picture shows that does not move. */
const STILL = 0.75;
/** What an agent does, by the kind of a span: the state of its mark, as in the tree. @type {Record<string, string>} */
const STATES = { model: "thinking", tool: "acting", wait: "waiting", approval: "waiting", paused: "paused" };

/**
 * Fill `place` with the recording. It plays, unless the user prefers that nothing moves, and can be stopped.
 * @param {HTMLElement} place
 * @param {{id: string, title: string}} example
 * @param {Pick<import("./welcome.js").Actions, "ask"|"open">} actions
 */
export async function atWork(place, { id, title }, { ask, open }) {
  const told = await ask("example.timeline", { example: id });
  const rows = told.agents.map((path, index) => made(path, told, index));
  const button = el("button", { type: "button", className: "icon" });
  const watch = el("button", { type: "button", className: "link" }, t("Watch this recording"));
  watch.addEventListener("click", () => open(id));
  const names = told.agents.map((path) => nameOf(path)).join(", ");
  const picture = el("div", { className: "at-work-rows", role: "img", "aria-label": t("The agents of the recording “{title}” at work: {names}", { title: heard(title), names }) },
    ...rows.map(({ row }) => row));
  place.append(picture, el("p", { className: "at-work-foot" }, button, el("span", {}, heard(title)), watch));
  play(place, rows, told.ms, button);
}

/**
 * @param {HTMLElement} place
 * @param {Row[]} rows
 * @param {number} whole milliseconds
 * @param {HTMLElement} button
 */
function play(place, rows, whole, button) {
  let moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let at = moves ? 0 : whole * STILL;
  let before = 0;
  const frame = (/** @type {number} */ now) => {
    if (!moves || !place.isConnected) return;
    // A page in the background gets no frames; it goes on where it was.
    at += Math.min(100, now - before);
    before = now;
    if (at > whole + REST) at = 0;
    for (const row of rows) show(row, at);
    requestAnimationFrame(frame);
  };
  const begin = () => {
    button.replaceChildren(icon(moves ? "pause" : "resume"), el("span", { className: "sr" }, moves ? t("Stop the picture") : t("Play the picture")));
    before = performance.now();
    if (moves) requestAnimationFrame(frame);
  };
  button.addEventListener("click", () => {
    moves = !moves;
    begin();
  });
  for (const row of rows) show(row, at);
  begin();
}

/**
 * @param {string} path
 * @param {Told} told
 * @param {number} agent its index
 * @returns {Row}
 */
function made(path, told, agent) {
  const spans = told.spans.filter(([whose]) => whose === agent);
  const pieces = spans.map(([, kind, begin, end, , label]) => ({ begin, end: end ?? told.ms, state: STATES[kind], words: wordsOf(kind, label) }));
  const bars = spans.map(([, kind, begin], index) => {
    const bar = el("span", { className: "at-work-bar", "data-kind": kind });
    bar.style.left = `${(100 * begin) / told.ms}%`;
    bar.dataset.width = String((100 * (pieces[index].end - begin)) / told.ms);
    return bar;
  });
  const mark = el("span", { className: "mark" });
  const words = el("span", { className: "node-doing" });
  const name = el("span", { className: "at-work-name" }, mark, el("span", { className: "node-name" }, nameOf(path)), words);
  name.style.setProperty("--level", String(path === "/" ? 0 : path.split("/").length - 1));
  return { row: el("div", { className: "at-work-row", "aria-hidden": "true" }, name, el("span", { className: "at-work-track" }, ...bars)), mark, words, bars, pieces };
}

/**
 * @param {Row} row
 * @param {number} at milliseconds
 */
function show({ row, mark, words, bars, pieces }, at) {
  const first = Math.min(...pieces.map(({ begin }) => begin));
  const last = Math.max(...pieces.map(({ end }) => end));
  const now = pieces.findLast(({ begin, end }) => begin <= at && at < end);
  row.classList.toggle("unborn", at < first);
  mark.dataset.state = now ? now.state : at >= last ? "done" : "idle";
  mark.dataset.ended = "";
  setText(words, now?.words ?? (at >= last ? stateName("done") : ""));
  bars.forEach((bar, index) => {
    const { begin, end } = pieces[index];
    const part = Math.max(0, Math.min(1, (at - begin) / Math.max(1, end - begin)));
    bar.style.width = `${part * Number(bar.dataset.width)}%`;
    bar.hidden = part === 0;
  });
}

/**
 * @param {string} kind
 * @param {string} label
 */
function wordsOf(kind, label) {
  if (kind === "model") return t("writes");
  if (kind === "tool") return label;
  return kind === "wait" ? t("waits for {names}", { names: label.split(", ").map(nameOf).join(", ") }) : t("waits for you");
}

/** @param {string} path */
function nameOf(path) {
  return path === "/" ? t("Root agent") : path.slice(path.lastIndexOf("/") + 1);
}
