// The list of stored sessions, as a dialog with a search field.

import { el, part } from "./dom.js";
import { dateTime } from "./format.js";
import { plural, t } from "./language.js";
import { exampleList } from "./welcome.js";

/** @typedef {import("./store.js").Store} Store */

export class Sessions {
  #dialog = /** @type {HTMLDialogElement} */ (part("sessions-dialog"));
  #list = part("sessions-list");
  #examples = part("sessions-examples");
  #search = /** @type {HTMLInputElement} */ (part("sessions-search"));

  /**
   * @param {Store} store
   * @param {() => void} refresh asks the server for the list
   * @param {(id: string|null, readonly: boolean) => void} open shows a session; null: a new one
   */
  constructor(store, refresh, open) {
    this.store = store;
    this.open = open;
    store.addEventListener("sessions", () => this.#update());
    this.#search.addEventListener("input", () => this.#update());
    this.refresh = refresh;
    part("sessions").addEventListener("click", () => this.show());
    part("new-session").addEventListener("click", () => this.#choose(null));
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
  }

  show() {
    const { examples } = this.store;
    this.#examples.hidden = !examples.length;
    this.#examples.querySelector("ul")?.remove();
    this.#examples.append(exampleList(examples, (id) => this.#choose(id, true)));
    this.#search.value = "";
    this.#update();
    this.#dialog.showModal();
    this.refresh();
  }

  /**
   * @param {string|null} id
   * @param {boolean} [readonly]
   */
  #choose(id, readonly = false) {
    this.#dialog.close();
    this.open(id, readonly);
  }

  #update() {
    const words = this.#search.value.trim().toLowerCase();
    const found = this.store.sessions.filter((info) => `${info.title} ${info.id}`.toLowerCase().includes(words));
    const rows = found.slice(0, 300).map((info) => {
      const facts = [dateTime(info.changed), plural(info.records, "1 record", "{count} records"), info.open ? t("open") : ""].filter(Boolean).join(" · ");
      const badge = info.foreign ? [el("span", { className: "badge", title: t("This installation did not make it") }, t("foreign"))] : [];
      const button = el("button", { type: "button" },
        el("span", { className: "title" }, info.title || t("Untitled")), el("span", { className: "facts" }, facts, ...badge));
      if (info.id === this.store.session.id) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.#choose(info.id));
      const replay = el("button", { type: "button", className: "replay-button", title: t("Look at it without going on with it") }, t("Replay"));
      replay.setAttribute("aria-label", t("Replay {title}", { title: info.title || t("Untitled") }));
      replay.addEventListener("click", () => this.#choose(info.id, true));
      return el("li", {}, button, replay);
    });
    const none = el("li", { className: "empty" }, words ? t("No session matches.") : t("There are no sessions yet."));
    this.#list.replaceChildren(...(rows.length ? rows : [none]));
  }
}
