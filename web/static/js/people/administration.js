// What administrators see: everybody with an account, what they use, and who did what about people.

import { el } from "../base/dom.js";
import { dateTime } from "../base/format.js";
import { t } from "../base/language.js";
import { button, form, frame, labelled, row, section } from "./form.js";

export class AdministrationDialog {
  #frame = frame("administration-dialog", t("Administration"));

  /** @param {import("../state/types.d.ts").Request} request */
  constructor(request) {
    this.request = request;
  }

  async show() {
    try {
      const [users, usage, audit] = await Promise.all([this.request("users"), this.request("usage", { everybody: true }), this.request("audit")]);
      this.#frame.content.replaceChildren(
        section(t("Users"), users.list.map((one) => this.#user(one)), t("There is no user.")), this.#newUser(),
        section(t("Usage"), usage.list.map((one) => row(one.user, [one.period, one.resource, one.most === null ? String(one.used) : t("{used} of {most}", { used: one.used, most: one.most })])), t("Nothing was counted.")),
        section(t("Audit"), audit.list.map((one) => row(one.kind, [dateTime(one.at), one.who, one.address, ...Object.entries(one.about).map(([name, value]) => `${name}: ${value}`)])), t("Nothing happened yet.")));
    } catch (error) {
      this.#frame.say(error);
    }
  }

  /** @param {import("../state/wire.d.ts").UserRow} one */
  #user(one) {
    const { name } = one;
    return row(name, [one.admin ? t("administrator") : "", one.disabled ? t("disabled") : "", one.groups.join(", "), one.seen ? t("last seen {when}", { when: dateTime(one.seen) }) : t("never signed in")],
      button(one.disabled ? t("Enable") : t("Disable"), name, () => this.#do(this.request("user.change", { name, disabled: !one.disabled }))),
      button(one.admin ? t("No administrator") : t("Make administrator"), name, () => this.#do(this.request("user.change", { name, admin: !one.admin }))));
  }

  #newUser() {
    const name = el("input", { type: "text", required: true, maxLength: 64, autocomplete: "off" });
    const password = el("input", { type: "password", autocomplete: "new-password" });
    return form(t("Add a user"), () => this.#do(this.request("user.add", { name: name.value.trim(), password: password.value || null })),
      labelled(t("Name"), name), labelled(t("Password"), password));
  }

  /** @param {Promise<unknown>} asked */
  async #do(asked) {
    try {
      await asked;
      this.#frame.say("");
      await this.show();
    } catch (error) {
      this.#frame.say(error);
    }
  }
}
