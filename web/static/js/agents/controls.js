// The same three buttons for every agent, wherever it is shown: pause or resume, intervene, cancel.

import { el, icon, setText, twice } from "../base/dom.js";
import { agentName } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/types.d.ts").TreeNode} TreeNode */
/**
 * @typedef {object} Actions
 * @property {(node: TreeNode) => void} toggle pause or resume
 * @property {(node: TreeNode) => void} inject
 * @property {(node: TreeNode) => void} cancel
 */

const RUNNING = new Set(["thinking", "acting", "waiting", "paused"]);

/** @param {TreeNode} node */
export function cancellable(node) {
  return RUNNING.has(node.state);
}

/**
 * The buttons of one agent; call `update` with every new view of it.
 * @param {Actions} actions
 * @param {{labels: boolean}} options whether the icons have labels and Tab reaches the buttons
 */
export function controls(actions, { labels }) {
  /** @type {TreeNode|null} */ let node = null;
  const toggle = button("pause", t("Pause"), labels);
  const inject = button("inject", t("Message this agent"), labels);
  const cancel = button("cancel", t("Stop"), labels);
  const takeBack = twice(cancel, ` ${t("Stop")}`, ` ${t("Really stop?")}`, () => node && actions.cancel(node), cancel.querySelector(".label"));
  cancel.addEventListener("click", () => cancel.classList.contains("sure") && warn(cancel));
  cancel.addEventListener("pointerleave", takeBack);
  toggle.addEventListener("click", () => node && actions.toggle(node));
  inject.addEventListener("click", () => node && actions.inject(node));
  const element = el("div", { className: labels ? "controls-row" : "node-controls" }, toggle, inject, cancel);
  if (labels) element.style.display = "contents";
  return {
    element,
    takeBack,
    /** @param {TreeNode} view */
    update(view) {
      if (view.path !== node?.path) takeBack();
      node = view;
      const agent = agentName(view.path);
      name(toggle, view.paused ? t("Resume") : t("Pause"), view.paused ? "resume" : "pause", agent);
      toggle.title = view.paused ? t("Resume") : t("Starts nothing new; running tools finish first");
      name(inject, t("Message this agent"), "inject", agent);
      if (!cancel.classList.contains("sure")) name(cancel, t("Stop"), "cancel", agent);
      cancel.disabled = !cancellable(view);
    },
  };
}

/**
 * @param {"pause"|"inject"|"cancel"} shape
 * @param {string} label
 * @param {boolean} labels
 */
function button(shape, label, labels) {
  const made = /** @type {HTMLButtonElement} */ (
    el("button", { type: "button", tabIndex: labels ? 0 : -1, "data-shape": shape, "data-control": shape }, icon(shape)));
  if (labels) made.append(el("span", { className: "label" }, ` ${label}`));
  return made;
}

/**
 * @param {HTMLButtonElement} target
 * @param {string} label
 * @param {"pause"|"resume"|"inject"|"cancel"} shape
 * @param {string} path
 */
function name(target, label, shape, path) {
  if (target.dataset.shape !== shape) {
    target.dataset.shape = shape;
    target.querySelector("svg")?.replaceWith(icon(shape));
  }
  target.title = label;
  target.setAttribute("aria-label", `${label} ${path}`);
  const words = target.querySelector(".label");
  if (words) setText(words, ` ${label}`);
}

/** Say what the second press will do. @param {HTMLButtonElement} target */
function warn(target) {
  target.title = t("Press again to stop this agent and all agents below it");
  target.setAttribute("aria-label", target.title);
}
