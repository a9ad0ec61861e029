// The sessions, as a column next to the dialogue: the state of each, grouped by day; full-text search;
// renaming, pinning, exporting, deleting and restoring. Fetched when it is first shown.

import { el, part, setText, twice } from "../base/dom.js";
import { dateTime } from "../base/format.js";
import { download } from "../composer/uploads.js";
import { heard, locale, plural, t } from "../base/language.js";
import { exampleList } from "../dialogue/welcome.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").SessionInfo} SessionInfo */
/** @typedef {{n: number, agent: string, kind: string, before: string, match: string, after: string, count: number}} Hit */

/** The number of sessions that are requested at once. */
const PAGE = 200;
/** Milliseconds after the last key until a search begins. */
const PAUSE = 180;
/** Milliseconds until an incomplete search is repeated. */
const AGAIN = 1500;

const DAY = 86_400_000;
const dates = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const months = new Intl.DateTimeFormat(locale, { month: "long", year: "numeric" });

export class Sessions {
  #column = part("sessions-column");
  #list = el("div", { className: "session-groups", "data-role": "sessions-list" });
  #news = el("div", { className: "session-news", role: "status" });
  #search = el("input", { type: "search", className: "tree-filter", autocomplete: "off",
    placeholder: t("Search all text"), "aria-label": t("Search in all sessions"), "data-role": "sessions-search" });
  #bin = el("details", { className: "session-extra", hidden: true, "data-role": "sessions-deleted" });
  #examples = el("details", { className: "session-extra recorded", hidden: true, "data-role": "sessions-examples" });
  /** @type {{info: SessionInfo, hit?: Hit}[]|null} what a search found; null: none is made */ #found = null;
  #behind = 0;
  #limit = PAGE;
  /** The session whose actions are shown, or that is being renamed. */ #open = "";
  #naming = "";
  /** What the list of deleted sessions shows. */ #binned = "";
  #asked = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;

  /**
   * @param {Store} store
   * @param {import("../state/types.d.ts").Request} request
   * @param {{open: (id: string|null, readonly?: boolean, place?: {n: number, agent: string}) => void, bring: (file: File) => Promise<any>,
   *   notify: HTMLElement}} page `bring` uploads a file that does not become a variable; `notify`: the notification settings
   */
  constructor(store, request, page) {
    this.store = store;
    this.request = request;
    this.page = page;
    const fresh = el("button", { type: "button", className: "primary", "data-role": "new-session" }, t("New session"));
    fresh.addEventListener("click", () => page.open(null));
    this.#column.append(el("div", { className: "session-top" }, fresh), this.#search, this.#news, this.#list, this.#bin,
      this.#examples, page.notify, this.#foot());
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#seek(), PAUSE);
    });
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#bin.addEventListener("toggle", () => this.#showBin());
    for (const what of ["sessions", "session", "examples"]) store.addEventListener(what, () => this.#update());
    setInterval(() => this.#clocks(), 1000);
    this.#update();
  }

  show() {
    this.refresh();
    this.#update();
  }

  focus() {
    this.#search.focus();
  }

  refresh() {
    this.request("sessions", { limit: this.#limit }).catch((error) => this.#say(error.message));
  }

  // --- the list

  #update() {
    if (this.#naming && this.#list.contains(document.activeElement)) return;
    const { sessions, total, deleted, examples } = this.store;
    const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.closest?.(".session-row")?.getAttribute("data-session");
    this.#list.replaceChildren(...(this.#found ? this.#results(this.#found) : this.#groups(sessions)));
    if (!this.#found && total > sessions.length) {
      const more = el("button", { type: "button", className: "link more-sessions" }, t("Show more"));
      more.addEventListener("click", () => {
        this.#limit += PAGE * 5;
        this.refresh();
      });
      this.#list.append(more);
    }
    if (focused) this.#row(focused)?.querySelector("button")?.focus();
    this.#bin.hidden = !deleted;
    if (!this.#bin.querySelector("summary")) this.#bin.append(el("summary"), el("ul"));
    setText(/** @type {Element} */ (this.#bin.querySelector("summary")), t("Deleted ({count})", { count: deleted }));
    if (this.#bin.open) this.#showBin();
    this.#examples.hidden = !examples.length;
    if (examples.length && !this.#examples.childElementCount) {
      this.#examples.append(el("summary", {}, t("Recorded examples")), exampleList(examples, (id) => this.page.open(id, true)));
    }
  }

  /** @param {SessionInfo[]} sessions */
  #groups(sessions) {
    if (!sessions.length) return [el("p", { className: "empty" }, t("There are no sessions yet."))];
    const known = new Map(sessions.map((info) => [info.id, info]));
    /** @type {Map<string, SessionInfo[]>} */ const below = new Map();
    /** @type {Map<string, SessionInfo[]>} */ const groups = new Map();
    for (const info of sessions) {
      const parent = info.source && info.source !== info.id && known.has(info.source) ? info.source : "";
      const [where, key] = parent && !info.pinned ? [below, parent] : [groups, groupOf(info)];
      where.set(key, [...(where.get(key) ?? []), info]);
    }
    const order = [...groups.keys()].sort((a, b) => Number(b === PINNED) - Number(a === PINNED));
    const shown = new Set();
    /** @type {(info: SessionInfo, depth: number) => HTMLElement[]} */
    const branch = (info, depth) => {
      if (shown.has(info.id)) return [];
      shown.add(info.id);
      return [this.#session(info, { depth }), ...(below.get(info.id) ?? []).flatMap((one) => branch(one, depth + 1))];
    };
    return order.map((name) => el("section", { "aria-label": name }, el("h2", {}, name),
      el("ul", {}, ...(groups.get(name) ?? []).flatMap((info) => branch(info, 0)))));
  }

  /** @param {{info: SessionInfo, hit?: Hit}[]} found */
  #results(found) {
    const note = this.#behind ? [el("p", { className: "facts" }, plural(this.#behind, "1 session is still loading.", "{count} sessions are still loading."))] : [];
    if (!found.length) return [...note, el("p", { className: "empty" }, t("No session matches."))];
    return [...note, el("ul", {}, ...found.map(({ info, hit }) => this.#session(info, { depth: 0, hit })))];
  }

  /**
   * @param {SessionInfo} info
   * @param {{depth: number, hit?: Hit}} how
   * @returns {HTMLElement}
   */
  #session(info, { depth, hit }) {
    const title = info.title || t("Untitled");
    const item = el("li", { className: "session-row", "data-session": info.id });
    item.style.setProperty("--depth", String(Math.min(depth, 4)));
    if (info.id === this.#naming) {
      item.append(this.#field(info));
      return item;
    }
    const mark = el("span", { className: "mark", "data-state": info.state === "unreadable" ? "failed" : info.state ?? "idle" });
    const badge = info.foreign ? [el("span", { className: "badge", title: t("Created by another installation") }, t("from elsewhere"))] : [];
    const facts = el("span", { className: "facts", "data-since": info.since ?? "" }, ...badge, this.#facts(info));
    const line = hit ? [el("span", { className: "hit" }, hit.before, el("mark", {}, hit.match), hit.after)] : [];
    const button = el("button", { type: "button", className: "session-open" }, mark,
      el("span", { className: "session-text" }, el("span", { className: "title" }, title), facts, ...line));
    if (info.id === this.store.session.id) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => this.page.open(info.id, false, hit && { n: hit.n, agent: hit.agent }));
    const more = el("button", { type: "button", className: "session-more", "aria-expanded": String(this.#open === info.id),
      "aria-label": t("What to do with {title}", { title }), title: t("Rename, pin, export, delete") }, "⋯");
    more.addEventListener("click", () => {
      this.#open = this.#open === info.id ? "" : info.id;
      this.#update();
      /** @type {HTMLElement|null|undefined} */ (this.#row(info.id)?.querySelectorAll("button")[this.#open ? 2 : 1])?.focus();
    });
    item.append(button, more);
    if (this.#open === info.id) item.append(this.#actions(info));
    return item;
  }

  /** @param {SessionInfo} info */
  #actions(info) {
    /** @type {(words: string, act: () => void, look?: string) => HTMLElement} */
    const action = (words, act, look = "") => {
      const made = el("button", { type: "button", className: look }, words);
      made.addEventListener("click", act);
      return made;
    };
    return el("div", { className: "session-actions", role: "group", "aria-label": t("Session") },
      action(t("Rename"), () => this.#name(info.id)),
      action(info.pinned ? t("Unpin") : t("Pin"), () => this.#do("session.pin", { session: info.id, pinned: !info.pinned })),
      action(t("Replay"), () => this.page.open(info.id, true)),
      action(t("Export"), () => this.#export(info.id)),
      action(t("Delete"), () => this.#delete(info), "danger"));
  }

  /** The state of a session, and since when. @param {SessionInfo} info */
  #facts(info) {
    const what = heard(info.what ?? "");
    switch (info.state) {
      case "waits": return what ? t("waits for you: {what}", { what }) : t("waits for you");
      case "working": return t("working · {time}", { time: elapsed(info.since ?? "") });
      case "paused": return t("paused");
      case "failed": return t("failed · {time}", { time: when(info.changed) });
      case "unreadable": return t("can't be read: {why}", { why: what });
      case "unfinished": return t("was interrupted; continues when you open it");
      default: return when(info.changed);
    }
  }

  #clocks() {
    for (const row of this.#list.querySelectorAll('.mark[data-state="working"]')) {
      const facts = row.parentElement?.querySelector(".facts");
      const since = facts?.getAttribute("data-since");
      if (facts && since) setText(facts, t("working · {time}", { time: elapsed(since) }));
    }
  }

  /** @param {string} id @returns {HTMLElement|null} */
  #row(id) {
    return this.#list.querySelector(`[data-session="${CSS.escape(id)}"]`);
  }

  // --- actions

  /** @param {string} id */
  #name(id) {
    this.#naming = id;
    this.#open = "";
    /** @type {HTMLElement|null} */ (document.activeElement)?.blur();
    this.#update();
    const field = this.#row(id)?.querySelector("input");
    field?.focus();
    field?.select();
  }

  /** @param {SessionInfo} info */
  #field(info) {
    const field = el("input", { type: "text", className: "session-name", maxLength: 200,
      value: info.title, "aria-label": t("Name of the session") });
    const end = async (/** @type {boolean} */ keep) => {
      if (this.#naming !== info.id) return;
      this.#naming = "";
      if (keep && field.value.trim() !== info.title) await this.#do("session.rename", { session: info.id, title: field.value });
      this.#update();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      field.blur();
      end(event.key === "Enter").then(() => this.#row(info.id)?.querySelector("button")?.focus());
    });
    field.addEventListener("blur", () => setTimeout(() => end(true)));
    return field;
  }

  /** @param {string} id */
  async #export(id) {
    this.#say(t("The archive is being made …"));
    try {
      download((await this.request("session.archive", { session: id })).href);
      this.#say("");
    } catch (error) {
      this.#say(message(error));
    }
  }

  /** @param {SessionInfo} info */
  async #delete(info) {
    const title = info.title || t("Untitled");
    const shown = this.store.session.id === info.id;
    try {
      const { note } = await this.request("session.delete", { sessions: [info.id] });
      this.#open = "";
      if (shown) this.page.open(null);
      const undo = el("button", { type: "button" }, t("Undo"));
      undo.addEventListener("click", async () => {
        await this.#do("session.restore", { sessions: [info.id] });
        if (shown) this.page.open(info.id);
      });
      this.#say(t("Deleted: {title}", { title }), undo);
      if (note) this.#news.append(el("p", {}, heard(note)));
      undo.focus();
      this.refresh();
    } catch (error) {
      this.#say(message(error));
    }
  }

  async #showBin() {
    if (!this.#bin.open) {
      this.#binned = "";
      return;
    }
    /** @type {{list: {id: string, title: string, deleted: string, records: number}[]}} */
    const { list } = await this.request("session.deleted").catch(() => ({ list: [] }));
    // Between the first press and the second, the button stays.
    const now = JSON.stringify(list);
    if (now === this.#binned) return;
    this.#binned = now;
    this.#bin.querySelector("ul")?.replaceChildren(...list.map(({ id, title, deleted }) => {
      const back = el("button", { type: "button" }, t("Restore"));
      back.addEventListener("click", () => this.#do("session.restore", { sessions: [id] }));
      const gone = el("button", { type: "button", className: "danger" }, t("Delete for good"));
      twice(gone, t("Delete for good"), t("This can't be undone. Delete it?"), () => this.#do("session.purge", { sessions: [id] }));
      return el("li", {}, el("span", { className: "title" }, title || t("Untitled")),
        el("span", { className: "facts" }, t("deleted {time}", { time: when(deleted) })), el("div", { className: "session-actions" }, back, gone));
    }));
  }

  #foot() {
    const file = el("input", { type: "file", hidden: true, "aria-label": t("An archive of a session") });
    const choose = el("button", { type: "button", className: "link" }, t("Import a session …"));
    choose.addEventListener("click", () => file.click());
    file.addEventListener("change", async () => {
      const chosen = file.files?.[0];
      file.value = "";
      if (!chosen) return;
      this.#say(t("{file} is being read …", { file: chosen.name }));
      try {
        const { session, foreign } = await this.page.bring(chosen);
        this.refresh();
        this.page.open(session);
        this.#say(foreign ? t("The session is imported. It was created by another installation, so you can only view it. Adopt makes your own copy, which you can continue.") : t("The session is imported."));
      } catch (error) {
        this.#say(message(error));
      }
    });
    return el("p", { className: "session-foot" }, choose, file);
  }

  /**
   * @template {"session.delete"|"session.restore"|"session.purge"|"session.rename"|"session.pin"} T
   * @param {T} type
   * @param {import("../state/types.d.ts").Fields<T>} fields
   */
  async #do(type, fields) {
    try {
      const done = await this.request(type, fields);
      const { note, refused } = "refused" in done ? done : { note: "", refused: {} };
      this.#open = "";
      this.#say([note, ...Object.values(refused ?? {})].filter(Boolean).map((one) => heard(String(one))).join(" "));
      this.refresh();
      if (this.#found) this.#seek();
    } catch (error) {
      this.#say(message(error));
    }
  }

  /**
   * @param {string} text
   * @param {...Node} more
   */
  #say(text, ...more) {
    this.#news.replaceChildren(...(text ? [el("span", {}, heard(text)), ...more] : []));
  }

  async #seek() {
    const query = this.#search.value.trim();
    this.#open = "";
    this.#asked += 1;
    const asked = this.#asked;
    clearTimeout(this.#timer);
    if (!query) {
      this.#found = null;
      this.#update();
      return;
    }
    try {
      const { list, behind } = await this.request("sessions.search", { query });
      if (asked !== this.#asked) return;
      this.#found = list.map((/** @type {SessionInfo & {hit?: Hit}} */ info) => ({ info, hit: info.hit }));
      this.#behind = behind;
      if (behind) this.#timer = setTimeout(() => this.#seek(), AGAIN);
      this.#update();
    } catch (error) {
      if (asked === this.#asked) this.#say(message(error));
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const row = event.target instanceof Element ? event.target.closest(".session-row") : null;
    if (!(row instanceof HTMLElement) || event.target instanceof HTMLInputElement) return;
    const id = row.dataset.session ?? "";
    const rows = [...this.#list.querySelectorAll(".session-row")];
    const info = this.#known(id);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => focusIn(rows[rows.indexOf(row) + 1]),
      ArrowUp: () => focusIn(rows[rows.indexOf(row) - 1]),
      F2: () => this.#name(id),
      Delete: () => info && this.#delete(info),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** @param {string} id */
  #known(id) {
    return this.#found?.find(({ info }) => info.id === id)?.info ?? this.store.sessions.find((info) => info.id === id);
  }
}

const PINNED = t("Pinned");

/** @param {SessionInfo} info */
function groupOf(info) {
  if (info.pinned) return PINNED;
  const at = new Date(info.changed);
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const days = Math.ceil((today.getTime() - at.getTime()) / DAY);
  if (!(days > 0)) return t("Today");
  if (days === 1) return t("Yesterday");
  if (days <= 7) return t("Last 7 days");
  return months.format(at);
}

/** @param {string} iso */
function when(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : Date.now() - at.getTime() < 300 * DAY ? dates.format(at) : dateTime(iso);
}

/** @param {string} iso */
export function elapsed(iso) {
  const seconds = Math.max(0, Math.floor((Date.now() - new Date(iso).getTime()) / 1000)) || 0;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = String(seconds % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** @param {Element|undefined} row */
function focusIn(row) {
  row?.querySelector("button")?.focus();
}

/** @param {unknown} error */
function message(error) {
  return error instanceof Error ? error.message : String(error);
}
