// The heading above the dialogue: the agent's name, what it does, and its controls. Also the session's title in the bar.

import { onceAFrame, part, setText } from "../base/dom.js";
import { agentName, endedAs, stateName } from "../base/format.js";
import { heard, t } from "../base/language.js";
import { controls } from "./controls.js";

/** @typedef {import("../state/store.js").Store} Store */

export class Heading {
  /**
   * @param {Store} store
   * @param {import("./controls.js").Actions} actions
   */
  constructor(store, actions) {
    this.store = store;
    this.controls = controls(actions, { labels: true });
    part("controls").append(this.controls.element);
    const show = onceAFrame(() => this.#show());
    for (const what of ["tree", "selected", "session", "reset", "moved"]) store.addEventListener(what, show);
    show();
    const title = onceAFrame(() => this.#title());
    for (const what of ["session", "records", "reset", "sessions"]) store.addEventListener(what, title);
  }

  #show() {
    const { store } = this;
    const node = store.node(store.selected);
    setText(part("agent-name"), agentName(store.selected));
    const state = part("agent-state");
    const doing = node?.state === "paused" ? "" : (node?.doing ?? "");
    setText(state, doing.startsWith("waiting") ? "" : (node && endedAs(node)) || stateName(node?.state ?? ""));
    state.dataset.state = node?.state ?? "";
    state.dataset.ended = node?.ended ?? "";
    setText(part("agent-doing"), heard(doing));
    part("agent-name").classList.toggle("path", store.selected !== "/");
    part("controls").hidden = node === undefined || store.session.opening || store.session.id === null || store.past;
    if (node) this.controls.update(node);
  }

  #title() {
    const { session, sessions, records, whole, asked } = this.store;
    const first = whole ? records.find((record) => record.kind === "say") : undefined;
    const info = sessions.find(({ id }) => id === session.id);
    const title = session.id === null ? t("New session") : ((info?.named || info?.source || !whole ? info?.title : first?.body) || t("Session"));
    setText(part("session-title"), title);
    const asking = asked.size ? `${t("({count} to approve)", { count: asked.size })} ` : "";
    const waiting = sessions.filter(({ id, state }) => state === "waits" && id !== session.id).length;
    const others = waiting ? `${t("({count} waiting)", { count: waiting })} ` : "";
    document.title = session.id === null ? `${others}iact` : `${asking}${others}${title} · iact`;
  }
}
