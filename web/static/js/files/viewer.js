// One file: its text, picture, sound, film or what else it looks like at any version, its changes between two versions, and
// its download. Text is inserted as text, and a picture is shown from its bytes, with the type that they begin with.

import { drawn } from "./diff.js";
import { contentOf } from "../dialogue/pictures.js";
import { el, setText, styled, twice } from "../base/dom.js";
import { agentName, timeOfDay } from "../base/format.js";
import { t } from "../base/language.js";
import { sizeOf } from "./workspace.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** @typedef {import("./workspace.js").Change} Change */
/** @typedef {{path: string, kind: "file"|"link"|"folder"|"other", size: number, show: string, media?: string, text?: string, left_out?: number, rows?: string[][], more_rows?: number, target?: string, look?: import("./look.js").Look}} Shown */

const NOTHING = "-";
const NOW = "now";

export class FileDialog {
  #name = el("h2", { id: "file-name" });
  #facts = el("p", { className: "facts", role: "status" });
  #content = el("div", { className: "file-content", tabIndex: 0, role: "region", "aria-label": t("Content of the file") });
  #version = el("select", {});
  #since = el("select", {});
  #mention = el("button", { type: "button" }, t("Mention"));
  #restore = el("span", { className: "file-restore" });
  /** What changed in the file, newest first. @type {Change[]} */ #changes = [];
  #dialog;
  #path = "";
  #question = 0;

