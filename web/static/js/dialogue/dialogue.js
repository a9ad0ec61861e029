// The middle pane: the selected agent's dialogue, with the text that is being written at its end.

import { agentLink, Cards, fold, homeOf } from "./cards.js";
import { el, insert, onceAFrame, part, setText, styled } from "../base/dom.js";
import { Draft, showThought } from "./draft.js";
import { entryOf } from "./entries.js";
import { agentName, dateTime, timeOfDay } from "../base/format.js";
import { t } from "../base/language.js";
import { countUpTo } from "../state/store.js";
import { EntryWindow } from "../base/entry_window.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

const NEAR_THE_END = 80;

export class Dialogue {
  #list = part("dialogue");
  #drafts = part("drafts");
  #scroll = part("scroll");
  #toEnd = part("to-end");
  #live = part("live");
  #earlier = el("button", { className: "earlier", type: "button", hidden: true });
  #later = el("button", { className: "earlier", type: "button", hidden: true });
  /** The records that are entries of this dialogue, including those that are not shown yet. `n`: the record from which each
   * is shown: its own, or for a message that waited, the record that ended the wait. @type {{n: number, record: JournalRecord}[]} */
  #items = [];
  /** The replies that were written in an earlier turn, by the turn. @type {Map<number, number>} */ #replies = new Map();
  /** Messages that wait for an answer to be finished. @type {JournalRecord[]} */ #waiting = [];
  /** How many of the store's records have been read; negative if all must be read again. */ #seen = -1;
  #following = true;
  /** @type {Promise<import("./welcome.js").Welcome>|undefined} */ #welcome;
  /** Drafts that are shown, by the element that holds one. @type {WeakMap<Element, Draft>} */ #writing = new WeakMap();
  /** The entry that was jumped to, until the user scrolls: the entries above it may not have their height yet.
   * @type {Element|null} */
  #held = null;
  /** When the user last scrolled, as opposed to the page itself. */ #touched = -Infinity;

