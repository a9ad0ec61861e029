// A long list of rows of equal height. Only the visible rows (and some around them) are in the page.

import { el, onceAFrame } from "./dom.js";

const AROUND = 12;

/**
 * @template T
 */
export class Rows {
  /** @type {T[]} */ #items = [];
  /** @type {Map<T, HTMLElement>} */ #made = new Map();

  /**
   * @param {HTMLElement} scroll the element that scrolls; rows are put into it
   * @param {number} height of a row, in pixels
   * @param {(item: T) => HTMLElement} make
   * @param {string} label
   */
  constructor(scroll, height, make, label) {
    this.scroll = scroll;
    this.height = height;
    this.make = make;
    this.list = el("ul", { className: "rows", "aria-label": label });
    const draw = onceAFrame(() => this.#draw());
    scroll.addEventListener("scroll", draw, { passive: true });
    new ResizeObserver(draw).observe(scroll);
  }

  /** @param {T[]} items rows that were there before are kept as they are */
  show(items) {
    this.#items = items;
    this.list.style.height = `${items.length * this.height}px`;
    this.#draw();
  }

  clear() {
    this.#made.clear();
    this.list.replaceChildren();
  }

  #draw() {
    if (!this.list.isConnected) return;
    const begin = this.list.getBoundingClientRect().top - this.scroll.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-begin / this.height) - AROUND);
    const last = Math.min(this.#items.length, Math.ceil((this.scroll.clientHeight - begin) / this.height) + AROUND);
    const wanted = new Set(this.#items.slice(first, last));
    for (const [item, row] of this.#made) {
      if (wanted.has(item) || row.contains(document.activeElement)) continue;
      row.remove();
      this.#made.delete(item);
    }
    let index = first;
    /** @type {HTMLElement|null} */ let before = null;
    for (const item of wanted) {
      /** @type {HTMLElement} */ const row = this.#made.get(item) ?? this.#add(item, before);
      before = row;
      row.style.transform = `translateY(${index * this.height}px)`;
      row.setAttribute("aria-posinset", String(index + 1));
      row.setAttribute("aria-setsize", String(this.#items.length));
      index += 1;
    }
  }

  /**
   * @param {T} item
   * @param {HTMLElement|null} before the row that it follows, in the page and on the screen
   */
  #add(item, before) {
    const row = el("li", {}, this.make(item));
    row.style.height = `${this.height}px`;
    this.#made.set(item, row);
    if (before) before.after(row);
    else this.list.prepend(row);
    return row;
  }
}
