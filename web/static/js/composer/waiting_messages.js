// What waits at the end of a dialogue: messages that no agent has read yet, each with what can still be done about it, and
// what a pause holds back or lets run. Fetched when it is first needed.

import { el, onceAFrame, part, setText, styled } from "../base/dom.js";
import { agentName, timed } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").TreeNode} TreeNode */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */

/** The running calls of an agent and the agents below it. @param {Store} store @param {string} path @returns {JournalRecord[]} */
function running(store, path) {
  return store.nodes.filter((node) => within(node.path, path)).flatMap((node) => node.calls ?? [])
    .map((n) => store.record(n)).filter((record) => record !== undefined);
}

/** @param {string} path @param {string} above */
function within(path, above) {
  return path === above || path.startsWith(above === "/" ? "/" : `${above}/`);
}

export class WaitingMessages {
  #held = el("p", { className: "pause-line", hidden: true });
  #text = el("span", {});
  #act = el("button", { type: "button", className: "link" });
  #list = el("div", { className: "queue" });
  /** The message that is being edited, which must not be drawn again. */ #changing = 0;
  /** @type {() => void} */ #does = () => undefined;

  /**
   * @param {Store} store
   * @param {import("../state/types.d.ts").Act} act
   */
  constructor(store, act) {
    this.store = store;
    this.act = act;
    this.#held.append(this.#text, " ", this.#act);
    this.#act.addEventListener("click", () => this.#does());
    part("scroll").append(this.#list);
    part("composer").before(this.#held);
    const update = onceAFrame(() => this.#update());
    for (const what of ["tree", "records", "selected", "moved", "reset", "tick"]) store.addEventListener(what, update);
    styled("queue").then(update, update);
  }

  #update() {
    const { store } = this;
    const node = store.node(store.selected);
    const queued = (node?.queued ?? []).map((n) => store.record(n)).filter((record) => record !== undefined);
    this.#showHeld(store.past ? undefined : node);
    if (queued.some((record) => record.n === this.#changing)) return;
    this.#changing = 0;
    const key = [store.selected, store.past, ...queued.flatMap((record) => [record.n, record.said])].join(" ");
    if (this.#list.dataset.key === key) return;
    this.#list.dataset.key = key;
    this.#list.replaceChildren(...queued.map((record) => this.#bubble(record)));
    if (queued.length) this.#list.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  /** What a pause holds back at and below the selected agent, and what runs despite it. @param {TreeNode|undefined} node */
  #showHeld(node) {
    const { store } = this;
    const paused = node && node.state === "paused";
    const calls = paused ? running(store, node.path) : [];
    const below = node && !paused ? store.nodes.find((one) => one.paused && one.path !== node.path && within(one.path, node.path)) : undefined;
    this.#held.hidden = !calls.length && !below;
    if (calls.length && node) {
      setText(this.#text, t("Paused. Still running until finished: {calls}", { calls: timed(calls, store.now()) }));
      setText(this.#act, t("Stop it now"));
      this.#does = () => this.act("calls.stop", { path: node.path });
    } else if (below) {
      setText(this.#text, t("{agent} is paused.", { agent: below.path }));
      setText(this.#act, t("Resume"));
      this.#does = () => this.act("resume", { path: below.path });
    }
  }

  /** @param {JournalRecord} record */
  #bubble(record) {
    const path = record.agent;
    const says = record.kind === "say" ? t("Waits until the answer is finished") : record.mode === "queue" ? t("Waits for its next turn") : t("Waits for its next step");
    const text = el("p", { className: "queued-text", dir: "auto" }, record.said ?? record.body);
    const button = (/** @type {string} */ label, /** @type {() => void} */ does) => {
      const made = el("button", { type: "button", className: "link" }, label);
      made.addEventListener("click", does);
      return made;
    };
    const foot = el("footer", {}, el("span", {}, says));
    if (!this.store.past) {
      foot.append(
        button(t("Send now"), () => this.act("queue.send", { path, n: record.n })),
        button(t("Edit"), () => this.#change(record, text, foot)),
        button(t("Remove"), () => this.act("queue.remove", { path, n: record.n })));
    }
    return el("article", { className: "queued", "data-n": record.n, "aria-label": t("Waiting message for {agent}", { agent: agentName(path) }) }, text, foot);
  }

  /**
   * The text becomes a field.
   * @param {JournalRecord} record
   * @param {HTMLElement} text
   * @param {HTMLElement} foot
   */
  #change(record, text, foot) {
    this.#changing = record.n;
    const field = el("textarea", { value: record.said ?? record.body, rows: 3, "aria-label": t("Message") });
    const over = () => {
      this.#changing = 0;
      this.#list.dataset.key = "";
      this.#update();
    };
    const save = el("button", { type: "button", className: "link" }, t("Save"));
    const leave = el("button", { type: "button", className: "link" }, t("Cancel"));
    save.addEventListener("click", () => {
      if (field.value.trim() && field.value !== record.said) this.act("queue.edit", { path: record.agent, n: record.n, text: field.value });
      over();
    });
    leave.addEventListener("click", over);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave.click();
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save.click();
      event.stopPropagation();
    });
    text.replaceWith(field);
    foot.replaceChildren(save, leave);
    field.focus();
  }
}
