// Reports on the sessions that are not shown: how many wait for a person, in the page's title, above the
// dialogue and on the column's tab; and if the user wants it, by browser notifications and a sound.

import { part, setText } from "../base/dom.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").SessionInfo} SessionInfo */

/** Seconds of work after which the user may have turned to something else. */
const LONG = 30;

export class Attention {
  #bar = part("waiting-bar");
  /** When each session began to work, in milliseconds. @type {Map<string, number>} */ #working = new Map();
  /** The state of each session when it was last reported. @type {Map<string, string>} */ #states = new Map();

  /**
   * @param {Store} store
   * @param {() => void} show shows the sessions
   * @param {(id: string) => void} open
   */
  constructor(store, show, open) {
    this.store = store;
    this.open = open;
    part("waiting-show").addEventListener("click", () => {
      const [only, ...others] = this.waiting;
      if (only && !others.length) open(only.id);
      else show();
    });
    store.addEventListener("sessions", () => this.#look());
    store.addEventListener("session", () => this.#show());
  }

  /** The other sessions that wait for a person. @returns {SessionInfo[]} */
  get waiting() {
    return this.store.sessions.filter((info) => info.state === "waits" && info.id !== this.store.session.id);
  }

  #look() {
    for (const info of this.store.sessions) this.#follow(info);
    this.#show();
  }

  #show() {
    const { waiting } = this;
    const words = plural(waiting.length, "1 session waits for you", "{count} sessions wait for you");
    this.#bar.hidden = !waiting.length;
    setText(part("waiting-words"), waiting.length === 1 ? `${words}: ${waiting[0].title}` : words);
    const badge = part("waiting-count");
    setText(badge, waiting.length ? String(waiting.length) : "");
    badge.hidden = !waiting.length;
    badge.title = words;
  }

  /** Report a session that waits, has failed, or has answered after a while. @param {SessionInfo} info */
  #follow(info) {
    const state = info.open ? (info.state ?? "idle") : "idle";
    const before = this.#states.get(info.id);
    this.#states.set(info.id, state);
    if (state === "working" && !this.#working.has(info.id)) this.#working.set(info.id, Date.parse(info.since ?? "") || Date.now());
    if (before === undefined || before === state) return;
    const began = this.#working.get(info.id);
    if (state === "idle" || state === "failed") this.#working.delete(info.id);
    const long = began !== undefined && Date.now() - began >= LONG * 1000;
    const words = state === "waits" ? t("Waits for you: {what}", { what: info.what ?? "" }) : state === "failed" ? t("Failed") : state === "idle" && long ? t("Answered") : "";
    if (words && !this.#seen(info)) import("./notifications.js").then(({ tell }) => tell(info, words, this.open), () => undefined);
  }

  /** Whether the user is viewing it anyway. @param {SessionInfo} info */
  #seen(info) {
    return !document.hidden && document.hasFocus() && info.id === this.store.session.id;
  }
}
