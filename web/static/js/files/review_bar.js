// The line that shows how many changes wait for review. The dialog in which they are reviewed is fetched when the user
// opens it.

import { onceAFrame, part, setText, styled } from "../base/dom.js";
import { plural } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").Request} Request */

export class ReviewBar {
  #bar = part("review-bar");
  /** @type {import("./review.js").ReviewDialog|undefined} */ #made;

  /**
   * @param {Store} store
   * @param {Request} request
   * @param {() => void} failed called if the server can't be reached
   */
  constructor(store, request, failed) {
    this.store = store;
    this.request = request;
    this.failed = failed;
    part("review-open").addEventListener("click", () => this.show());
    const look = onceAFrame(() => this.#look());
    for (const what of ["review", "session", "reset", "moved"]) store.addEventListener(what, look);
  }

  /** The number of waiting changes, as far as is known. */
  get waiting() {
    return this.#bar.hidden ? 0 : Number(this.#bar.dataset.total);
  }

  async show() {
    try {
      const [{ ReviewDialog }] = await Promise.all([import("./review.js"), styled("review")]);
      this.#made ??= new ReviewDialog(this.request, (total) => this.tell(total));
    } catch {
      this.failed();
      return;
    }
    await this.#made.show();
  }

  /** @param {number} total */
  tell(total) {
    this.#bar.hidden = total === 0;
    this.#bar.dataset.total = String(total);
    setText(part("review-count"), plural(total, "1 change in your directory waits for your review.", "{count} changes in your directory wait for your review."));
  }

  /** Changes may have begun or ceased to wait. */
  async #look() {
    const { session, past } = this.store;
    if (session.id === null || session.readonly || past) {
      this.tell(0);
      return;
    }
    try {
      const { total } = await this.request("pending", { count: 0 });
      this.tell(total);
      await this.#made?.changed();
    } catch {
      this.tell(0);
    }
  }
}
