// The left pane: the call tree, updated in place so that focus and scroll stay where they are.

import { controls } from "./controls.js";
import { el, onceAFrame, part, setText } from "../base/dom.js";
import { agentName, endedAs, stateName, tokens } from "../base/format.js";
import { heard, number, t } from "../base/language.js";
import { lineOf } from "../dialogue/activity_line.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").TreeNode} TreeNode */
/** The number of nodes from which the tree can be filtered. */
const MANY = 8;
/** States in which a counter is shown. */
const BUSY = new Set(["thinking", "acting", "waiting", "paused"]);

/** States of nodes that ended abnormally. */
const STOPPED = new Set(["failed", "cancelled"]);

/** @typedef {{item: HTMLElement, group: HTMLElement, mark: HTMLElement, name: HTMLElement, doing: HTMLElement,
 *   tokens: HTMLElement, buttons: ReturnType<typeof controls>}} Row */

export class Tree {
  #root = part("tree");
  #count = part("agent-count");
  #hint = part("tree-hint");
  #none = part("tree-none");
  #filter = /** @type {HTMLInputElement} */ (part("tree-filter"));
  /** The number of agents in each state; each count filters by that state. */
  #tally = el("p", { className: "tree-tally", role: "group", "aria-label": t("Agents by state"), hidden: true });
  /** @type {Map<string, Row>} */ #rows = new Map();
  /** The path of the item that Tab reaches. */ #focused;

