// A plan that waits to be started, as a card in the dialogue: its steps with their parameters, Start, Change, Cancel.

import { el, setText } from "../base/dom.js";
import { t } from "../base/language.js";
import { changeSteps } from "./graph.js";
import { factsOfPlan, isWork, readPlan } from "./plan.js";

/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/** @typedef {import("../state/types.d.ts").Request} Ask asks the server */

export class PlanCard {
  #news = el("p", { className: "plan-news", role: "alert" });
  #steps = el("ol", { className: "plan-card-steps", "aria-label": t("Steps") });
  #start = this.#button(t("Start"), () => this.#try("plan.start", { path: this.#path, digest: this.#digest }), "primary");
  #change = this.#button(t("Change steps"), () => changeSteps(this.ask, this.#path));
  #path = "";
  /** Of the steps that are shown, which a yes sends back. */ #digest = "";
  /** What is drawn, so that nothing is drawn twice. */ #drawn = "";
  element = el("section", { className: "plan-card", "aria-label": t("A plan that waits for you") },
    el("p", {}, t("This plan starts when you say so.")), this.#steps,
    el("div", { className: "plan-actions" }, this.#start, this.#change, this.#button(t("Cancel plan"), () => this.#try("cancel", { path: this.#path }))), this.#news);

  /** @param {Ask} ask */
  constructor(ask) {
    this.ask = ask;
  }

  /**
   * @param {JournalRecord[]} records of the plan
   * @param {string} path
   */
  show(records, path) {
    const key = `${path} ${records.length}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#path = path;
    this.#digest = factsOfPlan(records).digest;
    setText(this.#news, "");
    const { versions } = readPlan(records);
    const steps = [...versions[versions.length - 1]?.steps.values() ?? []].filter((one) => isWork(one.kind));
    this.#start.hidden = this.#change.hidden = !steps.length;
    this.#steps.replaceChildren(...steps.map(stepLine));
  }

  /**
   * @param {string} label
   * @param {() => unknown} act
   */
  #button(label, act, kind = "") {
    const button = el("button", { type: "button", className: kind }, label);
    button.addEventListener("click", () => void act());
    return button;
  }

  /**
   * @param {"plan.start"|"cancel"} type
   * @param {{path: string, digest?: string}} fields
   */
  async #try(type, fields) {
    setText(this.#news, "");
    try {
      await this.ask(type, fields);
    } catch (error) {
      setText(this.#news, error instanceof Error ? error.message : String(error));
    }
  }
}

/** A step in words: its name, what is done, and what it is given, line by line. @param {import("./plan.js").Step} step */
function stepLine(step) {
  const does = step.kind === "person" ? t("You: {task}", { task: step.what }) : step.what;
  const facts = step.given.split("\n").filter(Boolean);
  if (step.accepted) facts.push(t("You are asked to accept its result."));
  return el("li", {}, el("span", { className: "function" }, step.id), " ", does, ...facts.map((line) => el("p", { className: "facts" }, line)));
}
