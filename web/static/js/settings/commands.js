// What the palette offers: every control of the page, every tab, every agent.

import { cancellable } from "../agents/controls.js";
import { part } from "../base/dom.js";
import { agentName } from "../base/format.js";
import { TABS } from "../agents/inspector.js";
import { t } from "../base/language.js";

/** @typedef {import("./palette.js").Command} Command */
/** @typedef {{name: string, template?: import("../state/wire.d.ts").TemplateRow}} SavedPlan `template`: if it can be used */
/**
 * @typedef {object} Page
 * @property {import("../state/store.js").Store} store
 * @property {import("../agents/controls.js").Actions} actions
 * @property {(path: string) => void} choose
 * @property {import("../composer/composer.js").Composer} composer
 * @property {{reach: (tab: import("../agents/inspector.js").Tab) => void}} inspector
 * @property {import("../composer/approvals.js").Approvals} approvals
 * @property {{open: () => unknown}} replay
 * @property {import("../sessions/side.js").Side} sessions
 * @property {() => void} find
 * @property {{show: () => unknown}} settings
 * @property {import("../composer/uploads.js").Uploads} files
 * @property {{show: () => unknown}} modules
 * @property {{show: () => unknown}} memories
 * @property {import("../files/review_bar.js").ReviewBar} review
 * @property {(value: boolean) => void} lock
 * @property {(id: string|null, readonly?: boolean) => void} open
 * @property {(value: number) => void} setIntent
 * @property {() => void} exportPage
 * @property {SavedPlan[]} plans
 * @property {(plan: SavedPlan) => void} runPlan
 * @property {(text: string) => void} keepFirst
 */

const INTENTS = [t("read only (agents look around, but change nothing)"), t("change files (agents may also write and run programs in the sandbox)"), t("anything (agents may also delete, send data out, and do what can't be undone)")];

/**
 * @param {Page} page
 * @returns {Command[]}
 */
export function commandsOf(page) {
  const { store } = page;
  const node = store.node(store.selected);
  const live = () => store.session.id !== null && !store.past;
  const name = agentName(store.selected);
  return [
    { name: t("Write a message"), keys: "Alt+Shift+M", run: () => page.composer.focus() },
    { name: t("Go to pending approvals"), keys: "Alt+Shift+A", run: () => page.approvals.focus(), when: () => store.asked.size > 0, anywhere: true },
    { name: t("Review the changes that wait in your directory"), keys: "Alt+Shift+D", run: () => page.review.show(), when: () => page.review.waiting > 0 },
    { name: t("Go to the tree of agents"), keys: "Alt+Shift+T", run: () => focusTree() },
    { name: t("New session"), keys: "Alt+Shift+N", run: () => page.open(null) },
    { name: t("Sessions: search and open"), keys: "Alt+Shift+S", run: () => page.sessions.show() },
    { name: t("Search in this session"), keys: "Ctrl+F", run: () => page.find(), when: () => store.session.id !== null },
    { name: t("Replay this session"), keys: "Alt+Shift+R", run: () => page.replay.open(), when: live },
    { name: t("Attach a file"), keys: "Alt+Shift+U", run: () => page.files.choose(), when: () => !store.past },
    { name: t("Export this session as an HTML page"), keys: "Alt+Shift+E", run: () => page.exportPage(), when: () => store.session.id !== null },
    { name: t("Modules: list, add, approve, remove"), keys: "Alt+Shift+O", run: () => page.modules.show() },
    { name: t("Memory: search, edit, forget"), keys: "Alt+Shift+F", run: () => page.memories.show() },
    { name: store.locked ? t("Switch tools on again") : t("Switch tools off: every call of this session is denied"), run: () => page.lock(!store.locked), when: live },
    { name: t("Settings: appearance, language, models, this machine"), keys: "Alt+Shift+G", run: () => page.settings.show() },
    ...(node ? [
      { name: node.paused ? t("Resume {name}", { name }) : t("Pause {name}", { name }), keys: "Alt+Shift+P", run: () => page.actions.toggle(node), when: live },
      { name: t("Message {name}", { name }), keys: "Alt+Shift+I", run: () => page.actions.inject(node), when: live },
      { name: t("Stop {name} and all agents below it", { name }), run: () => page.actions.cancel(node), when: () => live() && cancellable(node) },
    ] : []),
    { name: t("Save the text in the message field as a first message"), run: () => page.keepFirst(page.composer.text), when: () => Boolean(page.composer.text.trim()) },
    ...store.kept.map(({ name: first, text }) => ({ name: t("Begin with: {name}", { name: first }), run: () => {
      if (store.session.id !== null) page.open(null);
      page.composer.put(text);
    } })),
    ...page.plans.map((plan) => ({ name: t("Run the plan {plan} after you review it", { plan: plan.name }), run: () => page.runPlan(plan), when: () => !store.past })),
    ...INTENTS.map((words, value) => ({ name: t("Permission: {words}", { words }), run: () => page.setIntent(value), when: live })),
    ...TABS.map(([tab, label]) => ({ name: t("Details: {label}", { label }), run: () => page.inspector.reach(tab) })),
    ...store.nodes.map(({ path }) => ({ name: t("Go to {path}", { path: agentName(path) }), run: () => page.choose(path) })),
  ];
}

function focusTree() {
  const opener = part("tree").closest(".pane")?.classList.contains("open") ? null : document.querySelector('[data-drawer="tree"]');
  if (opener instanceof HTMLElement && opener.offsetParent !== null) opener.click();
  /** @type {HTMLElement|null} */ (part("tree").querySelector('[tabindex="0"]'))?.focus();
}