  /**
   * @param {Store} store
   * @param {import("./controls.js").Actions} actions
   * @param {(path: string) => void} choose
   */
  constructor(store, actions, choose) {
    this.store = store;
    this.#focused = store.selected;
    this.actions = actions;
    this.choose = choose;
    const update = onceAFrame(() => this.#update());
    for (const what of ["tree", "selected", "reset", "moved", "session"]) store.addEventListener(what, update);
    for (const what of ["records", "reset", "activity"]) store.addEventListener(what, update);
    store.addEventListener("tick", () => this.#tick());
    this.#filter.addEventListener("input", update);
    this.#filter.after(this.#tally);
    this.#tally.addEventListener("click", (event) => {
      const word = event.target instanceof HTMLElement ? event.target.closest("button")?.dataset.word : undefined;
      if (word === undefined) return;
      this.#filter.value = this.#filter.value === word ? "" : word;
      update();
    });
    this.#root.addEventListener("keydown", (event) => this.#key(event));
    this.#root.addEventListener("focusin", (event) => this.#rove(pathAt(event.target) ?? this.#focused));
    store.addEventListener("selected", () => { this.#focused = store.selected; });
    update();
  }

  #update() {
    const { nodes, selected } = this.store;
    const known = new Set(nodes.map((node) => node.path));
    for (const [path, row] of this.#rows) {
      if (!known.has(path)) {
        row.item.remove();
        this.#rows.delete(path);
      }
    }
    for (const node of nodes) this.#show(node, known);
    for (const [path, row] of this.#rows) {
      row.item.setAttribute("aria-selected", String(path === selected));
      if (row.group.childElementCount && !row.item.hasAttribute("aria-expanded")) this.#expand(row, true);
      else if (!row.group.childElementCount) row.item.removeAttribute("aria-expanded");
    }
    this.#rove(known.has(this.#focused) ? this.#focused : selected);
    setText(this.#count, nodes.length > 1 ? String(nodes.length) : "");
    this.#hint.hidden = nodes.length > 3;
    this.#sift();
  }

  #countUp() {
    const { nodes } = this.store;
    this.#tally.hidden = this.#filter.hidden;
    /** @type {Map<string, number>} */ const counts = new Map();
    for (const { state } of nodes) counts.set(state, (counts.get(state) ?? 0) + 1);
    const said = [...counts].map(([state, count]) => `${number(count)} ${stateName(state)}`).join(" ");
    if (said === this.#tally.dataset.said && this.#filter.value === this.#tally.dataset.chosen) return;
    this.#tally.dataset.said = said;
    this.#tally.dataset.chosen = this.#filter.value;
    const focused = this.#tally.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.word : undefined;
    this.#tally.replaceChildren(...[...counts].map(([state, count]) => el("button", { type: "button", "data-word": stateName(state), "aria-pressed": String(this.#filter.value === stateName(state)) }, `${number(count)} ${stateName(state)}`)));
    if (focused !== undefined) /** @type {HTMLElement|null} */ (this.#tally.querySelector(`[data-word="${CSS.escape(focused)}"]`))?.focus();
  }

  /** Show only the matches of the filter and their ancestors. */
  #sift() {
    const { nodes, asked } = this.store;
    this.#filter.hidden = nodes.length < MANY;
    this.#countUp();
    const words = this.#filter.hidden ? "" : this.#filter.value.trim().toLowerCase();
    const asking = new Set([...asked.values()].map((record) => record.agent));
    for (const { path, state, doing } of nodes) {
      const item = this.#rows.get(path)?.item;
      if (!item) continue;
      item.hidden = !`${path} ${asking.has(path) ? t("waiting for approval") : stateName(state)} ${heard(doing)}`.toLowerCase().includes(words);
      item.classList.toggle("asking", asking.has(path));
    }
    this.#none.hidden = !words || [...this.#rows.values()].some(({ item }) => !item.hidden);
    if (!words) return;
    for (const { item } of this.#rows.values()) {
      if (item.hidden) continue;
      for (let above = item.parentElement?.closest("li"); above; above = above.parentElement?.closest("li")) above.hidden = false;
    }
  }

  /**
   * @param {TreeNode} node
   * @param {Set<string>} known
   */
  #show(node, known) {
    const row = this.#rows.get(node.path) ?? this.#row(node, known);
    row.mark.dataset.state = node.state;
    row.mark.dataset.ended = node.ended ?? "";
    setText(row.name, node.path === "/" ? agentName("/") : node.name);
    this.#tell(row, node);
    const used = node.prompt_tokens + node.completion_tokens;
    setText(row.tokens, used ? tokens(used) : "");
    const [state, doing] = [stateName(node.state), heard(node.doing)];
    row.item.setAttribute("aria-label", [agentName(node.path), node.kind === "plan" ? t("plan") : "", doing.startsWith(state) ? "" : state, doing].filter(Boolean).join(", "));
    row.buttons.update(node);
    row.buttons.element.hidden = this.store.past;
  }

  /** What a node does, and for how long. @param {Row} row @param {TreeNode} node */
  #tell(row, node) {
    const { store } = this;
    const line = store.past ? null : lineOf(store, node, store.now());
    setText(row.doing, line?.text ?? (node.state === "paused" ? t("paused") : heard(node.doing) || endedAs(node) || (STOPPED.has(node.state) ? stateName(node.state) : "")));
    row.doing.dataset.kind = line?.kind ?? "";
    row.doing.title = line?.why ?? "";
  }

