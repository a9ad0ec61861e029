// All commands by name: a field, a list below it, and the keys that run them directly.

import { el, part } from "../base/dom.js";
import { t } from "../base/language.js";

/** `anywhere`: its keys also work in dialogs.
 * @typedef {{name: string, keys?: string, run: () => unknown, when?: () => boolean, anywhere?: boolean}} Command */

const MOST = 60;

export class Palette {
  #dialog = /** @type {HTMLDialogElement} */ (part("palette"));
  #field = /** @type {HTMLInputElement} */ (part("palette-field"));
  #list = part("palette-list");
  /** @type {Command[]} */ #found = [];
  #at = 0;

  /**
   * @param {() => Command[]} commands returns all current commands
   * @param {() => Promise<unknown>} prepare requests the data that some of them need
   */
  constructor(commands, prepare) {
    this.commands = commands;
    this.prepare = prepare;
    this.#field.addEventListener("input", () => this.#search());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#dialog.addEventListener("click", (event) => event.target === this.#dialog && this.#dialog.close());
  }

  /** Its dialog was opened. @param {boolean} entered whether Enter was pressed before the script was loaded */
  begin(entered) {
    this.#search();
    if (entered && this.#found.length) return this.#run(this.#found[0]);
    this.prepare().then(() => this.#search(), () => undefined);
  }

  /** Run the command of a key, if it has one. @param {KeyboardEvent} event */
  shortcut(event) {
    const wanted = `Alt+Shift+${event.code.replace("Key", "")}`;
    const command = this.commands().find((one) => one.keys === wanted && (one.when?.() ?? true));
    if (!command || (!command.anywhere && document.querySelector("dialog[open]"))) return;
    event.preventDefault();
    command.run();
  }

  #search() {
    const words = this.#field.value.trim().toLowerCase().split(/\s+/);
    this.#found = this.commands()
      .filter((one) => (one.when?.() ?? true) && words.every((word) => one.name.toLowerCase().includes(word)))
      .slice(0, MOST);
    this.#at = 0;
    this.#list.replaceChildren(...this.#found.map((one, index) => this.#row(one, index)));
    if (!this.#found.length) this.#list.append(el("li", { className: "empty", role: "option", "aria-disabled": "true" }, t("No matches.")));
    this.#mark();
  }

  /**
   * @param {Command} command
   * @param {number} index
   */
  #row(command, index) {
    const keys = command.keys ? [el("kbd", {}, command.keys)] : [];
    const row = el("li", { role: "option", id: `command-${index}` }, el("span", {}, command.name), ...keys);
    row.addEventListener("click", () => this.#run(command));
    row.addEventListener("pointermove", () => {
      if (this.#at === index) return;
      this.#at = index;
      this.#mark();
    });
    return row;
  }

  #mark() {
    [...this.#list.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === this.#at)));
    this.#field.setAttribute("aria-activedescendant", this.#found.length ? `command-${this.#at}` : "");
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && this.#found[this.#at]) {
      event.preventDefault();
      this.#run(this.#found[this.#at]);
    } else if (step && this.#found.length) {
      event.preventDefault();
      this.#at = (this.#at + step + this.#found.length) % this.#found.length;
      this.#mark();
      this.#list.children[this.#at].scrollIntoView({ block: "nearest" });
    }
  }

  /** @param {Command} command */
  #run(command) {
    this.#dialog.close();
    command.run();
  }
}
