// What is in force and what works on this machine, with what to do where something doesn't; and how to
// have another model answer. The page changes none of it: settings are the business of who starts the server.

import { el, part } from "./dom.js";
import { facts } from "./facts.js";
import { t } from "./language.js";

/** @typedef {{check: string, ok: boolean, detail: string, remedy: string}} Check */

const ENDPOINT = "export OPENAI_BASE_URL=http://127.0.0.1:8000/v1\nexport OPENAI_API_KEY=…        # if it wants one\nexport IACT_MODEL=the-model     # if it serves more than one\niact serve";

export class SettingsDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("settings-dialog"));
  #content = part("settings-content");

  /**
   * @param {() => Promise<{settings: [string, string][], checks: Check[]}>} ask
   * @param {() => string} model which model answers, in words
   */
  constructor(ask, model) {
    this.ask = ask;
    this.model = model;
    part("settings-open").addEventListener("click", () => this.show());
    this.#dialog.addEventListener("click", (event) => event.target === this.#dialog && this.#dialog.close());
  }

  async show() {
    this.#content.replaceChildren(el("p", { className: "nothing", role: "status" }, t("Looking at this machine …")));
    if (!this.#dialog.open) this.#dialog.showModal();
    try {
      const { settings, checks } = await this.ask();
      this.#content.replaceChildren(
        el("h3", {}, t("Model")), el("p", {}, this.model() || t("No model is known yet.")),
        el("h3", {}, t("Another model")), el("p", {}, t("Any endpoint that speaks the OpenAI protocol; set these and start the server anew:")), el("pre", { tabIndex: 0 }, ENDPOINT),
        el("h3", {}, t("What works here")), el("ul", { className: "checks" }, ...checks.map(row)),
        el("h3", {}, t("Settings in force")), facts(settings));
    } catch (error) {
      this.#content.replaceChildren(el("p", { className: "nothing", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }
}

/** @param {Check} one */
function row(one) {
  const state = el("span", { className: `badge ${one.ok ? "ok" : "error"}` }, one.ok ? t("works") : t("does not work"));
  const remedy = one.remedy ? [el("p", { className: "facts" }, `${t("To mend it:")} `, el("code", {}, one.remedy))] : [];
  return el("li", {}, state, " ", el("strong", {}, one.check), el("p", { className: "facts" }, one.detail), ...remedy);
}
