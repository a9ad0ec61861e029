// Opens the list of commands. Its script is fetched with the first key that may belong to a command, or with the list.

import { part, styled } from "../base/dom.js";

/** @typedef {import("./palette.js").Palette} Palette */

export class PaletteOpener {
  /** @type {Promise<Palette>|undefined} */ #fetching;
  /** @type {Palette|undefined} */ #palette;

  /**
   * @param {import("./commands.js").Page} page
   * @param {() => Promise<unknown>} prepare requests the data that some commands need
   * @param {() => void} failed called if the script can't be fetched
   */
  constructor(page, prepare, failed) {
    this.page = page;
    this.prepare = prepare;
    this.failed = failed;
    part("palette-open").addEventListener("click", () => this.#open());
    addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const list = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
    if (list) event.preventDefault();
    if (list) this.#open();
    else if (!event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return;
    else if (this.#palette) this.#palette.shortcut(event);  // at once, so that the browser does not handle it
    else this.#with((palette) => palette.shortcut(event));
  }

  /** Open the dialog at once; it accepts input while its script loads. */
  #open() {
    const dialog = /** @type {HTMLDialogElement} */ (part("palette"));
    if (dialog.open) return;
    /** @type {HTMLInputElement} */ (part("palette-field")).value = "";
    dialog.showModal();
    let entered = false;
    const pressed = (/** @type {KeyboardEvent} */ { key }) => { entered ||= key === "Enter"; };
    dialog.addEventListener("keydown", pressed);
    this.#with((palette) => {
      dialog.removeEventListener("keydown", pressed);
      if (dialog.open) palette.begin(entered);
    });
  }

  /** @param {(palette: Palette) => void} then */
  async #with(then) {
    try {
      this.#fetching ??= Promise.all([import("./palette.js"), import("./commands.js"), styled("settings")])
        .then(([{ Palette }, { commandsOf }]) => new Palette(() => commandsOf(this.page), this.prepare));
      this.#palette ??= await this.#fetching;
    } catch {
      this.#fetching = undefined;
      /** @type {HTMLDialogElement} */ (part("palette")).close();
      this.failed();
      return;
    }
    then(this.#palette);
  }
}
