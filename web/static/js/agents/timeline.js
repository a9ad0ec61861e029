// When each agent did what: one row per agent, with bars for model calls, tools, waiting and pauses. The work that the
// root's answers waited for is highlighted. Idle time is shortened, because an hour away from the desk would otherwise
// hide the rest. A bar leads to its record; dragging along the bars looks back to that moment.

import { el, setText, styled } from "../base/dom.js";
import { agentName, cost, timeOfDay, tokens } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { countUpTo } from "../state/store.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("./inspector.js").Ask} Ask */
/** @typedef {"model"|"tool"|"wait"|"approval"|"paused"} Kind */
/** @typedef {[number, Kind, number, number|null, number, string, boolean]} Span see web/timeline.py */
/** @typedef {{started: string, ms: number, agents: string[], spans: Span[], critical: number, more: number}} Told */
/** @typedef {{from: number, to: number, left: number, right: number}} Piece a stretch of time and where it is drawn, in parts of the whole */

/** Milliseconds between two requests while records arrive. */
const REST = 1000;
/** The largest share of the width for a stretch without work, and the milliseconds up to which one is not shortened. */
const PAUSE = 0.03;
const SHORT = 2000;
/** The number of rows that are put into the page at once. */
const AT_ONCE = 150;

/** @type {Record<Kind, string>} */
const WORDS = { model: t("model"), tool: t("tool"), wait: t("waiting"), approval: t("waiting for you"), paused: t("paused") };

