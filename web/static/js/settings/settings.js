// Appearance, language, models, and a check of this machine with remedies for what does not work. The first
// two are stored in this browser, the models on the server.

import { el, part } from "../base/dom.js";
import { facts } from "../agents/facts.js";
import { heard, language, LANGUAGES, t } from "../base/language.js";
import { modelsSection } from "./models.js";

/** @typedef {{check: string, ok: boolean, detail: string, remedy: string}} Check */
/** @typedef {import("../state/types.d.ts").Request} Request */

/** @type {[string, string][]} */
const THEMES = [["", t("Like the system")], ["light", t("Light")], ["dark", t("Dark")]];

export class SettingsDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("settings-dialog"));
  #content = part("settings-content");

  /**
   * @param {Request} request
   * @param {() => void} changed called when another model answers the next message
   */
  constructor(request, changed) {
    this.request = request;
    this.changed = changed;
    this.#dialog.addEventListener("click", (event) => event.target === this.#dialog && this.#dialog.close());
  }

  /** @param {"connect"} [place] "connect": with the form that connects a model */
  async show(place) {
    const machine = el("div", {}, el("p", { className: "nothing", role: "status" }, t("Looking at this machine …")));
    this.#content.replaceChildren(looks(), modelsSection(this.request, this.changed, place === "connect"), machine);
    if (!this.#dialog.open) this.#dialog.showModal();
    try {
      const { settings, checks } = await this.request("about");
      machine.replaceChildren(
        el("h3", {}, t("This machine")), el("ul", { className: "checks" }, ...checks.map(row)),
        el("h3", {}, t("Current settings")), facts(settings.map((/** @type {[string, string]} */ [name, value]) => [heard(name), heard(value)])));
    } catch (error) {
      machine.replaceChildren(el("p", { className: "nothing", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }
}

/** The choices that this browser stores. */
function looks() {
  const theme = el("fieldset", { className: "segmented", "data-role": "theme" }, el("legend", { className: "sr" }, t("Appearance")), ...THEMES.map(([value, name]) => {
    const input = el("input", { type: "radio", name: "theme", value, checked: (document.documentElement.dataset.theme ?? "") === value });
    input.addEventListener("change", () => {
      document.documentElement.dataset.theme = value;
      keep("iact.theme", value);
    });
    return el("label", {}, input, el("span", {}, name));
  }));
  const tongue = el("select", { "data-role": "language" }, ...LANGUAGES.map(([value, name]) => el("option", { value, lang: value, selected: value === language }, name)));
  tongue.addEventListener("change", () => {
    keep("iact.language", /** @type {HTMLSelectElement} */ (tongue).value);
    // Texts are already everywhere in the page, so it is reloaded in place. The browser keeps typed text.
    location.reload();
  });
  return el("div", { className: "looks" }, el("h3", {}, t("Appearance")), theme, el("label", {}, `${t("Language")} `, tongue));
}

/**
 * @param {string} name
 * @param {string} value "" removes it
 */
function keep(name, value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // If the browser stores nothing for us, the choice lasts until the page is reloaded.
  }
}

/** @param {Check} one */
function row(one) {
  // What works but has a remedy is not shown in green, because green would be read as nothing to do.
  const [look, words] = !one.ok ? ["error", t("does not work")] : one.remedy ? ["incomplete", t("not needed here")] : ["ok", t("works")];
  const remedy = one.remedy ? [el("p", { className: "facts" }, `${t("Fix:")} `, el("code", {}, one.remedy))] : [];
  return el("li", {}, el("span", { className: `badge ${look}` }, words), " ", el("strong", {}, heard(one.check)), el("p", { className: "facts" }, heard(one.detail)), ...remedy);
}
