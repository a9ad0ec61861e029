// Files that wait beside the message field until the message is sent: each can be seen and taken away again. Fetched with
// the first file.

import { el, part } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */

/** Pictures that are shown in little, and their size at most. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGEST = 20 << 20;

export class Attachments {
  #list = el("ul", { className: "attachments", "aria-label": t("Attached files"), hidden: true });
  /** The files of each session's next message, and of a session that does not exist yet. @type {Map<string|null, Set<File>>} */
  #waiting = new Map();
  /** @type {Map<File, HTMLElement>} */ #chips = new Map();

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    part("text").closest(".field")?.before(this.#list);
    for (const what of ["session", "selected", "moved"]) store.addEventListener(what, () => this.#show());
  }

  /** The files that wait in the shown session, in the order in which they were added; they wait no longer. */
  take() {
    const files = [...this.#waiting.get(this.store.session.id) ?? []];
    for (const file of files) this.#remove(file);
    return files;
  }

  /** @param {File[]} files */
  add(files) {
    const { id } = this.store.session;
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    for (const file of files) {
      waiting.add(file);
      this.#chips.set(file, this.#chip(file, () => {
        this.#remove(file);
        part("text").focus();
      }));
    }
    this.#show();
  }

  /** @param {File} file */
  #remove(file) {
    for (const waiting of this.#waiting.values()) waiting.delete(file);
    const picture = this.#chips.get(file)?.querySelector("img");
    if (picture) URL.revokeObjectURL(picture.src);
    this.#chips.delete(file);
    this.#show();
  }

  #show() {
    // They go to the root agent, with a message to it.
    const isForRoot = this.store.selected === "/" && !this.store.past;
    const waiting = this.#waiting.get(this.store.session.id) ?? [];
    this.#list.replaceChildren(...[...waiting].flatMap((file) => this.#chips.get(file) ?? []));
    this.#list.hidden = !isForRoot || !this.#list.childElementCount;
  }

  /**
   * @param {File} file
   * @param {() => void} drop
   */
  #chip(file, drop) {
    const button = el("button", { type: "button", title: t("Remove {name}", { name: file.name }), "aria-label": t("Remove {name}", { name: file.name }) }, "×");
    button.addEventListener("click", drop);
    return el("li", {}, thumbnail(file), el("span", { className: "attachment-name", title: file.name }, el("bdi", {}, file.name)), el("span", { className: "attachment-size" }, bytes(file.size)), button);
  }
}

/** @param {File} file */
function thumbnail(file) {
  if (PICTURES.has(file.type) && file.size <= LARGEST) return el("img", { src: URL.createObjectURL(file), alt: "" });
  const kind = /\.([A-Za-z0-9]{1,5})$/.exec(file.name)?.[1] ?? t("file");
  return el("span", { className: "attachment-kind", "aria-hidden": "true" }, kind.toLowerCase());
}