export class TimelineView {
  #said = el("p", { className: "facts", role: "status" });
  #rows = el("div", { className: "timeline-rows" });
  #cursor = el("div", { className: "timeline-cursor", hidden: true });
  #chart = el("div", { className: "timeline-chart" }, this.#rows, this.#cursor);
  #inner = el("div", { className: "timeline" });
  #large = el("button", { type: "button" }, t("Enlarge"));
  /** Created when it is first needed. @type {HTMLDialogElement|undefined} */ #dialog;
  element = el("div", {}, this.#inner);
  /** @type {Told|null} */ #told = null;
  /** What the shown answer is about. */ #answered = "";
  #asking = false;
  /** @type {Piece[]} */ #pieces = [];
  #most = AT_ONCE;

  /**
   * @param {Store} store
   * @param {Ask} ask
   * @param {{reveal: (n: number) => void, choose: (path: string) => void}} actions
   */
  constructor(store, ask, actions) {
    this.store = store;
    this.ask = ask;
    this.actions = actions;
    const legend = el("ul", { className: "timeline-legend" }, ...Object.entries(WORDS).map(([kind, words]) => el("li", {}, el("span", { className: "timeline-bar", "data-kind": kind, "aria-hidden": "true" }), words)),
      el("li", {}, el("span", { className: "timeline-bar critical", "data-kind": "model", "aria-hidden": "true" }), t("the answer waited for this")));
    this.#large.addEventListener("click", () => this.#enlarge());
    this.#inner.append(el("div", { className: "timeline-head" }, this.#said, this.#large), legend, el("p", { className: "facts" }, t("Drag along the bars to see the session as it was at that moment. Arrow keys move from bar to bar; Enter shows the bar in the dialogue.")), this.#chart);
    this.#chart.addEventListener("keydown", (event) => this.#key(event));
    this.#chart.addEventListener("pointerdown", (event) => this.#drag(event));
  }

  /** Show the timeline. Asks the server only if there are new records. */
  async show() {
    const about = `${this.store.session.id} ${this.store.session.readonly} ${this.store.last}`;
    this.#mark();
    this.#count();
    if (about === this.#answered || this.#asking) return;
    this.#asking = true;
    try {
      await styled("timeline");
      const told = /** @type {Told} */ (this.store.last ? await this.ask("timeline", {}) : { started: "", ms: 0, agents: [], spans: [], critical: 0, more: 0 });
      if (told.started !== this.#told?.started) this.#most = AT_ONCE;
      this.#told = told;
      this.#answered = about;
      this.#draw(told);
    } catch (error) {
      setText(this.#said, error instanceof Error ? error.message : String(error));
    } finally {
      setTimeout(() => {
        this.#asking = false;
        if (this.element.isConnected) void this.show();
      }, REST);
    }
  }

  /** Show the timeline enlarged. */
  #enlarge() {
    if (!this.#dialog) {
      const title = el("h2", { id: "timeline-title" }, t("Timeline"));
      this.#dialog = el("dialog", { className: "timeline-large", "aria-labelledby": "timeline-title" },
        el("header", {}, title, el("form", { method: "dialog" }, el("button", {}, t("Close")))));
      this.#dialog.addEventListener("close", () => {
        this.element.append(this.#inner);
        this.#large.hidden = false;
        this.#mark();
        this.#large.focus();
      });
      document.body.append(this.#dialog);
    }
    this.#dialog.append(this.#inner);
    this.#large.hidden = true;
    this.#dialog.showModal();
    this.#mark();
  }

  /** Do something in the page behind the dialog. @param {() => void} act */
  #leave(act) {
    if (this.#dialog?.open) this.#dialog.close();
    act();
  }

  /** @param {Told} told */
  #draw(told) {
    this.#pieces = scale(told);
    const focused = document.activeElement instanceof HTMLElement && this.#rows.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    /** @type {Span[][]} */ const of = told.agents.map(() => []);
    for (const span of told.spans) of[span[0]].push(span);
    const wholes = told.agents.map((path, index) => ({ path, spans: of[index].sort((a, b) => a[2] - b[2]) })).filter(({ spans }) => spans.length);
    this.#rows.replaceChildren(...wholes.slice(0, this.#most).map(({ path, spans }) => this.#row(path, spans)));
    if (wholes.length > this.#most) {
      const more = el("button", { type: "button", className: "link" }, t("Show {count} more agents", { count: wholes.length - this.#most }));
      more.addEventListener("click", () => {
        this.#most += 10 * AT_ONCE;
        this.#draw(told);
      });
      this.#rows.append(more);
    }
    const first = /** @type {HTMLElement|null} */ (this.#rows.querySelector(".timeline-bar"));
    if (first) first.tabIndex = 0;
    if (focused) this.#focus(this.#rows.querySelector(`[data-key="${CSS.escape(focused)}"]`));
    const all = lasting(told.ms);
    const said = [told.critical ? t("{all} in total; the answers waited for {critical} of this work.", { all, critical: lasting(told.critical) }) : t("{all} in total.", { all })];
    if (told.more) said.push(plural(told.more, "{count} short bar is not drawn.", "{count} short bars are not drawn."));
    this.#count();
    setText(this.#said, wholes.length ? said.join(" ") : t("Nothing has been done yet."));
    this.#mark();
  }

  /**
   * @param {string} path
   * @param {Span[]} spans
   */
  #row(path, spans) {
    const name = el("button", { type: "button", className: "link timeline-name", title: path }, el("bdi", {}, agentName(path)));
    name.addEventListener("click", () => this.#leave(() => this.actions.choose(path)));
    const track = el("div", { className: "timeline-track", role: "group", "aria-label": this.#summary(path, spans) },
      ...this.#pieces.filter((piece, index) => index && piece.left !== this.#pieces[index - 1].right).map((piece) => {
        const cut = el("span", { className: "timeline-cut" });
        cut.style.left = `${100 * piece.left}%`;
        return cut;
      }),
      ...spans.map((span) => this.#bar(path, span)));
    return el("div", { className: "timeline-row" }, name, el("span", { className: "timeline-counted", title: t("Tokens and their cost"), "data-path": path }), track);
  }

  /** The tokens that each agent used, as far as the tree is known. */
  #count() {
    for (const place of /** @type {NodeListOf<HTMLElement>} */ (this.#rows.querySelectorAll(".timeline-counted"))) {
      const node = this.store.node(place.dataset.path ?? "");
      setText(place, node ? [tokens(node.prompt_tokens + node.completion_tokens), cost(this.store.session.prices, [node])].filter(Boolean).join(" · ") : "");
    }
  }

  /**
   * @param {string} path
   * @param {Span[]} spans
   */
  #summary(path, spans) {
    const kinds = /** @type {Kind[]} */ (Object.keys(WORDS));
    const sums = kinds.map((kind) => /** @type {const} */ ([kind, spans.filter((span) => span[1] === kind).reduce((sum, span) => sum + this.#length(span), 0)]));
    const parts = sums.filter(([, ms]) => ms).map(([kind, ms]) => [WORDS[kind], lasting(ms)].join(" "));
    return [agentName(path), parts.join(", ")].join(": ");
  }

  /** @param {Span} span */
  #length([, , begin, end]) {
    return (end ?? this.#told?.ms ?? begin) - begin;
  }

  /**
   * @param {string} path
   * @param {Span} span
   */
  #bar(path, span) {
    const [, kind, begin, end, n, label, critical] = span;
    const [left, right] = [this.#place(begin), this.#place(end ?? this.#told?.ms ?? begin)];
    const started = new Date(Date.parse(this.#told?.started ?? "") + begin).toISOString();
    const words = [label && kind !== "model" ? `${WORDS[kind]}: ${label}` : WORDS[kind], end === null ? t("{time} so far", { time: lasting(this.#length(span)) }) : lasting(this.#length(span)), timeOfDay(started),
      critical ? t("the answer waited for this") : ""].filter(Boolean).join(", ");
    const bar = el("button", { type: "button", className: `timeline-bar${critical ? " critical" : ""}${end === null ? " open" : ""}`, "data-kind": kind, tabIndex: -1, title: words, "aria-label": words, "data-n": n, "data-key": `${path} ${n} ${kind}` });
    bar.style.left = `${100 * left}%`;
    bar.style.width = `${100 * (right - left)}%`;
    bar.addEventListener("click", () => this.#leave(() => this.actions.reveal(n)));
    return bar;
  }

  // --- time and place

  /** The position of a moment, as a fraction of the width. @param {number} ms */
  #place(ms) {
    const piece = this.#pieces.find(({ to }) => ms <= to) ?? this.#pieces[this.#pieces.length - 1];
    if (!piece) return 0;
    return piece.left + (piece.right - piece.left) * Math.max(0, Math.min(1, (ms - piece.from) / Math.max(1, piece.to - piece.from)));
  }

  /** The moment at a position. @param {number} part */
  #moment(part) {
    const piece = this.#pieces.find(({ right }) => part <= right) ?? this.#pieces[this.#pieces.length - 1];
    if (!piece) return 0;
    return piece.from + (piece.to - piece.from) * Math.max(0, Math.min(1, (part - piece.left) / Math.max(1e-9, piece.right - piece.left)));
  }

  /** The moment that the session is looked back to. */
  #mark() {
    const { at } = this.store;
    const record = at === null ? undefined : this.store.record(at);
    const track = this.#rows.querySelector(".timeline-track");
    this.#cursor.hidden = !record || !this.#told || !track;
    if (!record || !this.#told || !track) return;
    const [box, chart] = [track.getBoundingClientRect(), this.#chart.getBoundingClientRect()];
    const part = this.#place(Date.parse(record.at) - Date.parse(this.#told.started));
    this.#cursor.style.left = `${box.left - chart.left + part * box.width}px`;
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    const track = event.target instanceof Element ? event.target.closest(".timeline-track") : null;
    if (!track || event.button !== 0 || !this.#told) return;
    const { left, width } = track.getBoundingClientRect();
    const start = event.clientX;
    const began = Date.parse(this.#told.started);
    let moved = false;
    const move = (/** @type {PointerEvent} */ { clientX }) => {
      if (!moved && Math.abs(clientX - start) < 4) return;
      if (!moved) this.#chart.setPointerCapture(event.pointerId);
      moved = true;
      const ms = this.#moment((clientX - left) / width);
      this.store.move(this.#recordAt(began + ms));
    };
    const end = () => {
      this.#chart.removeEventListener("pointermove", move);
      this.#chart.removeEventListener("pointerup", end);
      this.#chart.removeEventListener("pointercancel", end);
      if (!moved) return;
      // The drag ended on this bar, so it was not clicked.
      const swallow = (/** @type {Event} */ click) => click.stopPropagation();
      addEventListener("click", swallow, { capture: true });
      setTimeout(() => removeEventListener("click", swallow, { capture: true }));
    };
    this.#chart.addEventListener("pointermove", move);
    this.#chart.addEventListener("pointerup", end);
    this.#chart.addEventListener("pointercancel", end);
  }

  /** The newest record up to a moment. @param {number} ms */
  #recordAt(ms) {
    const { records } = this.store;
    let [low, high] = [0, records.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Date.parse(records[middle].at) <= ms) low = middle + 1;
      else high = middle;
    }
    return Math.max(1, records[Math.max(0, low - 1)]?.n ?? 1);
  }

  // --- by keyboard

  /** @param {KeyboardEvent} event */
  #key(event) {
    const bar = event.target instanceof HTMLElement ? event.target.closest(".timeline-bar") : null;
    if (!bar) return;
    const row = bar.closest(".timeline-row");
    /** @type {Record<string, () => Element|null|undefined>} */
    const ways = {
      ArrowRight: () => bar.nextElementSibling,
      ArrowLeft: () => bar.previousElementSibling,
      ArrowDown: () => nearest(row?.nextElementSibling, bar),
      ArrowUp: () => nearest(row?.previousElementSibling, bar),
      Home: () => row?.querySelector(".timeline-bar"),
      End: () => [...(row?.querySelectorAll(".timeline-bar") ?? [])].pop(),
    };
    const next = ways[event.key]?.();
    if (next === undefined) return;
    event.preventDefault();
    if (next?.classList.contains("timeline-bar")) this.#focus(next);
  }

  /** Tab reaches one bar: the last that had the focus. @param {Element|null} bar */
  #focus(bar) {
    if (!(bar instanceof HTMLElement)) return;
    for (const other of this.#rows.querySelectorAll('.timeline-bar[tabindex="0"]')) /** @type {HTMLElement} */ (other).tabIndex = -1;
    bar.tabIndex = 0;
    bar.focus();
    bar.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

/**
 * The bar of a row that is nearest to a given bar.
 * @param {Element|null|undefined} row
 * @param {Element} bar
 */
function nearest(row, bar) {
  const at = bar.getBoundingClientRect().left;
  const bars = [...(row?.querySelectorAll(".timeline-bar") ?? [])];
  return bars.sort((a, b) => Math.abs(a.getBoundingClientRect().left - at) - Math.abs(b.getBoundingClientRect().left - at))[0] ?? null;
}

/**
 * Map time to positions: stretches of work in proportion, idle stretches shortened.
 * @param {Told} told
 * @returns {Piece[]}
 */
export function scale({ spans, ms }) {
  /** @type {[number, number][]} */ const busy = [];
  for (const [, kind, begin, end] of [...spans].sort((a, b) => a[2] - b[2])) {
    if (kind === "paused" || kind === "approval") continue;
    const last = busy[busy.length - 1];
    if (last && begin <= last[1] + SHORT) last[1] = Math.max(last[1], end ?? ms);
    else busy.push([begin, end ?? ms]);
  }
  if (!busy.length) return [{ from: 0, to: Math.max(1, ms), left: 0, right: 1 }];
  const work = busy.reduce((sum, [from, to]) => sum + Math.max(1, to - from), 0);
  const rest = Math.min(PAUSE, 0.3 / busy.length);
  const width = 1 - rest * (busy.length - 1);
  let left = 0;
  return busy.map(([from, to]) => {
    const right = left + (width * Math.max(1, to - from)) / work;
    const piece = { from, to, left, right };
    left = right + rest;
    return piece;
  });
}

/** @param {number} ms */
function lasting(ms) {
  if (ms < 950) return t("{ms} ms", { ms: Math.round(ms) });
  if (ms < 59_500) return t("{seconds} s", { seconds: (ms / 1000).toFixed(ms < 9950 ? 1 : 0) });
  const seconds = Math.round(ms / 1000);
  if (seconds < 600) return t("{minutes} min {seconds} s", { minutes: Math.floor(seconds / 60), seconds: seconds % 60 });
  const minutes = Math.round(ms / 60_000);
  return minutes < 60 ? t("{minutes} min", { minutes }) : t("{hours} h {minutes} min", { hours: Math.floor(minutes / 60), minutes: minutes % 60 });
}
