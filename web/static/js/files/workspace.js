// The files of the session, as a tree or by the call that changed them; as they are now, or as they were after the shown
// record. Folders are filled when they are opened, so that many files cost nothing.

import { el, setText, styled, twice } from "../base/dom.js";
import { agentName, bytes, dateTime, timeOfDay } from "../base/format.js";
import { plural, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** @typedef {"add"|"modify"|"delete"} Kind */
/** @typedef {{path: string, kind: "file"|"link"|"folder"|"other", size: number, n?: number}} FileFacts */
/** @typedef {{n: number, at: string, agent: string, function: string, paths: {path: string, kind: Kind}[], more: number}} Change */
/** @typedef {{list: FileFacts[], more: number, n: number, unkept: number, folder: string, why: string}} Listing */
/** @typedef {Map<string, Branch|FileFacts>} Branch what is in a folder, by name */

/** The number of entries of a folder, or of calls, that are put into the page at once. */
const AT_ONCE = 300;
/** Milliseconds between two requests while calls begin and end. */
const REST = 400;

export const KINDS = { add: "A", modify: "M", delete: "D" };
const KIND_WORDS = { add: t("new"), modify: t("changed"), delete: t("deleted") };

export class WorkspaceView {
  #which = /** @type {"all"|"changes"} */ ("all");
  #filter = el("input", { type: "search", placeholder: t("Filter by name"), "aria-label": t("Filter files by name"), autocomplete: "off", spellcheck: false });
  #said = el("p", { className: "facts", role: "status" });
  #list = el("div", { className: "workspace-list" });
  #all = el("button", { type: "button" }, t("Download all (.zip)"));
  element = el("div", { className: "workspace" });
  /** What the shown answer is about. */ #answered = "";
  #asking = false;
  /** @type {Listing|null} */ #files = null;
  /** @type {{list: Change[], earlier: number}} */ #changes = { list: [], earlier: 0 };
  /** The folders that the user opened. @type {Set<string>} */ #open = new Set();

  /**
   * @param {Store} store
   * @param {Ask} ask
   * @param {{open: (path: string, options?: {at?: number|null, since?: number}) => void, fetch: import("../state/types.d.ts").Fetch, reveal: (n: number) => void}} actions
   */
  constructor(store, ask, actions) {
    this.store = store;
    this.ask = ask;
    this.actions = actions;
    const which = el("div", { className: "segmented small", role: "radiogroup", "aria-label": t("Which files to list") },
      this.#choice("all", t("All files")), this.#choice("changes", t("By time of change")));
    this.#filter.addEventListener("input", () => this.#draw());
    this.#all.addEventListener("click", () => actions.fetch("files.download", {}));
    this.element.append(el("div", { className: "workspace-head" }, which, this.#all), this.#filter, this.#said, this.#list);
  }

  /**
   * @param {"all"|"changes"} which
   * @param {string} label
   */
  #choice(which, label) {
    const input = el("input", { type: "radio", name: "workspace-which", value: which, checked: which === this.#which });
    input.addEventListener("change", () => {
      this.#which = which;
      this.#draw();
    });
    return el("label", {}, input, el("span", {}, label));
  }

  /** Show the files. Asks the server only if something may have changed. */
  async show() {
    const about = this.#about();
    if (about === this.#answered || this.#asking) return;
    this.#asking = true;
    try {
      await styled("workspace");
      const [files, changes] = await Promise.all([this.#asked("files"), this.#asked("files.changes")]);
      this.#answered = about;
      if (about !== this.#about()) return;
      this.#files = files instanceof Error ? null : files;
      this.#changes = changes instanceof Error ? { list: [], earlier: 0 } : changes;
      if (files instanceof Error) setText(this.#said, files.message);
      this.#draw();
    } finally {
      this.#asking = false;
      if (about !== this.#about()) setTimeout(() => this.element.isConnected && this.show(), REST);
    }
  }

  /**
   * @template {"files"|"files.changes"} T
   * @param {T} type
   * @returns {Promise<import("../state/wire.d.ts").Requests[T]["answer"]|Error>}
   */
  #asked(type) {
    return this.ask(type, {}).catch((/** @type {unknown} */ error) => error instanceof Error ? error : new Error(String(error)));
  }

  /** The state that the files depend on: the session, the record looked back to, and the calls that ended. */
  #about() {
    const { session, at } = this.store;
    return `${session.id} ${session.readonly} ${at ?? `now ${this.store.ended}`}`;
  }

  #draw() {
    const words = this.#filter.value.trim().toLowerCase();
    this.#all.disabled = !this.#files?.list.some((one) => one.kind === "file");
    if (this.#files) setText(this.#said, this.#about_files(this.#files));
    const focused = this.#focused();
    if (this.#which === "changes") this.#list.replaceChildren(...this.#byChange(words));
    else this.#list.replaceChildren(...this.#tree(words));
    if (focused) /** @type {HTMLElement|null} */ (this.#list.querySelector(`[data-path="${CSS.escape(focused)}"]`))?.focus();
  }

  /** The path of the row that has the focus. */
  #focused() {
    const at = document.activeElement;
    return at instanceof HTMLElement && this.#list.contains(at) ? at.dataset.path : undefined;
  }

  /** @param {Listing} files */
  #about_files({ n, unkept, folder, why, more, list }) {
    const { at } = this.store;
    const record = this.store.record(n);
    const said = [];
    if (at !== null && !list.length && !n) said.push(t("No files had been written yet."));
    else if (at !== null && record?.function) said.push(t("As they were after {call}, {time}.", { call: record.function, time: timeOfDay(record.at) }));
    else if (at !== null && record) said.push(t("As they were restored, {time}.", { time: timeOfDay(record.at) }));
    else said.push(folder ? t("As they are now in {folder}.", { folder }) : t("As they are now."));
    if (unkept) said.push(t("The files after a later call could not be stored."));
    if (more) said.push(t("{more} more are not listed.", { more }));
    if (why && at === null && (this.#which === "changes" || folder)) said.push(why);
    return said.join(" ");
  }

  // --- the tree

  /** @param {string} words */
  #tree(words) {
    const all = this.#files?.list ?? [];
    if (words) {
      const found = all.filter((one) => one.path.toLowerCase().includes(words));
      return [this.#files_list(found.map((one) => ["", one]), AT_ONCE), ...(found.length ? [] : [nothing(t("No file has that name."))])];
    }
    if (!all.length) return [nothing(this.#files ? t("There are no files here.") : "")];
    return [this.#folder(branches(all), "")];
  }

  /**
   * @param {Branch} branch
   * @param {string} prefix
   */
  #folder(branch, prefix) {
    const entries = [...branch].sort(([a, x], [b, y]) => Number(y instanceof Map) - Number(x instanceof Map) || a.localeCompare(b));
    return this.#files_list(entries.map(([name, one]) => [name, one]), AT_ONCE, prefix);
  }

  /**
   * @param {[string, Branch|FileFacts][]} entries
   * @param {number} most
   * @param {string} [prefix]
   */
  #files_list(entries, most, prefix = "") {
    const list = el("ul", { className: "workspace-files" }, ...entries.slice(0, most).map(([name, one]) =>
      el("li", {}, one instanceof Map ? this.#branch(name, one, prefix) : this.#file(one, name))));
    if (entries.length > most) {
      const more = el("button", { type: "button", className: "link" }, t("Show {count} more", { count: entries.length - most }));
      more.addEventListener("click", () => list.replaceWith(this.#files_list(entries, most + 10 * AT_ONCE, prefix)));
      list.append(el("li", {}, more));
    }
    return list;
  }

  /**
   * @param {string} name
   * @param {Branch} branch
   * @param {string} prefix
   */
  #branch(name, branch, prefix) {
    const path = `${prefix}${name}/`;
    const summary = el("summary", { "data-path": path }, el("bdi", {}, name), el("span", { className: "workspace-size" }, plural(branch.size, "{count} entry", "{count} entries")));
    const details = el("details", {}, summary);
    const fill = () => {
      if (details.open) this.#open.add(path);
      else this.#open.delete(path);
      if (details.open && details.childElementCount === 1) details.append(this.#folder(branch, path));
    };
    details.open = this.#open.has(path);
    fill();
    details.addEventListener("toggle", fill);
    return details;
  }

  /**
   * @param {FileFacts} one
   * @param {string} [name]
   */
  #file(one, name) {
    const newest = this.#changes.list[0]?.n;
    const by = one.n ? this.store.record(one.n) : undefined;
    const marked = one.n !== undefined && one.n === newest;
    const when = by ? timeOfDay(by.at) : "";
    const button = el("button", { type: "button", className: `workspace-file${marked ? " fresh" : ""}`, "data-path": one.path,
      title: by ? t("{path}, changed by {call} of {agent}, {time}", { path: one.path, call: by.function ?? by.op ?? "", agent: agentName(by.agent), time: dateTime(by.at) }) : one.path },
    el("bdi", {}, name || one.path), ...(marked ? [el("span", { className: "sr" }, t("changed by the newest call"))] : []),
    el("span", { className: "workspace-when" }, when), el("span", { className: "workspace-size" }, sizeOf(one)));
    if (one.kind === "folder") /** @type {HTMLButtonElement} */ (button).disabled = true;
    else button.addEventListener("click", () => this.actions.open(one.path));
    return button;
  }

  // --- changes by each call

  /** @param {string} words */
  #byChange(words) {
    const found = this.#changes.list.map((one) => words ? { ...one, paths: one.paths.filter(({ path }) => path.toLowerCase().includes(words)) } : one)
      .filter((one) => one.paths.length);
    if (!found.length) return [nothing(words ? t("No changes to a file with that name.") : t("No call has changed a file yet."))];
    const shown = found.slice(0, AT_ONCE).map((one) => this.#change(one));
    const earlier = this.#changes.earlier + Math.max(0, found.length - AT_ONCE);
    return earlier ? [...shown, nothing(t("{count} earlier changes are not listed; iact workspace log lists all.", { count: earlier }))] : shown;
  }

  /** @param {Change} change */
  #change(change) {
    const restored = change.function === "restore";
    const what = restored ? t("restored by you") : change.function;
    const head = el("button", { type: "button", className: "link", title: t("Show it in the dialogue") }, `${timeOfDay(change.at)} · ${what}`);
    head.addEventListener("click", () => this.actions.reveal(change.n));
    const rows = change.paths.map(({ path, kind }) => {
      const button = el("button", { type: "button", className: "workspace-file", "data-path": `${change.n} ${path}`, title: `${path}, ${KIND_WORDS[kind]}` },
        el("span", { className: `change-kind ${kind}`, "aria-hidden": "true" }, KINDS[kind]), el("bdi", {}, path), el("span", { className: "sr" }, KIND_WORDS[kind]));
      button.addEventListener("click", () => this.actions.open(path, { at: change.n, since: change.n - 1 }));
      return el("li", {}, button);
    });
    if (change.more) rows.push(el("li", { className: "facts" }, t("{more} more", { more: change.more })));
    return el("section", { className: "workspace-change" }, el("h3", {}, head, el("span", { className: "facts" }, restored ? "" : ` ${agentName(change.agent)}`), ...this.#restoring(change)), el("ul", { className: "workspace-files" }, ...rows));
  }

  /** What puts all files back to how they were after a call; agents are told of it. @param {Change} change */
  #restoring(change) {
    const { session, at, ended } = this.store;
    const newest = this.#changes.list[0]?.n === change.n && ended <= change.n;
    if (at !== null || session.readonly || newest) return [];
    const time = timeOfDay(change.at);
    const button = el("button", { type: "button", className: "workspace-restore", "aria-label": t("Restore the files as they were after {call}, {time}", { call: change.function, time }) }, t("Restore"));
    twice(button, t("Restore"), t("Put all files back?"), () => this.#restore(change.n));
    return [button];
  }

  /** @param {number} n */
  async #restore(n) {
    try {
      await this.ask("restore", { version: String(n) });
    } catch (error) {
      setText(this.#said, error instanceof Error ? error.message : String(error));
    }
  }
}

/** @param {FileFacts[]} files @returns {Branch} */
function branches(files) {
  /** @type {Branch} */ const top = new Map();
  for (const file of files) {
    const parts = file.path.split("/");
    const name = parts.pop() ?? "";
    let here = top;
    for (const part of parts) {
      const below = here.get(part);
      const next = below instanceof Map ? below : new Map();
      if (next !== below) here.set(part, next);
      here = next;
    }
    here.set(name, file);
  }
  return top;
}

/** @param {FileFacts} one */
export function sizeOf(one) {
  return one.kind === "file" ? bytes(one.size) : one.kind === "link" ? t("link") : one.kind === "folder" ? t("empty folder") : t("no file");
}

/** @param {string} text */
function nothing(text) {
  return el("p", { className: "nothing" }, text);
}
