// The right pane: everything about the selected agent, in tabs. Only the tab that is shown does any work.

import { el, insert, onceAFrame, part, styled } from "../base/dom.js";
import { timeOfDay } from "../base/format.js";
import { t } from "../base/language.js";
import { Rows } from "../base/row_list.js";
import { countUpTo } from "../state/store.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {import("../state/types.d.ts").Request} Ask asks the server about what is shown */
/** @typedef {"facts"|"plan"|"files"|"timeline"|"context"|"variables"|"memory"|"gate"|"records"} Tab */

/** @type {[Tab, string][]} */
export const TABS = [["facts", t("Overview")], ["plan", t("Plan")], ["files", t("Files")], ["timeline", t("Timeline")], ["context", t("Context")], ["variables", t("Variables")], ["memory", t("Memory")], ["gate", t("Permissions")], ["records", t("Journal")]];
/** The shortest time in milliseconds between two requests while the session changes. */
const REST = 160;
const LOADING = t("Earlier entries are still loading.");
/** The number of turns whose memories are shown. */
const MEMORIES = 30;

export class Inspector {
  #pane = part("inspector");
  #tabs = part("tabs");
  /** @type {Tab} */ #tab = "facts";
  /** The turn whose context is shown, by the number of its record; 0: the newest. */ #turn = 0;
  /** The newest question; answers to older ones are dropped. */ #question = 0;
  /** What the shown answer is about. */ #answered = "";
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;
  #everyone = el("input", { type: "checkbox" });
  #denied = el("input", { type: "checkbox" });
  #records;
  #decisions;
  /** Fetched with the first plan. @type {import("../plans/graph.js").PlanView|undefined} */ #plan;
  /** Fetched when it is first shown. @type {import("./timeline.js").TimelineView|undefined} */ #timeline;
  /** Fetched when files are first shown. @type {import("../files/workspace.js").WorkspaceView|undefined} */ #workspace;

