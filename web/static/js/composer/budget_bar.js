// A bar above the message field that appears when most of the session's tokens are used, with ways to get more.
// When no tokens are left for an answer, the bar replaces the field. Fetched when it is first needed.

import { el, onceAFrame, part, setText } from "../base/dom.js";
import { money, tokens } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */

/** The used share of the tokens from which the bar is shown. */
export const MOST = 0.8;
const MILLION = 1_000_000;

export class BudgetBar {
  #bar = el("div", { className: "budget-bar", role: "status", hidden: true });
  #words = el("span");
  #news = el("span", { className: "bad", role: "alert" });
  #busy = false;
  /** @type {HTMLButtonElement} */ #add;

  /**
   * @param {Store} store
   * @param {import("../state/types.d.ts").Request} request
   * @param {(text: string) => void} begin begins a new session with this text in its field
   * @param {() => void} settings
   */
  constructor(store, request, begin, settings) {
    this.store = store;
    const add = this.#add = this.#button(() => this.#offer(), () => request("budget", this.#poor() ? { money: store.budget?.money } : { tokens: this.#more() }));
    const compress = this.#button(() => t("Compress"), () => request("compress"));
    compress.title = t("A model summarizes the conversation so far, so that each answer takes fewer tokens");
    const summary = this.#button(() => t("New session from a summary"), async () => begin((await request("summary")).text));
    const change = this.#button(() => t("Settings"), async () => settings());
    change.title = t("Change the token limit of new sessions in the settings");
    this.#bar.append(this.#words, add, compress, summary, change, this.#news);
    part("composer").prepend(this.#bar);
    const update = onceAFrame(() => {
      this.#update();
      setText(add, this.#offer());
    });
    for (const what of ["tree", "session", "moved", "reset", "selected"]) store.addEventListener(what, update);
    update();
  }

  /** The number of tokens that are added at once: a million, or for a small budget, as many as it had. */
  #more() {
    return Math.min(MILLION, this.store.budget?.tokens ?? MILLION);
  }

  /** Whether the money runs out, and not the tokens. */
  #poor() {
    const budget = this.store.budget;
    return budget?.money !== undefined && budget.used < MOST * budget.tokens;
  }

  /** The amount that can be added, in words. */
  #offer() {
    return this.#poor() ? t("Add {money}", { money: money(this.store.budget?.money ?? 0) }) : t("Add {tokens}", { tokens: tokens(this.#more()) });
  }

  #update() {
    const { budget, past } = this.store;
    const most = !past && budget !== undefined && this.store.used >= MOST;
    const over = most && budget.exhausted && this.store.node("/")?.state !== "thinking";
    this.#bar.hidden = !most && !over;
    this.#takesPlace(over);
    if (!budget || this.#bar.hidden) return;
    if (this.#poor()) {
      const sums = { used: money(budget.cost ?? 0), money: money(budget.money ?? 0) };
      setText(this.#words, over
        ? t("Budget used up: {used} of {money}. Messages are not answered until you add more.", sums)
        : t("{used} of {money} used", sums));
      this.#bar.dataset.over = String(over);
      return;
    }
    const values = { used: tokens(budget.used), tokens: tokens(budget.tokens) };
    setText(this.#words, over
      ? t("Token limit reached: {used} of {tokens} used. Messages are not answered until you add more.", values)
      : t("{used} of {tokens} tokens used", values));
    this.#bar.dataset.over = String(over);
  }

  /**
   * The bar replaces the field, or no longer does. The keyboard focus moves along, so that a user who was typing is not lost.
   * @param {boolean} over
   */
  #takesPlace(over) {
    const composer = part("composer");
    if (composer.classList.contains("exhausted") === over) return;
    const here = composer.contains(document.activeElement);
    composer.classList.toggle("exhausted", over);
    if (here) (over ? this.#add : part("text")).focus();
  }

  /**
   * @param {() => string} label
   * @param {() => Promise<unknown>} act
   */
  #button(label, act) {
    const made = el("button", { type: "button" }, label());
    made.addEventListener("click", async () => {
      if (this.#busy) return;
      this.#busy = true;
      made.ariaDisabled = "true"; // a disabled button loses the focus
      setText(this.#news, "");
      try {
        await act();
      } catch (error) {
        setText(this.#news, error instanceof Error ? error.message : String(error));
      } finally {
        this.#busy = false;
        made.ariaDisabled = null;
      }
    });
    return made;
  }
}