  /** Update once a second. */
  #tick() {
    for (const node of this.store.past ? [] : this.store.nodes) {
      const row = BUSY.has(node.state) ? this.#rows.get(node.path) : undefined;
      if (row) this.#tell(row, node);
    }
  }

  /**
   * @param {TreeNode} node
   * @param {Set<string>} known
   * @returns {Row}
   */
  #row(node, known) {
    const buttons = controls(this.actions, { labels: false });
    const mark = el("span", { className: "mark" });
    const name = el("span", { className: "node-name" });
    const doing = el("span", { className: "node-doing" });
    const used = el("span", { className: "node-tokens", title: t("Tokens") });
    const line = el("div", { className: "node" }, mark, el("span", { className: "node-text" }, name, doing), used, buttons.element);
    const group = el("ul", { role: "group" });
    const item = el("li", { role: "treeitem", tabIndex: -1, "data-path": node.path, "aria-keyshortcuts": "P I X" }, line);
    const row = { item, group, mark, name, doing, tokens: used, buttons };
    line.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.closest("button")) return;
      this.#rove(node.path);
      this.choose(node.path);
    });
    this.#rows.set(node.path, row);
    const parent = this.#rows.get(parentOf(node, known));
    if (parent) {
      parent.group.append(item);
      if (!parent.group.isConnected) parent.item.append(parent.group);
    } else {
      this.#root.append(item);
    }
    return row;
  }

  /**
   * @param {Row} row
   * @param {boolean} open
   */
  #expand(row, open) {
    row.item.setAttribute("aria-expanded", String(open));
    row.group.hidden = !open;
  }

  /** Let Tab reach this item. @param {string} path */
  #rove(path) {
    for (const [each, row] of this.#rows) {
      row.item.tabIndex = each === path ? 0 : -1;
      if (each !== path) row.buttons.takeBack();
    }
    this.#focused = path;
  }

  /** @param {string|undefined} path */
  #focus(path) {
    const row = path === undefined ? undefined : this.#rows.get(path);
    if (!row || path === undefined) return;
    this.#rove(path);
    row.item.focus();
  }

  /** The paths of the items that are not inside a collapsed item, in order. */
  #visible() {
    return [...this.#root.querySelectorAll("li")]
      .filter((item) => !item.closest("[hidden]") && !item.parentElement?.closest('li[aria-expanded="false"]'))
      .map((item) => item.dataset.path);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const path = pathAt(event.target) ?? this.#focused;
    const row = this.#rows.get(path);
    const node = this.store.node(path);
    if (!row || !node) return;
    const order = this.#visible();
    const at = order.indexOf(path);
    /** @type {Record<string, () => unknown>} */
    const keys = {
      ArrowDown: () => this.#focus(order[at + 1]),
      ArrowUp: () => this.#focus(order[at - 1]),
      Home: () => this.#focus(order[0]),
      End: () => this.#focus(order[order.length - 1]),
      ArrowRight: () => this.#right(row),
      ArrowLeft: () => this.#left(row),
      Enter: () => this.choose(path),
      " ": () => this.choose(path),
      p: () => this.store.past || this.actions.toggle(node),
      i: () => this.store.past || this.actions.inject(node),
      x: () => this.store.past || /** @type {HTMLButtonElement} */ (row.buttons.element.querySelector('[data-control="cancel"]')).click(),
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const onButton = event.target instanceof HTMLButtonElement && (event.key === "Enter" || event.key === " ");
    if (!act || onButton) return;
    event.preventDefault();
    act();
  }

  /** @param {Row} row */
  #right(row) {
    if (!row.group.childElementCount) return;
    if (row.group.hidden) this.#expand(row, true);
    else if (row.group.firstElementChild instanceof HTMLElement) this.#focus(row.group.firstElementChild.dataset.path);
  }

  /** @param {Row} row */
  #left(row) {
    if (row.group.childElementCount && !row.group.hidden) this.#expand(row, false);
    else this.#focus(/** @type {HTMLElement|null|undefined} */ (row.item.parentElement?.closest("li"))?.dataset.path);
  }
}

/** The path of the item that contains an element. @param {EventTarget|null} target */
function pathAt(target) {
  return target instanceof Element ? /** @type {HTMLElement|null} */ (target.closest("li"))?.dataset.path : undefined;
}

/**
 * The caller's path, or the nearest known ancestor by name.
 * @param {TreeNode} node
 * @param {Set<string>} known
 */
function parentOf(node, known) {
  if (node.path === "/") return "";
  if (known.has(node.caller) && node.caller !== node.path) return node.caller;
  let path = node.path;
  while (path.length > 1) {
    path = path.slice(0, path.lastIndexOf("/")) || "/";
    if (known.has(path)) return path;
  }
  return "";
}
