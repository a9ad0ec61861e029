// The content of an empty dialogue: what this is, a recorded session at work in little, tasks to begin with, and recordings.
// Fetched when a page shows no session.

import { el, part } from "../base/dom.js";
import { heard, t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {{id: string, title: string, about: string}} Example */
/** A first message that the user saved, under a name. @typedef {{name: string, text: string}} FirstMessage */
/** @typedef {{title: string, text: string, files?: "sales"|"offers"}} Task */

/**
 * `suggest` puts a text into the composer, with files; `explain` shows what works on this machine; `connect` opens the form
 * that connects a model; `open` opens an example; `forget` removes a saved first message.
 * @typedef {object} Actions
 * @property {(text: string, files: File[]) => void} suggest
 * @property {() => void} explain
 * @property {() => void} connect
 * @property {(id: string) => void} open
 * @property {(name: string) => void} forget
 * @property {import("../state/types.d.ts").Request} ask
 */

/** What the small model on board can do. Each is played on it by a test. */
const SUGGESTIONS = [
  t("Show me the disk usage of /tmp in your sandbox"),
  t("Write a Python script that prints the first ten square numbers, and run it"),
  t("Make a shopping list as shopping.md with milk, bread and six eggs"),
];
const TITLES = [t("A look around"), t("A small program"), t("A list in a file")];

/** What other models are asked to do. @type {Task[]} */
const TASKS = [
  { title: t("A data set and a chart"), text: t("Look at the attached sales: what stands out? Draw a chart of the months, and say it in three sentences"), files: "sales" },
  { title: t("A folder of documents"), text: t("Compare the attached offers in a table with price, delivery and guarantee. Which one should I take, and why?"), files: "offers" },
  { title: t("A small tool"), text: t("Build a page that splits a bill among friends, try it out, and show it to me") },
];

/** The recording that is shown in little. */
const AT_WORK = "research";

export class Welcome {
  #key = "";
  /** @type {HTMLElement|undefined} */ #picture;

  /**
   * @param {Store} store
   * @param {Element} place
   * @param {Actions} actions
   */
  constructor(store, place, actions) {
    this.store = store;
    this.place = place;
    this.actions = actions;
    for (const what of ["sessions", "board"]) store.addEventListener(what, () => this.place.querySelector(".empty") && this.show());
  }

  /** Show it, or what has changed in it. */
  show() {
    const { session: { id, model, small }, sessions, examples, kept, board } = this.store;
    if (id !== null) return;
    const shown = this.place.querySelector(".empty");
    const key = JSON.stringify([model, small, sessions.length > 0, examples.length, kept, board?.phase === "failed"]);
    if (shown && key === this.#key) return;
    this.#key = key;
    const made = this.#made();
    if (shown) shown.replaceWith(made);
    else this.place.append(made);
  }

  #made() {
    const { session: { model, small }, sessions, examples, kept, board } = this.store;
    const tasks = small?.length ? SUGGESTIONS.map((text, index) => /** @type {Task} */ ({ title: TITLES[index], text })) : TASKS;
    const about = el("p", { className: "welcome-model" }, ...(model && board?.phase !== "failed" ? [el("span", { "data-role": "answers" }, t("Model: {model}", { model })), " · "] : []),
      el("span", { className: "connect" }, link(t("Connect a model"), this.actions.connect), " · "), link(t("Check this machine"), this.actions.explain));
    const earlier = sessions.length ? [el("p", {}, link(t("Go on with an earlier session"), () => part("sessions").click()))] : [];
    const recorded = examples.length ? [el("h2", {}, t("View a recorded session")),
      el("p", {}, t("Recordings with a scripted model; commands and results are real. No model needed.")),
      exampleList(examples, this.actions.open)] : [];
    return el("div", { className: "empty" }, el("h2", {}, t("What do you want done?")),
      el("p", { className: "lead" }, t("Give work to an agent that can call further agents: watch all of them, step in anywhere, and say what they may do.")),
      ...earlier, ...this.#atWork(), el("div", { className: "tasks" }, ...tasks.map((task) => this.#task(task))),
      ...kept.map((first) => this.#kept(first)), about, ...recorded);
  }

  /** A recorded session in little. It stays when the rest is made again, and begins again on the next empty page. */
  #atWork() {
    const example = this.store.examples.find(({ id }) => id === AT_WORK);
    if (!example) return [];
    if (!this.#picture?.isConnected) {
      const place = el("div", { className: "at-work" });
      this.#picture = place;
      import("./at_work.js").then(({ atWork }) => atWork(place, example, this.actions)).catch(() => place.remove());
    }
    return [this.#picture];
  }

  /** @param {Task} task */
  #task({ title, text, files }) {
    const button = el("button", { className: "suggestion", type: "button" }, el("strong", {}, title), " ", el("span", {}, text));
    button.addEventListener("click", async () => {
      const samples = files ? (await import("./samples.js")).samples(files) : [];
      this.actions.suggest(text, samples);
    });
    return button;
  }

  /** @param {FirstMessage} first */
  #kept({ name, text }) {
    const button = el("button", { className: "suggestion", type: "button", title: text }, name);
    const drop = el("button", { className: "link", type: "button", "aria-label": t("Forget the first message {name}", { name }) }, t("Forget"));
    button.addEventListener("click", () => this.actions.suggest(text, []));
    drop.addEventListener("click", () => this.actions.forget(name));
    return el("div", { className: "kept" }, button, drop);
  }
}

/**
 * @param {string} words
 * @param {() => void} act
 */
function link(words, act) {
  const button = el("button", { className: "link", type: "button" }, words);
  button.addEventListener("click", () => act());
  return button;
}

/**
 * @param {Example[]} examples
 * @param {(id: string) => void} open
 */
export function exampleList(examples, open) {
  return el("ul", { className: "examples" }, ...examples.map(({ id, title, about }) => {
    const button = el("button", { type: "button" }, el("strong", {}, heard(title)), el("span", {}, heard(about)));
    button.addEventListener("click", () => open(id));
    return el("li", {}, button);
  }));
}