  /**
   * @param {Store} store
   * @param {Ask} ask
   * @param {import("../dialogue/pictures.js").FetchPictures} pictures
   * @param {{fetch: import("../state/types.d.ts").Fetch, mention: (path: string) => void}} actions
   */
  constructor(store, ask, pictures, actions) {
    this.store = store;
    this.ask = ask;
    this.pictures = pictures;
    const fetch = el("button", { type: "button" }, t("Download"));
    fetch.addEventListener("click", () => actions.fetch("file.download", { path: this.#path, at: this.#at() }));
    this.#mention.title = t("Put its path into the message field");
    this.#mention.addEventListener("click", () => {
      this.#dialog.close();
      actions.mention(this.#path);
    });
    for (const select of [this.#version, this.#since]) select.addEventListener("change", () => this.#show());
    this.#dialog = el("dialog", { className: "file", "aria-labelledby": "file-name" },
      el("header", {}, this.#name, el("form", { method: "dialog" }, el("button", {}, t("Close")))),
      el("div", { className: "file-tools" }, el("label", {}, t("Version"), " ", this.#version), el("label", {}, t("Changes since"), " ", this.#since), el("span", { className: "spacer" }), this.#restore, this.#mention, fetch),
      this.#facts, this.#content);
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
    document.body.append(this.#dialog);
  }

  /**
   * @param {string} path
   * @param {{at?: number|null, since?: number}} [options] `at`: as it was after that record, null for now; by default, as the
   *   page shows the session. `since`: show the changes since that record
   */
  async open(path, { at = this.store.at, since } = {}) {
    await Promise.all([styled("workspace"), styled("review")]);
    this.#path = path;
    this.#name.replaceChildren(el("bdi", {}, path));
    this.#content.replaceChildren();
    setText(this.#facts, "");
    if (!this.#dialog.open) this.#dialog.showModal();
    const question = ++this.#question;
    /** @type {Change[]} */ let changes = [];
    try {
      const told = /** @type {{list: Change[]}} */ (await this.ask("files.changes", { at: this.store.at }));
      changes = told.list.filter((one) => one.paths.some((each) => each.path === path));
    } catch {
      // No versions of it are kept, so there is only the current file.
    }
    if (question !== this.#question) return;
    this.#offer(changes, at, since);
    await this.#show();
  }

  /**
   * @param {Change[]} changes newest first
   * @param {number|null} at
   * @param {number|undefined} since
   */
  #offer(changes, at, since) {
    this.#changes = changes;
    // A version is identified by the record that made it; a later record before the next version means the same.
    const chosen = at === null ? NOW : String(changes.find((one) => one.n <= at)?.n ?? at);
    const before = since === undefined ? NOTHING : String(changes.find((one) => one.n <= since)?.n ?? 0);
    const words = (/** @type {Change} */ one) => `${timeOfDay(one.at)} · ${one.function} · ${agentName(one.agent)}`;
    const versions = changes.map((one) => option(String(one.n), words(one)));
    const now = this.store.at === null ? [option(NOW, t("Now"))] : [];
    const named = now.length + versions.length && changes.some((one) => String(one.n) === chosen) || chosen === NOW ? [] : [option(chosen, t("As shown"))];
    this.#version.replaceChildren(...now, ...named, ...versions);
    this.#since.replaceChildren(option(NOTHING, t("don't compare")), option("0", t("the beginning of the session")), ...changes.map((one) => option(String(one.n), words(one))));
    this.#since.disabled = !changes.length;
    this.#version.value = chosen;
    this.#since.value = before;
    this.#mention.hidden = Boolean(this.store.session.foreign);
  }

  /** The record of the chosen version; null for now. */
  #at() {
    return this.#version.value === NOW ? null : Number(this.#version.value);
  }

  /** What puts this file alone back: to the chosen version, or to how it was before the changes that are shown. */
  #offerRestore() {
    const { session, at } = this.store;
    const since = this.#since.value === NOTHING ? null : Number(this.#since.value);
    const n = since ?? this.#at();
    const change = this.#changes.find((each) => each.n === n);
    const isNewest = change === this.#changes[0] && this.store.ended <= (change?.n ?? 0);
    this.#restore.replaceChildren();
    if (at !== null || session.readonly || session.foreign || !change || isNewest) return;

    const wasDeleted = change.paths.some(({ path, kind }) => path === this.#path && kind === "delete");
    const words = wasDeleted ? t("Delete this file again") : since === null ? t("Restore this version") : t("Undo these changes");
    const button = el("button", { type: "button", title: t("Only this file; {time}, {call}", { time: timeOfDay(change.at), call: change.function }) }, words);
    twice(button, words, wasDeleted ? t("Delete it now?") : t("Put this file back?"), () => this.#putBack(change));
    this.#restore.append(button);
  }

  /** @param {Change} change the file becomes as it was after it */
  async #putBack(change) {
    const path = this.#path;
    try {
      await this.ask("restore", { version: String(change.n), path });
    } catch (error) {
      setText(this.#facts, error instanceof Error ? error.message : String(error));
      return;
    }
    await this.open(path, { at: null });
    if (path === this.#path) setText(this.#facts, t("This file is again as it was after {call}, {time}. Earlier states are under Version.", { call: change.function, time: timeOfDay(change.at) }));
  }

  async #show() {
    const question = ++this.#question;
    this.#offerRestore();
    const [path, at] = [this.#path, this.#at()];
    const compared = this.#since.value !== NOTHING;
    /** @type {HTMLElement[]} */ let parts;
    let said = "";
    try {
      if (compared) {
        const told = await this.ask("file.diff", { path, since: Number(this.#since.value), at: at ?? undefined });
        said = told.text ? told.added === null || told.removed === null ? "" : t("Lines: {added} added, {removed} removed", { added: told.added, removed: told.removed }) : t("Nothing changed in it.");
        parts = drawn(told.text);
      } else {
        const shown = /** @type {Shown} */ (await this.ask("file", { path, at }));
        said = sizeOf(shown);
        parts = await this.#parts(shown, at);
      }
    } catch (error) {
      parts = [el("p", { className: "nothing", role: "alert" }, error instanceof Error ? error.message : String(error))];
    }
    if (question !== this.#question) return;
    setText(this.#facts, said);
    this.#content.replaceChildren(...parts);
    this.#content.scrollTop = 0;
  }

  /**
   * @param {Shown} shown
   * @param {number|null} at
   * @returns {Promise<HTMLElement[]>}
   */
  async #parts(shown, at) {
    if (["image", "audio", "video"].includes(shown.show)) {
      await styled("embeds");
      const made = await (await this.pictures()).ofFile(shown, at);
      return [made ?? el("p", { className: "nothing" }, t("This file is too large to be shown here; download it to look."))];
    }
    if (shown.show === "link") return [el("p", {}, t("A link to {target}. Links are not followed.", { target: shown.target ?? "" }))];
    const text = textOf(shown);
    if (!shown.look) return text;
    try {
      const [{ look }] = await Promise.all([import("./look.js"), styled("look")]);
      const parts = await look(shown.look, this.#source(shown, at));
      return shown.text === undefined ? parts : [...parts, el("details", {}, el("summary", {}, t("As text")), ...text)];
    } catch (error) {
      return [el("p", { className: "facts", role: "alert" }, error instanceof Error ? error.message : String(error)), ...text];
    }
  }

  /**
   * @param {Shown} shown
   * @param {number|null} at
   * @returns {import("./look.js").Source}
   */
  #source({ path, text = "" }, at) {
    return {
      name: path, text,
      view: () => this.ask("file.view", { path, at }),
      bytes: async () => (await contentOf((await this.ask("file.download", { path, at })).href)).arrayBuffer(),
      format: (piece) => this.store.format(this.store.selected, piece),
    };
  }
}

/** The text of a file, as far as it is one. @param {Shown} shown */
function textOf({ show, text = "" }) {
  if (show === "binary") return [el("p", { className: "nothing" }, t("Binary file. Download it to view it."))];
  const more = show === "large" ? [el("p", { className: "facts" }, t("The file is long. Only its beginning is shown."))] : [];
  return [...more, lined(text)];
}

/**
 * @param {string} value
 * @param {string} label
 */
function option(value, label) {
  return el("option", { value }, label);
}

/** Text with line numbers, which are not copied along. @param {string} text */
function lined(text) {
  const count = text.replace(/\n$/, "").split("\n").length;
  const numbers = el("span", { className: "file-numbers", "aria-hidden": "true" });
  numbers.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  return el("div", { className: "file-text" }, numbers, el("pre", {}, text));
}

/** @param {string[][]} rows */
export function table([head, ...rows]) {
  return el("div", { className: "table" }, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))))));
}