  /**
   * @param {Store} store
   * @param {import("./welcome.js").Actions & {choose: (path: string) => void}} actions
   * @param {(record: JournalRecord) => void} amend asks for another wording of a message
   * @param {import("./message_tools.js").Means} means the actions of a message's tools
   * @param {import("./embeds.js").FetchEmbeds} embeds
   * @param {(body: Element, n: number) => void} mark turns file names in a text into links
   */
  constructor(store, actions, amend, embeds, mark, means) {
    this.store = store;
    this.actions = actions;
    this.amend = amend;
    this.embeds = embeds;
    this.mark = mark;
    this.#scroll.insertBefore(this.#earlier, this.#list);
    this.#list.after(this.#later);
    this.cards = new Cards(store, this.#list, actions.choose, (outcome, result) => void import("./figures.js").then(({ showFigures }) => showFigures(outcome, result, store, actions.ask, embeds)).catch(() => undefined));
    this.window = new EntryWindow(this.#list, this.#scroll, ({ record }) => this.#entry(record), (earlier, later) => {
      this.#earlier.hidden = earlier === 0 && store.whole;
      this.#earlier.disabled = earlier === 0;
      this.#later.hidden = later === 0;
      setText(this.#earlier, earlier === 0 ? t("Earlier messages are loading…") : store.whole ? t("Show earlier messages ({earlier})", { earlier }) : t("Show earlier messages"));
      setText(this.#later, t("Show later messages ({later})", { later }));
      this.cards.refresh();
    });
    this.#earlier.addEventListener("click", () => this.window.earlier());
    this.#later.addEventListener("click", () => this.window.later());
    const update = onceAFrame(() => this.#update());
    const rebuild = () => {
      this.#seen = -1;
      update();
    };
    const moved = () => {
      this.#following = true;
      update();
    };
    for (const what of ["records", "live", "tree", "session", "examples"]) store.addEventListener(what, update);
    const dress = onceAFrame(() => this.cards.refresh());
    for (const what of ["records", "moved"]) store.addEventListener(what, dress);
    for (const what of ["selected", "reset"]) store.addEventListener(what, rebuild);
    store.addEventListener("earlier", () => this.#reach());
    store.addEventListener("redrawn", () => {
      for (const n of store.redrawn) {
        const body = this.#find(n)?.querySelector(":scope > .entry-body");
        body?.replaceChildren();
        body?.classList.add("awaited");  // filled with all records that arrived
      }
    });
    store.addEventListener("moved", moved);
    // Also on a new connection, because answers to requests on the old one will not arrive.
    for (const what of ["rendered", "session"]) store.addEventListener(what, () => this.#fillAwaited());
    // Which models are small is known with the session, which may come after its newest records.
    store.addEventListener("session", () => {
      for (const entry of this.#list.querySelectorAll(".entry[data-kind=reply]")) this.#markSmall(entry, this.store.record(Number(entry.getAttribute("data-n"))));
    });
    this.#scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    for (const what of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      this.#scroll.addEventListener(what, () => { this.#touched = performance.now(); this.#held = null; }, { passive: true });
    }
    // Heights settle after insertion (entries out of sight are laid out late), so the scroll is kept at the end on every change.
    const settle = new ResizeObserver(() => {
      if (this.#following) this.#toBottom();
      else this.#held?.scrollIntoView({ block: "center" });
    });
    for (const part of [this.#list, this.#drafts, this.#scroll]) settle.observe(part);
    // What comes later at the end of a dialogue, such as a plan that waits, makes it longer, too.
    new MutationObserver(() => { for (const part of this.#scroll.children) settle.observe(part); }).observe(this.#scroll, { childList: true });
    this.#toEnd.addEventListener("click", () => this.#follow());
    // The tools are not needed before the user points at something, so they are not loaded at the start.
    const reach = (/** @type {Event} */ event) => {
      const entry = event.target instanceof Element ? event.target.closest(".dialogue > .entry") : null;
      if (entry) void import("./message_tools.js").then(({ equip }) => equip(/** @type {HTMLElement} */ (entry), store, means, event.type));
    };
    for (const what of ["pointerover", "focusin", "pointerdown"]) this.#list.addEventListener(what, reach, { passive: true });
    rebuild();
  }

  /** Scroll to record `n` and mark it for a moment. @param {number} n */
  reveal(n) {
    const record = this.store.record(n);
    const index = countUpTo(this.#items, (record && homeOf(record, this.#record)?.n) ?? n) - 1;
    if (index < 0) return;
    this.#following = false;
    this.window.bring(index);
    const entry = this.#find(n) ?? this.#find(this.#items[index].record.n);
    if (!entry) return;
    this.#held = entry;
    entry.scrollIntoView({ block: "center" });
    entry.classList.add("flash");
    setTimeout(() => entry.classList.remove("flash"), 1600);
  }

  /** @param {number} n */
  #record = (n) => this.store.record(n);

  /** @param {number} n */
  #find(n) {
    return this.#list.querySelector(`[data-n="${n}"]`);
  }

  #update() {
    if (this.#seen < 0) this.#rebuild();
    else this.#goOn();
    this.#showReceipts();
    for (const entry of this.#list.querySelectorAll(".entry:is(.own, .child)")) this.#markReplied(entry);
    this.#showLive();
    this.#showEmpty();
    if (this.#following) this.#toBottom();
    else this.#toEnd.hidden = false;
  }

  #rebuild() {
    this.#list.querySelector(".empty")?.remove();
    this.#held = null;
    this.#items = [];
    this.#waiting = [];
    this.#seen = 0;
    this.#collect();
    this.window.reset(this.#items, this.#end());
    this.#drafts.replaceChildren();
    this.#following = true;
    this.#toEnd.hidden = true;
  }

  #goOn() {
    this.#collect();
    if (this.#end()) this.#list.querySelector(".empty")?.remove();
    const fresh = this.window.show(this.#end(), this.#following);
    if (this.store.at === null) this.#announce(fresh);
  }

  /** Records arrived that come before the present ones. */
  #reach() {
    if (this.#seen < 0) return;
    this.#items = [];
    this.#waiting = [];
    this.#seen = 0;
    this.#collect();
    this.window.replace(this.#items, this.#end(), (one, other) => one.record === other.record);
    if (this.#following) this.#toBottom();
  }

  /** Read the records that arrived. */
  #collect() {
    const { records, selected, first } = this.store;
    for (; this.#seen < records.length; this.#seen += 1) {
      const record = records[this.#seen];
      // The results of a turn are shown with the turn, which is not here yet.
      if ((record.turn ?? first) < first) continue;
      if (record.kind === "say" && record.waits && selected === "/") {
        this.#waiting.push(record);
        continue;
      }
      if (record.kind === "reply") this.#shownAs(record);
      if (entryOf(record, selected, this.#record)) this.#items.push({ n: record.n, record });
      if (this.#waiting.length) this.#release(record);
    }
  }

  /** A text that became a reply is not shown a second time: what its turn said, or the report of a plan. @param {JournalRecord} reply */
  #shownAs(reply) {
    if (reply.kind !== "reply") return;
    // Only a plan's report is passed on without a model.
    const isReport = reply.to === "user" && !reply.model && !reply.of;
    const report = isReport ? this.store.records.findLast((one) => one.n < reply.n && one.kind === "reply" && one.to === reply.agent) : undefined;
    const before = report?.body === reply.body ? report?.n : reply.of;
    if (before) this.#replies.set(before, reply.n);
  }

  /** A message that waited is shown after the answer that it waited for, or where it was sent. @param {JournalRecord} record */
  #release(record) {
    if (record.agent !== "/") return;
    const of = record.kind === "control" && (record.op === "send" || record.op === "withdraw") ? record.of : 0;
    const over = record.kind === "reply" ? this.#waiting : this.#waiting.filter((one) => one.n === of);
    if (!(record.kind === "control" && record.op === "withdraw")) this.#items.push(...over.map((one) => ({ n: record.n, record: one })));
    this.#waiting = this.#waiting.filter((one) => !over.includes(one));
  }

  /** The entry of a record, in its last wording if it was changed before it was read. @param {JournalRecord} record */
  #entryOf(record) {
    const entry = entryOf(record, this.store.selected, this.#record);
    const instead = this.store.rewordings.get(record.n);
    return entry && instead ? { ...entry, html: instead.html, source: instead } : entry;
  }

  /** The number of items that are shown. */
  #end() {
    return countUpTo(this.#items, this.store.shown);
  }

  /** @param {{record: JournalRecord}[]} fresh */
  #announce(fresh) {
    const reply = fresh.findLast(({ record }) => record.kind === "reply" && record.agent === this.store.selected)?.record;
    if (reply) setText(this.#live, t("Reply from {agent}: {body}", { agent: agentName(reply.agent), body: reply.body }));
  }

  /**
   * @param {JournalRecord} record a record that is an entry here
   * @returns {HTMLElement}
   */
  #entry(record) {
    const entry = this.#entryOf(record) ?? { from: "", html: record.html, look: "minor", source: record };
    const body = el("div", { className: "entry-body md" });
    this.#fill(body, entry);
    const receipt = el("span", { className: "receipt" }, entry.look === "intervention" ? this.#receipt(record.n) : "");
    const when = el("time", { className: "when", dateTime: record.at, title: `${dateTime(record.at)} · ${t("Journal entry {n}", { n: String(record.n) })}` }, timeOfDay(record.at));
    const from = entry.agent ? agentLink(entry.agent, entry.from) : entry.from;
    const head = el("header", { className: "entry-head" }, el("span", { className: "from" }, from), receipt, when);
    if (record.kind === "say" && record.said !== undefined) head.insertBefore(this.#amending(record), when);
    const made = el("article", { className: `entry ${entry.look}`, "data-n": record.n, "data-kind": record.kind, "aria-label": [entry.from || Dialogue.#name(record), timeOfDay(record.at)].join(", ") }, head, body);
    made.dataset.agent = record.agent;
    this.#markReplied(made);
    this.#markSmall(made, record);
    this.#offerAfter(made, record);
    if (entry.look !== "minor") made.tabIndex = 0;
    return made;
  }

  /** A text that became the reply is shown as the reply, once that is shown. @param {Element} entry */
  #markReplied(entry) {
    const reply = this.#replies.get(Number(entry.getAttribute("data-n")));
    entry.classList.toggle("replied", reply !== undefined && reply <= this.store.shown);
  }

  /** After a reply that is no answer, there is something to do. @param {Element} entry @param {JournalRecord} record */
  #offerAfter(entry, record) {
    const isOver = record.kind === "reply" && record.agent === this.store.selected && (record.status === "bound" || record.status === "failed");
    if (!isOver) return;
    void import("./after_reply.js").then(({ offerAfter }) => offerAfter(entry, record, this.store, this.actions.connect), () => undefined);
  }

  /** An answer of the small model on board says so, and leads to a larger one. @param {Element} entry @param {JournalRecord|undefined} record */
  #markSmall(entry, record) {
    if (record?.kind !== "reply") return;
    const model = record.model ?? this.store.record(Number(record.of ?? 0))?.model ?? "";
    if (!this.store.session.small?.includes(model) || entry.querySelector(":scope > .by-small")) return;
    const other = el("button", { className: "link", type: "button" }, t("Connect a model"));
    other.addEventListener("click", () => this.actions.connect());
    entry.append(el("p", { className: "by-small" }, t("The small model on board wrote this; it is often wrong."), " ", other));
  }

  /**
   * Insert an entry's HTML, or ask for it.
   * @param {Element} body
   * @param {import("./entries.js").Entry} entry
   */
  #fill(body, { html, source, agent, look }) {
    if (html === undefined) {
      const own = agent === undefined || look === "child";
      body.classList.add("awaited");
      this.store.rendered(source);
      // Until the HTML arrives, the plain text is shown, after a short delay to avoid flicker. While scrolling back, it is not.
      if (own && (this.store.session.opening || this.#following)) setText(body, source.body);
      return;
    }
    body.classList.remove("awaited");
    body.replaceChildren();
    insert(body, html);
    fold(body);
    if (body.querySelector(".embed")) void this.embeds().then((embeds) => embeds.fill(body, source.agent));
    this.mark(body, source.n);
  }

  /** HTML arrived for entries that are in the page without it. */
  #fillAwaited() {
    for (const body of this.#list.querySelectorAll(".entry-body.awaited")) {
      const record = this.store.record(Number(body.parentElement?.getAttribute("data-n")));
      const entry = record && this.#entryOf(record);
      if (entry) this.#fill(body, entry);
    }
    this.cards.refresh();
    if (this.#following) this.#toBottom();
  }

  /** @param {JournalRecord} record */
  #amending(record) {
    const button = el("button", { type: "button", className: "amend", title: t("Send a different message here, in a branch of this session") }, t("Edit"));
    button.addEventListener("click", () => this.amend(record));
    return button;
  }

  /** @param {number} n */
  #receipt(n) {
    const read = this.store.readAt(n);
    return read === undefined ? t("Not read yet") : t("Read at {time}", { time: timeOfDay(this.store.record(read)?.at ?? "") });
  }

  #showReceipts() {
    for (const entry of this.#list.querySelectorAll(".entry.intervention")) {
      const receipt = entry.querySelector(".receipt");
      if (receipt) setText(receipt, this.#receipt(Number(entry.getAttribute("data-n"))));
    }
  }

  /** Drafts and running tools of the selected agent. */
  #showLive() {
    const { selected, drafts, thoughts, outputs, past } = this.store;
    /** @type {Map<string, string>} */
    const wanted = new Map();
    if (!past) for (const [call, output] of outputs) if (output.agent === selected) wanted.set(`call ${call}`, output.text);
    const [draft, thought] = [drafts.get(selected), thoughts.get(selected)];
    if (!past && (draft || thought)) wanted.set("draft", draft ?? "");
    for (const element of [...this.#drafts.children]) {
      if (!wanted.has(element.getAttribute("data-key") ?? "")) element.remove();
    }
    for (const [key, text] of wanted) {
      const element = this.#drafts.querySelector(`[data-key="${key}"]`) ?? this.#liveEntry(key);
      const body = /** @type {Element} */ (element.querySelector(".entry-body"));
      if (key === "draft") {
        showThought(element, thought ?? "");
        this.#draft(body).show(text);
      }
      else if (body.firstElementChild?.firstElementChild) setText(body.firstElementChild.firstElementChild, text);
    }
  }

  /** @param {Element} body */
  #draft(body) {
    const found = this.#writing.get(body) ?? new Draft(body, this.store.selected, this.store.format);
    this.#writing.set(body, found);
    return found;
  }

  /** @param {string} key */
  #liveEntry(key) {
    const call = this.store.record(Number(key.slice("call ".length)));
    const running = call?.function === "PERSON" ? t("Waits for you") : t("{function} is running", { function: call?.function ?? t("A tool") });
    const step = this.store.own(call?.agent ?? "").findLast((record) => record.kind === "fire" && record.turn === call?.turn && record.action === call?.action)?.node;
    const from = key === "draft" ? agentName(this.store.selected) : step ? `${step}: ${running}` : running;
    const body = el("div", { className: "entry-body md" });
    if (key !== "draft") body.append(el("div", { className: "output" }, el("pre")));
    const head = el("header", { className: "entry-head" }, el("span", { className: "from" }, from));
    const entry = el("article", { className: "entry draft", "data-key": key }, head, body);
    this.#drafts.append(entry);
    return entry;
  }

  /** The accessible name of an entry without a heading. @param {JournalRecord} record */
  static #name({ kind, function: called }) {
    return kind === "result" && called ? t("Result of {function}", { function: called }) : t("Note");
  }

  #showEmpty() {
    const blank = !this.#list.querySelector(".entry") && !this.#drafts.childElementCount;
    if (!blank || this.store.session.id !== null) {
      this.#list.querySelector(".empty")?.remove();
      return;
    }
    // Most visits are to a session, so what an empty page shows is fetched here.
    this.#welcome ??= Promise.all([import("./welcome.js"), styled("welcome")]).then(([{ Welcome }]) => new Welcome(this.store, this.#list, this.actions));
    this.#welcome.then((made) => made.show(), () => { this.#welcome = undefined; });
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroll;
    const near = this.window.atEnd && scrollHeight - scrollTop - clientHeight < NEAR_THE_END;
    if (near) this.#following = true;
    else if (performance.now() - this.#touched < 1000) this.#following = false;
    if (this.#following) this.#toEnd.hidden = true;
  }

  #follow() {
    this.#following = true;
    this.#toEnd.hidden = true;
    this.window.show(this.#end(), true);
    this.#toBottom();
  }

  /** Scroll to the newest entry. The welcome text of an empty dialogue is shown from its top. */
  #toBottom() {
    this.#scroll.scrollTop = this.#list.querySelector(".empty") ? 0 : this.#scroll.scrollHeight;
  }
}
