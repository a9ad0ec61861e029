// The waiting changes of the user's directory: a list of paths, the content of each change, and the user's decision.
// Nothing is loaded before it is shown: paths are loaded in pages, a diff when it is selected, counts for visible rows.

import { drawn } from "./diff.js";
import { el, onceAFrame, part, setText } from "../base/dom.js";
import { agentName, bytes } from "../base/format.js";
import { number, plural, t } from "../base/language.js";
import { Rows } from "../base/row_list.js";

const PAGE = 1000;
const COUNTED = 100;
const SENT = 300;
const HEIGHT = 40;

const WORDS = { add: t("added"), modify: t("changed"), delete: t("deleted") };
const SIGNS = { add: "A", modify: "M", delete: "D" };

/** How many changes of a kind are noise, in words. @type {Record<string, (count: number) => string>} */
const NOISE = {
  ignored: (count) => plural(count, "1 file that .gitignore names", "{count} files that .gitignore names"),
  git: (count) => plural(count, "1 raw object of git", "{count} raw objects of git"),
  cache: (count) => plural(count, "1 file in a cache", "{count} files in caches"),
};

/** @typedef {import("../state/wire.d.ts").PendingRow} Change */
/** @typedef {{added: number|null, removed: number|null}} Lines */
/** @typedef {import("../state/types.d.ts").Request} Request */