  /**
   * @param {Store} store
   * @param {Ask} ask
   * @param {(n: number) => void} reveal
   * @param {(path: string, name: string) => void} open shows a variable
   * @param {{open: (path: string, options?: {at?: number|null, since?: number}) => void, fetch: import("../state/types.d.ts").Fetch}} files
   *   shows a file, and downloads
   */
  constructor(store, ask, reveal, open, files) {
    this.store = store;
    this.ask = ask;
    this.reveal = reveal;
    this.open = open;
    this.files = files;
    this.#records = new Rows(this.#pane, 26, (record) => this.#row(record), t("Journal entries, newest first"));
    this.#decisions = new Rows(this.#pane, 48, (record) => this.#decision(record), t("Calls allowed and denied, newest first"));
    store.addEventListener("selected", () => this.#plan?.reset());
    for (const [tab, label] of TABS) {
      // The plan is offered, and shown, as soon as it is known that there is one.
      const button = el("button", { type: "button", role: "tab", id: `tab-${tab}`, "data-tab": tab, "aria-controls": "inspector-panel", hidden: tab === "plan" }, label);
      button.addEventListener("click", () => this.show(tab));
      this.#tabs.append(button);
    }
    const fade = onceAFrame(() => this.#fade());
    this.#tabs.addEventListener("scroll", fade, { passive: true });
    new ResizeObserver(fade).observe(this.#tabs);
    this.#pane.id = "inspector-panel";
    this.#tabs.addEventListener("keydown", (event) => this.#key(event));
    const update = onceAFrame(() => this.#update());
    for (const what of ["tree", "records", "rendered", "selected", "session", "reset", "moved"]) store.addEventListener(what, update);
    for (const what of ["selected", "reset", "moved"]) store.addEventListener(what, () => { this.#turn = 0; });
    for (const filter of [this.#everyone, this.#denied]) filter.addEventListener("change", () => {
      this.#decisions.clear();
      update();
    });
    this.show("facts");
  }

  /** All tabs are in one row. If the row is wider than the pane, it fades where it continues. */
  #fade() {
    const { scrollLeft, clientWidth, scrollWidth } = this.#tabs;
    this.#tabs.classList.toggle("more-left", scrollLeft > 1);
    this.#tabs.classList.toggle("more-right", scrollLeft + clientWidth < scrollWidth - 1);
  }

  /** Go to a tab, also if the pane is hidden. @param {Tab} tab */
  reach(tab) {
    const opener = document.querySelector('[data-drawer="inspector"]');
    const open = this.#pane.closest(".pane")?.classList.contains("open");
    if (!open && opener instanceof HTMLElement && opener.offsetParent !== null) opener.click();
    this.show(tab);
    /** @type {HTMLElement|null} */ (this.#tabs.querySelector('[aria-selected="true"]'))?.focus();
  }

  /** @param {Tab} tab */
  show(tab) {
    this.#tab = tab;
    this.#turn = 0;
    this.#answered = "";
    for (const button of this.#tabs.children) {
      const chosen = button.getAttribute("data-tab") === tab;
      button.setAttribute("aria-selected", String(chosen));
      /** @type {HTMLElement} */ (button).tabIndex = chosen ? 0 : -1;
      if (chosen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.#pane.setAttribute("aria-labelledby", `tab-${tab}`);
    this.#pane.scrollTop = 0;
    this.#records.clear();
    this.#decisions.clear();
    this.#pane.replaceChildren();
    if (tab === "gate") this.#pane.append(this.#filters(), this.#decisions.list);
    if (tab === "records") this.#pane.append(this.#records.list);
    this.#update();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const shown = /** @type {HTMLElement[]} */ ([...this.#tabs.children].filter((tab) => !(/** @type {HTMLElement} */ (tab).hidden)));
    const at = shown.findIndex((tab) => tab.dataset.tab === this.#tab);
    const next = shown[(at + step + shown.length) % shown.length];
    this.show(/** @type {Tab} */ (next.dataset.tab));
    next.focus();
  }

  #update() {
    const { store } = this;
    this.#offer();
    if (this.#tab === "facts" && store.session.id === null) this.#put([nothing(t("Once you have written a message, this shows what agents do and use."))]);
    else if (this.#tab === "facts") void this.#showFacts();
    else if (this.#tab === "records") this.#records.show([...store.own(store.selected)].reverse());
    else if (this.#tab === "gate") this.#showDecisions();
    else if (this.#tab === "plan") void this.#showPlan();
    else if (this.#tab === "memory") this.#showMemories();
    else if (this.#tab === "timeline" && store.session.id !== null) void this.#showTimeline();
    else if (this.#tab === "files" && store.session.id !== null) void this.#showFiles();
    else if (store.session.id === null) this.#put([nothing(t("There are no sessions yet."))]);
    else this.#inquire();
  }

  async #showFacts() {
    const { factsOf } = await import("./facts.js");
    // By the time it is here, another tab or an empty session may be shown.
    if (this.#tab === "facts" && this.store.session.id !== null) this.#put(factsOf(this.store));
  }

  /** Most sessions have no plan, so the code that draws one is not loaded at the start. */
  async #showPlan() {
    const [{ PlanView }] = await Promise.all([import("../plans/graph.js"), styled("plan")]);
    const { store } = this;
    if (this.#tab !== "plan") return;
    this.#plan ??= new PlanView(this.reveal, this.ask);
    if (!this.#pane.contains(this.#plan.element)) this.#pane.replaceChildren(this.#plan.element);
    this.#plan.show(store.own(store.selected), { path: store.selected, live: store.session.id !== null && !store.past && !store.session.readonly,
      prices: store.session.prices, allowance: store.node(store.selected)?.allowance ?? 0 });
  }

  async #showTimeline() {
    const { TimelineView } = await import("./timeline.js");
    if (this.#tab !== "timeline") return;
    this.#timeline ??= new TimelineView(this.store, this.ask, { reveal: this.reveal, choose: (path) => this.store.select(path) });
    if (!this.#pane.contains(this.#timeline.element)) this.#pane.replaceChildren(this.#timeline.element);
    await this.#timeline.show();
  }

  async #showFiles() {
    const { WorkspaceView } = await import("../files/workspace.js");
    if (this.#tab !== "files") return;
    this.#workspace ??= new WorkspaceView(this.store, this.ask, { ...this.files, reveal: this.reveal });
    if (!this.#pane.contains(this.#workspace.element)) this.#pane.replaceChildren(this.#workspace.element);
    await this.#workspace.show();
  }

  /** The tab for a plan is shown only if there is a plan. */
  #offer() {
    const planned = this.store.node(this.store.selected)?.kind === "plan" || this.store.own(this.store.selected).some((one) => one.kind === "plan");
    const button = this.#tabs.querySelector('[data-tab="plan"]');
    if (!(button instanceof HTMLElement) || button.hidden === !planned) return;
    button.hidden = !planned;
    this.#fade();
    if (!planned && this.#tab === "plan") this.show("facts");
    else if (planned && this.#tab === "facts") this.show("plan");
  }

  /** @param {HTMLElement[]} parts */
  #put(parts) {
    const place = this.#pane.scrollTop;
    this.#pane.replaceChildren(...parts);
    this.#pane.scrollTop = place;
  }

  // --- requests to the server

  /** Ask the server if the shown answer is about something else, but not at every record while many arrive. */
  #inquire() {
    if (this.#about().about === this.#answered || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { about, turn } = this.#about();
      if (about !== this.#answered && (this.#tab === "context" || this.#tab === "variables")) this.#answer(about, turn);
    }, this.#answered ? REST : 0);
  }

  #about() {
    const { session, selected } = this.store;
    const turns = this.#turns();
    const turn = this.#turn || (turns[turns.length - 1] ?? 0);
    const own = this.store.own(selected);
    const until = this.#tab === "context" ? turn : (own[own.length - 1]?.n ?? 0);
    return { about: `${this.#tab} ${session.id} ${selected} ${until} ${until ? "" : this.store.whole}`, turn };
  }

  /**
   * @param {string} about
   * @param {number} turn
   */
  async #answer(about, turn) {
    this.#answered = about;
    this.#question += 1;
    const question = this.#question;
    const tab = this.#tab;
    let parts;
    try {
      parts = tab === "context" ? await this.#context(turn) : tab === "variables" ? await this.#variables() : [];
    } catch (error) {
      parts = [nothing(error instanceof Error ? error.message : String(error))];
    }
    if (question === this.#question && tab === this.#tab) this.#put(parts);
  }

  /** The record numbers of the selected agent's turns. */
  #turns() {
    return this.store.own(this.store.selected).filter((record) => record.context).map((record) => record.n);
  }

  /** @param {number} turn */
  async #context(turn) {
    if (!turn) return [nothing(this.store.whole ? t("This agent has not asked its model yet.") : LOADING)];
    const seen = await this.ask("context", { path: this.store.selected, at: turn });
    const turns = this.#turns();
    const place = turns.indexOf(seen.record);
    const go = (/** @type {number} */ record) => {
      this.#turn = record;
      this.#update();
    };
    const { contextView } = await import("./context.js");
    return [contextView(seen, this.store.record(seen.record), {
      earlier: turns[place - 1] ?? 0, later: turns[place + 1] ?? 0, go, reveal: this.reveal,
    })];
  }

  async #variables() {
    const path = this.store.selected;
    const { list } = await this.ask("variables", { path });
    const { variableList } = await import("./variables.js");
    return [variableList(list, (name) => this.open(path, name))];
  }

  /** What was recalled from memory for each of the agent's turns, newest first. */
  #showMemories() {
    const { store } = this;
    const found = store.own(store.selected).filter((record) => record.kind === "recall").slice(-MEMORIES).reverse();
    const ready = found.map((record) => store.rendered(record)).every(Boolean);
    const key = `${store.session.id} ${store.whole} ${store.selected} ${found.map((record) => record.n).join(" ")} ${ready}`;
    if (key === this.#answered) return;
    this.#answered = key;
    if (!found.length) return this.#put([nothing(this.store.whole ? t("Nothing was recalled for this agent.") : LOADING)]);
    return this.#put(found.map((record) => {
      const head = el("button", { type: "button", className: "link", title: t("Show it in the dialogue") }, t("For the answer at {time}", { time: timeOfDay(record.at) }));
      head.addEventListener("click", () => this.reveal(record.n));
      const body = el("div", { className: "md" });
      insert(body, record.html ?? "");
      return el("section", { className: "memories" }, head, body);
    }));
  }

  // --- lists of records

  #filters() {
    return el("div", { className: "filters" }, el("label", {}, this.#everyone, ` ${t("Every agent")}`), el("label", {}, this.#denied, ` ${t("Denied only")}`));
  }

  #showDecisions() {
    const { store } = this;
    const all = this.#everyone.checked ? store.records.slice(0, countUpTo(store.records, store.shown)) : store.own(store.selected);
    const found = all.filter((record) => record.kind === "gate" && (record.allow !== true || !this.#denied.checked));
    this.#decisions.show(found.reverse());
    this.#decisions.list.dataset.empty = !store.whole ? LOADING : this.#denied.checked ? t("Nothing was denied.") : t("No tool has been called yet.");
  }

  /** @param {JournalRecord} record */
  #decision(record) {
    const allowed = record.allow === true;
    const impact = typeof record.impact !== "number" ? "" : record.impact >= 2 ? t("destroys or sends data out") : record.impact > 0 ? t("changes files") : t("only reads");
    const words = [this.#everyone.checked ? record.agent : "", impact, record.by && t("by {by}", { by: record.by }), record.reason].filter(Boolean).join(" · ");
    return this.#button(record, "decision",
      el("span", { className: `badge ${allowed ? "allowed" : "denied"}` }, allowed ? t("allowed") : t("denied")),
      el("span", { className: "function" }, record.function ?? ""), el("span", { className: "n" }, String(record.n)),
      el("span", { className: "why", title: words }, words));
  }

  /** @param {JournalRecord} record */
  #row(record) {
    const what = record.name && [record.name, record.version].filter(Boolean).join(" ");
    const words = [record.function, what, record.file, record.node, record.op, record.status ?? (record.kind === "node" ? record.to : ""),
      record.kind === "module" ? record.state : record.body].filter(Boolean).join(" · ");
    const row = this.#button(record, "", el("span", { className: "n" }, String(record.n)), el("span", {}, record.kind), el("span", {}, words));
    row.title = words;
    return row;
  }

  /**
   * @param {JournalRecord} record
   * @param {string} className
   * @param {...HTMLElement} parts
   */
  #button(record, className, ...parts) {
    const button = el("button", { type: "button", className, "data-n": record.n }, ...parts);
    button.addEventListener("click", () => this.reveal(record.n));
    return button;
  }
}

/** @param {string} text */
function nothing(text) {
  return el("p", { className: "nothing" }, text);
}
