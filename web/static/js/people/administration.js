// The administrators' view: all users, their usage, and the audit of accounts.

import { el } from "../base/dom.js";
import { download } from "../composer/uploads.js";
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
      const [users, usage, audit, policy, shared] = await Promise.all([this.request("users"), this.request("usage", { everybody: true }), this.request("audit"), this.request("policy"), this.#shared()]);
      this.#frame.content.replaceChildren(
        section(t("Users"), users.list.map((one) => this.#user(one)), t("There are no users.")), this.#newUser(),
        ...shared, this.#policy(policy.text),
        section(t("Usage"), usage.list.map((one) => row(one.user, [one.period, one.resource, one.most === null ? String(one.used) : t("{used} of {most}", { used: one.used, most: one.most })])), t("No usage was recorded.")),
        section(t("Audit"), audit.list.map((one) => row(one.kind, [dateTime(one.at), one.who, one.address, ...Object.entries(one.about).map(([name, value]) => `${name}: ${value}`)])), t("Nothing happened yet.")), this.#auditFile());
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

  /** Modules and secrets for all users. Without a sandbox there are none; the rest is shown anyway. */
  async #shared() {
    try {
      const { modules, secrets } = await this.request("everybody");
      return [section(t("Modules for all users"), modules.map((one) => this.#module(one)), t("There are none.")), this.#newModule(),
        section(t("Secrets of these modules"), secrets.map((name) => row(name, [], button(t("Remove"), name, () => this.#do(this.request("everybody.secret.remove", { name }))))), t("There are none.")), this.#newSecret()];
    } catch (error) {
      return [section(t("Modules for all users"), [], error instanceof Error ? error.message : String(error))];
    }
  }

  /** @param {import("../state/wire.d.ts").ModuleDescription} one */
  #module(one) {
    const { name, digest } = one;
    const needs = one.manifest?.needs;
    const whole = one.functions.length > 0 && one.functions.every((each) => each.approved);
    const facts = [`SHA-256 ${digest.slice(0, 16)}…`, whole ? t("approved") : t("not approved"), ...one.functions.map((each) => `${each.name} (${t("impact {impact}", { impact: each.impact })})`),
      ...(needs?.egress ?? []).map((host) => t("reaches {host}", { host })), ...(needs?.secrets ?? []).map((secret) => t("receives {secret}", { secret }))];
    return row(name, facts,
      ...(whole || !one.functions.length ? [] : [button(t("Approve"), name, () => this.#do(this.request("everybody.module.approve", { name, digest, functions: [] })))]),
      button(t("Remove"), name, () => this.#do(this.request("everybody.module.remove", { name }))));
  }

  #newModule() {
    const source = el("input", { type: "text", required: true, autocomplete: "off", "data-role": "everybody-source" });
    return form(t("Add for all users"), () => this.#do(this.request("everybody.module.add", { source: source.value.trim() })), labelled(t("Folder, Python file or image on the server"), source));
  }

  #newSecret() {
    const name = el("input", { type: "text", required: true, maxLength: 64, autocomplete: "off", "data-role": "everybody-secret" });
    const value = el("input", { type: "password", required: true, autocomplete: "off", "data-role": "everybody-value" });
    return form(t("Store the secret"), () => this.#do(this.request("everybody.secret.set", { name: name.value.trim(), value: value.value })), labelled(t("Name, such as API_KEY"), name), labelled(t("Value"), value));
  }

  /** @param {string} was */
  #policy(was) {
    const text = el("textarea", { rows: 8, spellcheck: false, value: was, "data-role": "policy", "aria-label": t("Policy") });
    return el("section", {}, el("h3", {}, t("Policy")), el("p", { className: "facts" }, t("It applies to new sessions, and to sessions that are opened again.")),
      form(t("Change the policy"), () => this.#do(this.request("policy.change", { text: text.value, was })), text));
  }

  #newUser() {
    const name = el("input", { type: "text", required: true, maxLength: 64, autocomplete: "off" });
    const password = el("input", { type: "password", autocomplete: "new-password" });
    return form(t("Add a user"), () => this.#do(this.request("user.add", { name: name.value.trim(), password: password.value || null })),
      labelled(t("Name"), name), labelled(t("Password"), password));
  }

  /** The whole audit, including that of sessions. An empty field filters nothing out. */
  #auditFile() {
    const since = el("input", { type: "date", "data-role": "audit-since" });
    const who = el("input", { type: "text", maxLength: 64, autocomplete: "off", "data-role": "audit-who" });
    const what = el("input", { type: "text", maxLength: 40, autocomplete: "off", placeholder: "call.denied", "data-role": "audit-what" });
    const fetched = async () => download((await this.request("audit.download", { since: since.value || null, who: who.value.trim() || null, what: what.value.trim() || null })).href);
    return form(t("Download the audit"), () => fetched().catch((error) => this.#frame.say(error)), labelled(t("Since"), since), labelled(t("User"), who), labelled(t("Kind"), what));
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
