// At the end of a dialogue: the plan below it that waits for a person to start it. Most sessions have no plan, so this is
// fetched with the first, and its card with the first that waits.

import { el, onceAFrame, part, styled } from "../base/dom.js";
import { waitsForStart } from "./activity_line.js";

/** @typedef {import("../state/store.js").Store} Store */

export class WaitingPlan {
  #place = el("div", { className: "waiting-plan", hidden: true });
  /** @type {import("../plans/card.js").PlanCard|undefined} */ #card;

  /**
   * @param {Store} store
   * @param {import("../state/types.d.ts").Request} ask
   */
  constructor(store, ask) {
    this.store = store;
    this.ask = ask;
    part("drafts").after(this.#place);
    const update = onceAFrame(() => void this.#update());
    for (const what of ["tree", "selected", "moved", "records", "reset"]) store.addEventListener(what, update);
    update();
  }

  async #update() {
    const path = this.#waiting();
    this.#place.hidden = !path;
    if (!path) return;
    const [{ PlanCard }] = await Promise.all([import("../plans/card.js"), styled("plan")]);
    if (path !== this.#waiting()) return;
    this.#card ??= new PlanCard(this.ask);
    if (!this.#place.contains(this.#card.element)) this.#place.replaceChildren(this.#card.element);
    this.#card.show(this.store.own(path), path);
  }

  /** The path of the plan that waits; empty if there is none, or nothing can be changed. */
  #waiting() {
    const { store } = this;
    if (store.session.id === null || store.past || store.session.readonly) return "";
    const below = store.selected === "/" ? "/" : `${store.selected}/`;
    const plans = store.nodes.filter((node) => node.kind === "plan" && (node.path === store.selected || node.path.startsWith(below)));
    return plans.find((node) => waitsForStart(store.own(node.path)))?.path ?? "";
  }
}
