// How far the small model on board is, above the dialogue: it answers until a model is connected, and has to be downloaded
// and loaded first. The page can be used meanwhile. If it can't come, the reason and the way to another model are here.

import { el, part, setText } from "../base/dom.js";
import { heard, number, t } from "../base/language.js";

/** @typedef {import("../state/wire.d.ts").BoardNews} BoardNews */

const MB = 1_000_000;

export class BoardLine {
  #line = part("board");
  /** Announced by screen readers, so it changes only with the phase. */
  #words = el("span", { role: "status" });
  #bar = el("progress", { "aria-label": t("Download of the small model"), max: 1 });
  #count = el("span", {});

  /**
   * @param {import("../state/store.js").Store} store
   * @param {() => void} connect opens the form that connects a model
   */
  constructor(store, connect) {
    const button = el("button", { className: "link", type: "button" }, t("Connect a model"));
    button.addEventListener("click", connect);
    this.#line.replaceChildren(this.#words, this.#bar, this.#count, button);
    store.addEventListener("board", () => this.#show(store.board));
    this.#show(store.board);
  }

  /** @param {BoardNews|undefined} board */
  #show(board) {
    const { phase = "", done = 0, total = 0, why = "" } = board ?? {};
    this.#line.hidden = phase === "" || phase === "ready";
    this.#line.classList.toggle("failed", phase === "failed");
    this.#bar.hidden = this.#count.hidden = phase !== "downloading" || !total;
    this.#bar.value = total ? done / total : 0;
    setText(this.#count, t("{done} of {total} MB", { done: number(Math.floor(done / MB)), total: number(Math.floor(total / MB)) }));
    setText(this.#words, words(phase, why));
  }
}

/**
 * @param {BoardNews["phase"]} phase
 * @param {string} why
 */
function words(phase, why) {
  switch (phase) {
    case "waiting": return t("Another program is downloading the small model on board. You can write already; it answers when it is here.");
    case "downloading": return t("The small model on board is being downloaded. You can write already; it answers when it is here.");
    case "checking": return t("The small model on board is here and is being checked.");
    case "loading": return t("The small model on board is being loaded. The first time, that takes a minute or two.");
    case "failed": return heard(why);
    default: return "";
  }
}
