// Sessions that branch at one message. Next to the message is shown which branch this is, with links to the others.

import { el, onceAFrame, part } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").SessionInfo} SessionInfo */

export class Branches {
  #dialogue = part("dialogue");
  /** Forks by where they branch off, so that nothing has to be searched while text streams in. @type {Map<string, SessionInfo[]>} */ #forks = new Map();
  /** The list from which they were sorted. @type {SessionInfo[]} */ #of = [];

  /**
   * @param {Store} store
   * @param {(id: string) => void} open
   */
  constructor(store, open) {
    this.store = store;
    this.open = open;
    const update = onceAFrame(() => this.#update());
    for (const what of ["sessions", "session", "records", "reset"]) store.addEventListener(what, update);
    new MutationObserver(update).observe(this.#dialogue, { childList: true, subtree: true });
    update();
  }

  #update() {
    if (this.#of !== this.store.sessions) this.#sort(this.store.sessions);
    for (const entry of /** @type {NodeListOf<HTMLElement>} */ (this.#dialogue.querySelectorAll(".entry[data-kind=say]"))) {
      const all = this.#versions(Number(entry.dataset.n));
      const here = all.findIndex((info) => info.id === this.store.session.id);
      const key = all.length > 1 && here >= 0 ? `${here} ${all.map((info) => info.id).join(" ")}` : "";
      const head = entry.querySelector(":scope > .entry-head");
      const old = /** @type {HTMLElement|null} */ (head?.querySelector(".branches"));
      if (!head || (old?.dataset.key ?? "") === key) continue;
      old?.remove();
      if (key) head.insertBefore(this.#switch(all, here, key), head.querySelector(".when"));
    }
  }

  /** @param {SessionInfo[]} sessions */
  #sort(sessions) {
    this.#of = sessions;
    this.#forks = new Map();
    for (const info of sessions) {
      if (!info.source) continue;
      const key = `${info.source} ${info.at}`;
      this.#forks.set(key, [...(this.#forks.get(key) ?? []), info].sort((a, b) => (a.id < b.id ? -1 : 1)));
    }
  }

  /**
   * The sessions that have a different message in this place, beginning with the one they were branched from.
   * @param {number} n
   * @returns {SessionInfo[]}
   */
  #versions(n) {
    const { sessions, session } = this.store;
    if (!this.#forks.size) return [];
    const shown = sessions.find((info) => info.id === session.id);
    const at = shown?.source && n > (shown.at ?? 0) && this.#first(shown.at ?? 0) === n ? shown.at : undefined;
    const [source, branch] = at === undefined ? [session.id, n - 1] : [shown?.source, at];
    const forks = this.#forks.get(`${source} ${branch}`);
    return forks ? [...sessions.filter((info) => info.id === source), ...forks] : [];
  }

  /** The first message after a record. @param {number} at */
  #first(at) {
    let n = at + 1;
    if (n < this.store.first) return 0;
    while (n <= this.store.last && this.store.record(n)?.kind !== "say") n++;
    return n;
  }

  /**
   * @param {SessionInfo[]} all
   * @param {number} here
   * @param {string} key
   */
  #switch(all, here, key) {
    const lead = (/** @type {number} */ to, /** @type {string} */ sign, /** @type {string} */ words) => {
      const button = el("button", { type: "button", title: all[to]?.title ?? "", "aria-label": words }, sign);
      button.disabled = !all[to];
      button.addEventListener("click", () => this.open(all[to].id));
      return button;
    };
    const made = el("span", { className: "branches", role: "group", "aria-label": t("Branches of this message") },
      lead(here - 1, "‹", t("Previous branch")), el("span", {}, t("{at} of {count}", { at: String(here + 1), count: String(all.length) })), lead(here + 1, "›", t("Next branch")));
    made.dataset.key = key;
    return made;
  }
}
