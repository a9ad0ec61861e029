// The panes at both sides. On a narrow screen they open above the dialogue, one at a time.

import { icon, part } from "./dom.js";

export class Drawers {
  #veil = part("veil");
  /** @type {NodeListOf<HTMLElement>} */
  #openers = document.querySelectorAll("[data-drawer]");

  constructor() {
    for (const opener of this.#openers) {
      const which = /** @type {"tree"|"inspector"} */ (opener.dataset.drawer);
      opener.append(icon(which));
      opener.addEventListener("click", () => this.#flip(which, opener));
    }
    this.#veil.addEventListener("click", () => this.close());
    addEventListener("keydown", (event) => {
      // In a dialog, the key closes only the dialog.
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) this.close();
    });
  }

  /**
   * @param {"tree"|"inspector"} which
   * @param {HTMLElement} opener
   */
  #flip(which, opener) {
    const pane = document.getElementById(`${which}-pane`);
    const open = !pane?.classList.contains("open");
    this.close();
    pane?.classList.toggle("open", open);
    opener.setAttribute("aria-expanded", String(open));
    this.#veil.hidden = !open;
  }

  close() {
    for (const pane of document.querySelectorAll(".pane.open")) pane.classList.remove("open");
    for (const opener of this.#openers) opener.setAttribute("aria-expanded", "false");
    this.#veil.hidden = true;
  }
}
