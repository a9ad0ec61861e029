// Dialogs that most visits don't need: the script of one is fetched when the user first opens it, so that it is not part
// of the page's start.

import { icon, part, styled } from "./dom.js";

/**
 * A dialog that is opened by a button or by a call of `show`. `made`: what its script created, once it was opened.
 * @template {{show: (place?: "connect") => unknown}} T
 * @param {string} opener the button's `data-role`
 * @param {Parameters<typeof icon>[0]} shape
 * @param {() => Promise<T>} load
 * @param {() => void} failed called if the server can't be reached
 * @returns {{show: (place?: "connect") => Promise<void>, made: () => T|undefined}}
 */
export function lazily(opener, shape, load, failed) {
  /** @type {T|undefined} */ let made;
  /** @type {Promise<[T, unknown]>|undefined} */ let loading;
  const show = async (/** @type {"connect"|undefined} */ place = undefined) => {
    try {
      [made] = await (loading ??= Promise.all([load(), styled("settings")]));
    } catch {
      loading = undefined;
      failed();
      return;
    }
    await made.show(place);
  };
  part(opener).prepend(icon(shape));
  part(opener).addEventListener("click", () => show());
  return { show, made: () => made };
}
