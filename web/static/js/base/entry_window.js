// A list of any length of which only a part is in the page: a few hundred entries around the
// place where the user reads. Entries may have any height.

const PAGE = 120;
const MOST = 360;
const NEAR = 700;

/**
 * @template T
 */
export class EntryWindow {
  /** @type {T[]} */ #items = [];
  #from = 0;
  #to = 0;
  /** The number of items that may be shown; later items are still to come. */ #end = 0;

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} scroll the element that scrolls
   * @param {(item: T) => HTMLElement} make
   * @param {(earlier: number, later: number) => void} told called with the numbers of entries that are not in the page
   */
  constructor(list, scroll, make, told) {
    this.list = list;
    this.scroll = scroll;
    this.make = make;
    this.told = told;
    scroll.addEventListener("scroll", () => this.#near(), { passive: true });
  }

  /** Whether the last entry is in the page. */
  get atEnd() {
    return this.#to === this.#end;
  }

  /**
   * Replace the items, and show their end.
   * @param {T[]} items the list may grow later; `show` picks that up
   * @param {number} end
   */
  reset(items, end) {
    this.#items = items;
    this.#end = end;
    this.#fill(end - PAGE, end);
  }

  /**
   * Replace the list by one with more items at its beginning; what is in the page stays where it is.
   * @param {T[]} items
   * @param {number} end
   * @param {(one: T, other: T) => boolean} same
   */
  replace(items, end, same) {
    const shown = this.#items.slice(this.#from, this.#to);
    const [first, last] = [shown[0], shown[shown.length - 1]];
    const from = first === undefined ? -1 : items.findLastIndex((item) => same(item, first));
    const to = from < 0 ? -1 : items.findLastIndex((item) => same(item, last)) + 1;
    this.#items = items;
    this.#end = end;
    if (from < 0) {
      this.#fill(end - PAGE, end);
    } else if (to - from === shown.length && shown.every((item, index) => same(item, items[from + index]))) {
      this.#from = from;
      this.#to = to;
    } else {
      this.#steady(() => this.#fill(from, to));
    }
    if (this.#to - this.#from < PAGE) this.earlier();
    this.#tell();
    this.#near();
  }

  /**
   * From now on, show the first `end` items. Keeps the entries that are in the page, if possible.
   * @param {number} end
   * @param {boolean} follow whether the last entry must be in the page
   * @returns {T[]} the items that were added at the end of the page
   */
  show(end, follow) {
    const before = this.#end;
    this.#end = end;
    if (end < before) {
      if (end - this.#from < Math.min(20, end)) this.#fill(end - PAGE, end);
      else this.#cut(end);
    } else if (follow && end - this.#to > PAGE) {
      this.#fill(end - PAGE, end);
    } else if (follow || this.#to === before) {
      const fresh = this.#items.slice(this.#to, end);
      this.#append(follow ? end : Math.min(end, this.#from + MOST));
      if (follow) this.#trimTop();
      return fresh;
    }
    this.#tell();
    return [];
  }

  /** Bring item number `index` into the page. @param {number} index */
  bring(index) {
    if (index < this.#from || index >= this.#to) this.#fill(index - PAGE, Math.min(this.#end, index + PAGE));
  }

  earlier() {
    const from = Math.max(0, this.#from - PAGE);
    if (from === this.#from) return;
    this.#steady(() => {
      this.list.prepend(...this.#items.slice(from, this.#from).map(this.make));
      this.#from = from;
      this.#cut(Math.min(this.#to, from + MOST));
    });
    this.#tell();
  }

  later() {
    if (this.#to === this.#end) return;
    this.#steady(() => {
      this.#append(Math.min(this.#end, this.#to + PAGE));
      this.#trimTop();
    });
    this.#tell();
  }

  #near() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroll;
    if (scrollTop < NEAR && this.#from > 0) this.earlier();
    else if (scrollHeight - scrollTop - clientHeight < NEAR && this.#to < this.#end) this.later();
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  #fill(from, to) {
    this.#from = Math.max(0, from);
    this.#to = to;
    this.list.replaceChildren(...this.#items.slice(this.#from, to).map(this.make));
    this.#tell();
  }

  /** @param {number} to */
  #append(to) {
    if (to <= this.#to) return;
    this.list.append(...this.#items.slice(this.#to, to).map(this.make));
    this.#to = to;
  }

  /** @param {number} to */
  #cut(to) {
    while (this.#to > to) {
      this.list.lastElementChild?.remove();
      this.#to -= 1;
    }
  }

  #trimTop() {
    while (this.#to - this.#from > MOST) {
      this.list.firstElementChild?.remove();
      this.#from += 1;
    }
    this.#tell();
  }

  /** Change the list without moving what the user reads. @param {() => void} change */
  #steady(change) {
    const top = this.scroll.getBoundingClientRect().top;
    const anchor = [...this.list.children].find((entry) => entry.getBoundingClientRect().bottom > top);
    const before = anchor?.getBoundingClientRect().top ?? 0;
    change();
    if (anchor?.isConnected) this.scroll.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  #tell() {
    this.told(this.#from, this.#end - this.#to);
  }
}