export class ReviewDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("review-dialog"));
  #all = /** @type {HTMLInputElement} */ (part("review-all"));
  #news = part("review-news");
  #sure = part("review-sure");
  #force = /** @type {HTMLInputElement} */ (part("review-force"));
  #diff = part("review-diff");
  /** All that wait, noise last. @type {Change[]} */ #changes = [];
  #folded = el("button", { type: "button", className: "link review-folded", hidden: true });
  #unfolded = false;
  /** @type {Set<string>} */ #chosen = new Set();
  /** @type {Map<string, Lines>} */ #lines = new Map();
  /** @type {Set<string>} */ #uncounted = new Set();
  /** What is asked about: exactly what was shown when the question was. @type {{op: "apply"|"drop", changes: Change[], every: boolean, digest: string, at: number}|undefined} */ #asked;
  /** The digest of the whole list. */ #digest = "";
  #current = 0;
  #at = 0;
  #busy = false;
  #loads = 0;

  /**
   * @param {Request} request
   * @param {(total: number) => void} tell reports how many changes wait
   */
  constructor(request, tell) {
    this.request = request;
    this.tell = tell;
    /** @type {Rows<Change>} */
    this.rows = new Rows(part("review-rows"), HEIGHT, (change) => this.#row(change), t("Waiting changes"));
    part("review-rows").append(this.rows.list);
    part("review-rows").after(this.#folded);
    this.#folded.addEventListener("click", () => {
      this.#unfolded = !this.#unfolded;
      this.#fold();
    });
    for (const op of /** @type {const} */ (["apply", "drop"])) part(`review-${op}`).addEventListener("click", () => this.#ask(op));
    part("review-yes").addEventListener("click", (event) => event.isTrusted && this.#do());
    part("review-no").addEventListener("click", () => this.#leave());
    this.#all.addEventListener("change", () => this.#choose(this.#all.checked ? this.#changes.map((one) => one.path) : []));
    this.#dialog.addEventListener("keydown", (event) => this.#key(event));
    this.#dialog.addEventListener("cancel", (event) => {
      if (this.#sure.hidden) return;
      event.preventDefault();
      this.#leave();
    });
  }

  async show() {
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#leave();
    setText(this.#news, "");
    await this.#load();
    this.#focus();
  }

  /** Changes may have begun or ceased to wait. */
  async changed() {
    if (this.#dialog.open && !this.#busy) await this.#load();
  }

  async #load() {
    const load = ++this.#loads;
    /** @type {Change[]} */ const found = [];
    let digest = "";
    try {
      for (let total = 1, at = 0; found.length < total;) {
        const page = await this.request("pending", { start: found.length, count: PAGE });
        if (load !== this.#loads) return;
        if (at && at !== page.at && page.list.length) { // the list changed in between: load it from the beginning
          found.length = 0;
          at = 0;
          continue;
        }
        total = page.total;
        at = this.#at = page.at;
        digest = page.digest;
        found.push(...page.list);
        if (!page.list.length) break;
        if (total > PAGE) setText(part("review-total"), `${t("{some} of {all}", { some: found.length, all: total })} …`);
      }
    } catch (error) {
      this.#say(error);
    }
    if (digest !== this.#digest) this.#takeAway();
    this.#digest = digest;
    const before = this.#changes[this.#current]?.path;
    // First the changes that need a decision, then those that only wait along with them.
    const read = found.filter((one) => !one.noise);
    this.#changes = [...read.filter(pressing), ...read.filter((one) => !pressing(one)), ...found.filter((one) => one.noise)];
    this.#lines.clear();
    this.#uncounted.clear();
    const there = new Set(found.map((one) => one.path));
    this.#chosen = new Set([...this.#chosen].filter((path) => there.has(path)));
    this.#current = Math.max(0, this.#changes.findIndex((one) => one.path === before));
    this.#fold();
    this.tell(found.length);
    this.#count();
    await this.#open();
  }

  /** How many changes have a row: all but the noise, unless that is unfolded or there is nothing else. */
  #shown() {
    const read = this.#changes.filter((one) => !one.noise).length;
    return this.#unfolded || !read ? this.#changes.length : read;
  }

  /** Show the rows, and one line for the noise. */
  #fold() {
    /** @type {Map<string, number>} */ const counts = new Map();
    for (const { noise } of this.#changes) if (noise) counts.set(noise, (counts.get(noise) ?? 0) + 1);
    const words = [...counts].map(([kind, count]) => NOISE[kind]?.(count) ?? "").filter(Boolean).join(", ");
    this.#folded.hidden = !words || counts.size === 0 || this.#changes.every((one) => one.noise);
    setText(this.#folded, this.#unfolded ? t("Hide {what}", { what: words }) : t("Show {what}", { what: words }));
    this.rows.clear();
    this.rows.show(this.#changes.slice(0, this.#shown()));
    this.#current = Math.min(this.#current, Math.max(0, this.#shown() - 1));
    this.#marks();
  }

  /** @param {Change} change */
  #row(change) {
    const box = el("input", { type: "checkbox", checked: this.#chosen.has(change.path), "aria-label": t("Select {path}", { path: change.path }), tabIndex: -1 });
    box.addEventListener("change", () => this.#toggle(change, box.checked));
    const name = el("button", { type: "button", className: "review-path", title: change.path },
      el("span", { className: `review-kind ${change.kind}`, "aria-hidden": "true" }, SIGNS[change.kind]), el("span", { className: "sr" }, WORDS[change.kind]),
      el("bdi", {}, change.path), ...(change.conflict ? [el("span", { className: "badge error" }, t("conflict"))] : []),
      ...(change.from || change.to ? [el("span", { className: "badge" }, change.from ? t("renamed") : t("moved away"))] : []),
      el("span", { className: "review-lines" }));
    name.addEventListener("click", () => this.#go(this.#changes.indexOf(change)));
    const row = el("div", { className: "review-row", "data-path": change.path }, box, name);
    this.#mark(row, change);
    if (!this.#lines.has(change.path)) {
      this.#uncounted.add(change.path);
      this.#countLines();
    }
    return row;
  }

  /**
   * @param {Element} row
   * @param {Change} change
   */
  #mark(row, change) {
    const current = this.#changes[this.#current] === change;
    row.classList.toggle("current", current);
    const name = row.querySelector(".review-path");
    if (current) name?.setAttribute("aria-current", "true");
    else name?.removeAttribute("aria-current");
    const box = row.querySelector("input");
    if (box) box.checked = this.#chosen.has(change.path);
    const lines = this.#lines.get(change.path);
    const place = row.querySelector(".review-lines");
    if (lines && lines.added !== null && place && !place.firstChild) {
      place.append(el("span", { className: "plus" }, `+${lines.added}`), " ", el("span", { className: "minus" }, `−${lines.removed}`));
    }
  }

  #marks() {
    const known = new Map(this.#changes.map((change) => [change.path, change]));
    for (const row of this.rows.list.querySelectorAll(".review-row")) {
      const change = known.get(/** @type {HTMLElement} */ (row).dataset.path ?? "");
      if (change) this.#mark(row, change);
    }
  }

  #countLines = onceAFrame(async () => {
    const paths = [...this.#uncounted].slice(0, COUNTED);
    for (const path of paths) this.#uncounted.delete(path);
    if (!paths.length) return;
    try {
      const { list } = await this.request("counts", { paths });
      for (const one of list) this.#lines.set(one.path, one);
      this.#marks();
    } catch { /* they are an aid only */ }
    if (this.#uncounted.size) this.#countLines();
  });

  /** @param {string[]} paths */
  #choose(paths) {
    this.#chosen = new Set(paths);
    this.#count();
    this.#marks();
  }

  /**
   * @param {Change} change
   * @param {boolean} on
   */
  #toggle(change, on) {
    if (on) this.#chosen.add(change.path);
    else this.#chosen.delete(change.path);
    this.#count();
    this.#marks();
  }

  #count() {
    const [some, all] = [this.#chosen.size, this.#changes.length];
    this.#all.checked = all > 0 && some === all;
    this.#all.indeterminate = some > 0 && some < all;
    setText(part("review-total"), all === 0 ? t("No changes are waiting.") : some ? t("{some} of {all} selected", { some, all }) : plural(all, "1 change", "{count} changes"));
    const few = some > 0 && some < all;
    setText(part("review-apply"), few ? t("Apply selected ({some})", { some }) : t("Apply all"));
    setText(part("review-drop"), few ? t("Discard selected ({some})", { some }) : t("Discard all"));
    for (const op of ["apply", "drop"]) /** @type {HTMLButtonElement} */ (part(`review-${op}`)).disabled = all === 0;
  }

  /** The changes to apply or drop: the selected ones with all that is in them, or all if none is selected. */
  #meaning() {
    return this.#chosen.size ? this.#changes.filter(({ path }) => this.#chosen.has(path) || above(path).some((one) => this.#chosen.has(one))) : this.#changes;
  }

  // --- one change

  /** @param {number} index */
  #go(index) {
    this.#current = Math.min(Math.max(index, 0), this.#shown() - 1);
    this.#marks();
    this.#open();
  }

  async #open() {
    const change = this.#changes[this.#current];
    if (!change) {
      this.#diff.replaceChildren(el("p", { className: "nothing" }, t("No changes wait for review.")));
      return;
    }
    this.#diff.replaceChildren(...this.#about(change));
    const text = el("div", { className: "review-text" }, el("p", { className: "nothing" }, t("Loading …")));
    this.#diff.append(text);
    this.#diff.scrollTop = 0;
    try {
      const patch = await this.request("patch", { path: change.path });
      if (this.#changes[this.#current] !== change) return;
      if (patch.digest !== change.digest) return void this.#load();
      const parts = drawn(patch.text);
      text.replaceChildren(...(parts.length ? parts : [el("p", { className: "nothing" }, t("No line would change."))]));
    } catch (error) {
      text.replaceChildren(el("p", { className: "notice warning" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {Change} change */
  #about(change) {
    const { was, now } = change;
    const facts = [
      was && now && was.type !== now.type ? t("a {before} becomes a {after}", { before: t(was.type), after: t(now.type) }) : t((now ?? was)?.type ?? ""),
      was && now && was.mode !== now.mode ? t("mode {before} → {after}", { before: octal(was.mode), after: octal(now.mode) }) : "",
      now?.target ? t("points to {target}", { target: now.target }) : "",
      was?.type === "file" && now?.type === "file" ? (was.size === now.size ? bytes(now.size ?? 0) : `${bytes(was.size ?? 0)} → ${bytes(now.size ?? 0)}`) : (now ?? was)?.type === "file" ? bytes((now ?? was)?.size ?? 0) : "",
      change.agents.length ? t("by {agents}", { agents: change.agents.map(agentName).join(", ") }) : "",
    ].filter(Boolean);
    const notes = [
      change.from ? t("Renamed from {from}: apply both to move it.", { from: change.from }) : "", change.to ? t("Renamed to {to}: apply both to move it.", { to: change.to }) : "",
      change.conflict ? t("This has also changed in your directory in the meantime. Applying it overwrites that change.") : "",
    ].filter(Boolean);
    return [
      el("h3", {}, el("span", { className: `review-kind ${change.kind}`, "aria-hidden": "true" }, SIGNS[change.kind]), " ", el("bdi", {}, change.path), el("span", { className: "sr" }, `, ${WORDS[change.kind]}`)),
      el("p", { className: "facts" }, facts.join(" · ")),
      ...notes.map((note) => el("p", { className: "notice warning" }, note)),
      el("p", { className: "review-why" }, el("strong", {}, `${t("Why it waits:")} `), [change.reason, change.impact > 1 ? change.why : ""].filter(Boolean).join(" ")),
    ];
  }

  // --- applying and dropping

  /** @param {"apply"|"drop"} op */
  #ask(op) {
    const meant = this.#meaning();
    if (!meant.length || this.#busy) return;
    this.#asked = { op, changes: meant, every: meant.length === this.#changes.length, digest: this.#digest, at: this.#at };
    const met = meant.filter((one) => one.conflict).length;
    setText(part("review-words"), op === "apply"
      ? t("This writes into your directory now: {changes}. Files that are overwritten or deleted there can't be restored from here.", { changes: summary(meant) })
      : t("This discards what the agents did: {changes}. Your directory stays as it is.", { changes: summary(meant) }));
    this.#force.checked = false;
    part("review-force-line").hidden = op === "drop" || met === 0;
    setText(part("review-force-words"), plural(met, "Also overwrite the one that has changed in the directory in the meantime", "Also overwrite the {count} that have changed in the directory in the meantime"));
    setText(part("review-yes"), op === "apply" ? t("Yes, apply") : t("Yes, discard"));
    this.#sure.hidden = false;
    part("review-yes").focus();
  }

  #leave() {
    this.#sure.hidden = true;
    this.#asked = undefined;
  }

  /** The list has changed: take away a question that was about the list before. */
  #takeAway() {
    if (this.#sure.hidden) return;
    this.#leave();
    setText(this.#news, t("The list has changed while you were asked. Look at it again, then decide."));
  }

  async #do() {
    if (this.#busy || !this.#asked) return;
    const { op, changes, every, digest, at } = this.#asked;
    const pieces = every ? [{ paths: null, digest }] : Array.from({ length: Math.ceil(changes.length / SENT) }, (_, piece) => {
      const some = changes.slice(piece * SENT, (piece + 1) * SENT);
      return { paths: some.map(({ path }) => path), digests: Object.fromEntries(some.map((one) => [one.path, one.digest.slice(0, 32)])) };
    });
    this.#busy = true;
    this.#leave();
    setText(this.#news, t("Working …"));
    let [done, left, notes] = [0, /** @type {any[]} */ ([]), /** @type {any[]} */ ([])];
    try {
      for (const piece of pieces) {
        const force = op === "apply" ? { force: this.#force.checked } : {};
        const answer = await this.request(op, { ...piece, at, ...force });
        done += answer.done;
        left.push(...answer.left);
        notes.push(...answer.notes);
      }
      this.#choose([]);
      setText(this.#news, [op === "apply" ? plural(done, "1 change is in your directory now.", "{count} changes are in your directory now.") : plural(done, "1 change is discarded.", "{count} changes are discarded."),
        left.length ? plural(left.length, "1 change was not made: {path}: {why}", "{count} changes were not made: {path}: {why}", left[0]) : "", notes.length ? `${notes[0].path}: ${notes[0].why}` : ""].filter(Boolean).join(" "));
    } catch (error) {
      this.#say(error);
    } finally {
      this.#busy = false;
    }
    await this.#load();
    this.#focus();
  }

  /** @param {unknown} error */
  #say(error) {
    setText(this.#news, error instanceof Error ? error.message : String(error));
  }

  // --- keys

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.#sure.hidden) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const inText = this.#diff.contains(target);
    const button = target instanceof HTMLButtonElement && !target.classList.contains("review-path");
    const step = { j: 1, k: -1, ...(inText ? {} : { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }) }[event.key];
    const change = this.#changes[this.#current];
    if (step !== undefined) {
      this.#go(this.#current + step);
      this.#focus();
    } else if (event.key === " " && !button && !inText && change) {
      this.#toggle(change, !this.#chosen.has(change.path));
    } else if (event.key === "a" || event.key === "d") {
      this.#ask(event.key === "a" ? "apply" : "drop");
    } else if (event.key === "Enter" && !button) {
      this.#diff.focus();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Scroll the current row into view, and focus it. */
  #focus() {
    if (!this.#dialog.open) return;
    const scroll = this.rows.scroll;
    const top = this.#current * HEIGHT;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + HEIGHT > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + HEIGHT - scroll.clientHeight;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      // With fast typing, another row may have been selected by now.
      if (this.#sure.hidden) /** @type {HTMLElement|null} */ (this.rows.list.querySelector('[aria-current="true"]'))?.focus({ preventScroll: true });
    }));
  }
}

/** @param {Change} change */
function pressing(change) {
  return change.impact > 1 || change.conflict === true;
}

/** The folders that a path is in. @param {string} path */
function above(path) {
  const names = path.split("/");
  return names.slice(1).map((_, count) => names.slice(0, count + 1).join("/"));
}

/** @param {Change[]} changes */
function summary(changes) {
  const parts = /** @type {const} */ (["add", "modify", "delete"]).map((kind) => {
    const count = changes.filter((one) => one.kind === kind).length;
    return count ? `${number(count)} ${WORDS[kind]}` : "";
  });
  return parts.filter(Boolean).join(", ");
}

/** @param {number} mode */
function octal(mode) {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}
