// The left pane: the sessions, or the agents of the shown session. The column of sessions is fetched when it is first
// shown.

import { part, styled } from "../base/dom.js";

/** @typedef {{show: () => void, focus: () => void, refresh: () => void}} Column */

const KEPT = "iact.side";

export class Side {
  /** @type {Promise<Column>|undefined} */ #loading;
  /** @type {Column|undefined} */ column;
  #tabs = /** @type {HTMLElement[]} */ ([...part("side-tabs").children]);

  /**
   * @param {() => Promise<Column>} load
   * @param {() => void} failed called if the server can't be reached
   */
  constructor(load, failed) {
    this.load = load;
    this.failed = failed;
    for (const tab of this.#tabs) {
      tab.addEventListener("click", () => this.choose(tab.id === "tab-sessions"));
      tab.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        const other = this.#tabs.find((one) => one !== tab);
        other?.click();
        other?.focus();
      });
    }
    part("sessions").addEventListener("click", () => this.show());
    if (remembered() === "sessions") this.choose(true);
  }

  /** Show the sessions, also on a narrow screen, with the focus in the search field. */
  async show() {
    const pane = part("side-tabs").closest(".pane");
    const drawer = document.querySelector('[data-drawer="tree"]');
    if (drawer instanceof HTMLElement && drawer.offsetParent && !pane?.classList.contains("open")) drawer.click();
    await this.choose(true);
    this.column?.focus();
  }

  /** Show the agents. */
  agents() {
    return this.choose(false);
  }

  /** @param {boolean} sessions */
  async choose(sessions) {
    for (const tab of this.#tabs) {
      const chosen = (tab.id === "tab-sessions") === sessions;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !chosen;
    }
    try {
      localStorage.setItem(KEPT, sessions ? "sessions" : "agents");
    } catch {
      // The choice holds for this page only.
    }
    if (!sessions) return;
    try {
      [this.column] = await Promise.all([(this.#loading ??= this.load()), styled("sessions")]);
      this.column.show();
    } catch {
      this.#loading = undefined;
      this.failed();
    }
  }
}

function remembered() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
