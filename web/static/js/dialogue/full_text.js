// Fetches the whole of a text of which only the beginning and the end are shown, when the user asks for it.

import { el } from "../base/dom.js";
import { plural } from "../base/language.js";

/**
 * @param {Element} button in place of the hidden text
 * @param {(n: number) => Promise<import("../state/wire.d.ts").Source>} fetch
 */
export async function showWhole(button, fetch) {
  const entry = /** @type {HTMLElement|null} */ (button.closest("[data-n]"));
  const gap = button.closest(".gap");
  if (!entry || !gap?.parentElement) return;
  const { text, more } = await fetch(Number(entry.dataset.n));
  const around = gap.parentElement;
  const rest = more ? [el("p", { className: "gap" }, plural(more, "1 more character. Download it to see all", "{count} more characters. Download it to see all"))] : [];
  const whole = el("pre", { className: "raw whole", tabIndex: 0, dir: "auto" }, text);
  // What comes before the text, such as a badge or a model's reasoning, is kept.
  const shown = [...around.children].filter((one) => one.matches("pre, .typed, .gap, .fold, p:not(:has(.badge)), ul, ol, h1, h2, h3, h4, h5, h6, table, blockquote, .code, hr"));
  for (const one of shown) one.remove();
  around.append(whole, ...rest);
  whole.focus();
}
