// A user's own secrets: store, replace and remove them. Only names are shown, never values.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";
import { button, form, labelled, row, section } from "../people/form.js";

export class OwnSecrets {
  #lists = el("div");

  /**
   * @param {HTMLElement} place
   * @param {import("../state/types.d.ts").Request} request
   * @param {boolean} others whether there may be modules for all users
   * @param {(words: unknown) => void} say shows the result of an action
   */
  constructor(place, request, others, say) {
    this.request = request;
    this.others = others;
    this.say = say;
    place.replaceChildren(this.#lists, this.#form());
  }

  async show() {
    try {
      const { list, lent } = await this.request("secrets");
      this.#lists.replaceChildren(
        section(t("Your secrets"), list.map((name) => this.#row(name, false)), t("You have stored no secrets. A module that asks for one receives it once you have approved the module.")),
        ...(lent.length ? [section(t("For modules that are added for all users"), lent.map((name) => this.#row(name, true)), "")] : []));
    } catch (error) {
      this.say(error);
    }
  }

  /**
   * @param {string} name
   * @param {boolean} lent
   */
  #row(name, lent) {
    return row(name, [], button(t("Remove"), name, () => this.#do(this.request("secret.remove", { name, lent }))));
  }

  #form() {
    const name = el("input", { type: "text", required: true, maxLength: 64, autocomplete: "off", "data-role": "secret-name" });
    const value = el("input", { type: "password", required: true, autocomplete: "off", "data-role": "secret-value" });
    const lent = el("input", { type: "checkbox", "data-role": "secret-lent" });
    return form(t("Store the secret"), async () => {
      if (await this.#do(this.request("secret.set", { name: name.value.trim(), value: value.value, lent: lent.checked }))) name.value = value.value = "";
    }, labelled(t("Name, such as API_KEY"), name), labelled(t("Value"), value),
    ...(this.others ? [labelled(t("For modules that are added for all users; replaces the shared secret"), lent)] : []));
  }

  /** @param {Promise<unknown>} asked */
  async #do(asked) {
    try {
      await asked;
      this.say("");
      await this.show();
      return true;
    } catch (error) {
      this.say(error);
      return false;
    }
  }
}
