// What most visits don't need: the script of such a dialog is fetched when somebody first opens it, so that it is no part
// of the page's start.

import { icon, part, styled } from "./dom.js";

/**
 * A dialog that a button opens, and whoever else calls `show`. `made`: what its script made, once it was opened.
 * @template {{show: () => unknown}} T
 * @param {string} opener the button's `data-role`
 * @param {Parameters<typeof icon>[0]} shape
 * @param {() => Promise<T>} load
 * @param {() => void} failed the server can't be reached
 * @returns {{show: () => Promise<void>, made: () => T|undefined}}
 */
export function lazily(opener, shape, load, failed) {
  /** @type {T|undefined} */ let made;
  /** @type {Promise<[T, unknown]>|undefined} */ let loading;
  const show = async () => {
    try {
      [made] = await (loading ??= Promise.all([load(), styled("settings")]));
    } catch {
      loading = undefined;
      failed();
      return;
    }
    await made.show();
  };
  part(opener).prepend(icon(shape));
  part(opener).addEventListener("click", show);
  return { show, made: () => made };
}
