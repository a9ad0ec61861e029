// The user's account: sessions that others share, API tokens, sign-ins, usage.

import { el } from "../base/dom.js";
import { dateTime } from "../base/format.js";
import { t } from "../base/language.js";
import { button, form, frame, labelled, once, row, section } from "./form.js";

/** What counts as a user's words of all that a program sends with a token. */
const COUNTS = {
  newest: () => t("The newest message"),
  all: () => t("The earlier chat that it tells of, too"),
  none: () => t("Nothing: it passes on what others write"),
};

export class AccountDialog {
  #frame = frame("account-dialog", t("Account"));
  /** @type {HTMLElement|undefined} */ #secret;

  /**
   * @param {import("../state/types.d.ts").Request} request
   * @param {(id: string) => void} open
   */
  constructor(request, open) {
    this.request = request;
    this.open = open;
  }

  async show() {
    try {
      const [account, shared, usage] = await Promise.all([this.request("account"), this.request("shared"), this.request("usage")]);
      const leave = el("button", { type: "button" }, t("Sign out"));
      leave.addEventListener("click", () => this.#leave());
      this.#frame.content.replaceChildren(
        el("p", {}, t("You are {name}.", { name: account.name }), " ", leave),
        section(t("Shared with you"), shared.list.map((one) => row(one.title || one.id, [t("owned by {owner}", { owner: one.owner }), one.role === "steerer" ? t("can steer") : t("can view")],
          button(t("Open"), one.title || one.id, () => {
            this.#frame.dialog.close();
            this.open(one.id);
          }))), t("No sessions are shared with you.")),
        section(t("API tokens"), account.tokens.map((one) => row(one.name, [one.scopes.join(", "), one.used ? t("used {when}", { when: dateTime(one.used) }) : t("never used"), t("expires {when}", { when: dateTime(one.ends) }), ...(one.words === "newest" ? [] : [`${t("Counts as your words")}: ${COUNTS[one.words]()}`])],
          button(t("Revoke"), one.name, () => this.#do(this.request("token.revoke", { token: one.id }))))), t("There are no tokens.")),
        ...(this.#secret ? [this.#secret] : []), this.#newToken(account.scopes),
        section(t("Signed in"), account.sign_ins.map((one) => row(one.here ? t("This browser") : one.agent || t("A browser"), [one.address, t("last seen {when}", { when: dateTime(one.seen) })],
          button(t("Sign out"), one.agent, () => this.#do(this.request("sign-out", { sign_in: one.id }))))), t("Not signed in anywhere.")),
        section(t("Usage"), usage.list.map((one) => row(one.resource, [one.period, one.most === null ? String(one.used) : t("{used} of {most}", { used: one.used, most: one.most })])), t("No usage was recorded.")));
    } catch (error) {
      this.#frame.say(error);
    }
  }

  /** @param {string[]} scopes */
  #newToken(scopes) {
    const name = el("input", { type: "text", required: true, maxLength: 64, autocomplete: "off", "data-role": "token-name" });
    const days = el("input", { type: "number", min: "1", max: "365", value: "90", required: true });
    const words = el("select", { "data-role": "token-words" },
      ...Object.entries(COUNTS).map(([value, named]) => el("option", { value }, named())));
    const boxes = scopes.map((scope) => el("input", { type: "checkbox", value: scope, checked: scope === "sessions:read" }));
    return form(t("Create a token"), async () => {
      try {
        const chosen = /** @type {("sessions:read"|"sessions:write"|"clear"|"admin")[]} */ (boxes.filter((one) => one.checked).map((one) => one.value));
        const { secret } = await this.request("token.create", { name: name.value, scopes: chosen, days: Number(days.value), words: /** @type {"all"|"newest"|"none"} */ (words.value) });
        this.#secret = once(t("Copy the token now; it is not shown again."), secret);
        await this.show();
      } catch (error) {
        this.#frame.say(error);
      }
    }, labelled(t("Purpose"), name), labelled(t("Days until it expires"), days), labelled(t("Counts as your words"), words), ...boxes.map((one) => labelled(one.value, one)));
  }

  async #leave() {
    await fetch("/sign-out", { method: "POST" }).catch(() => undefined);
    location.assign("/sign-in");
  }

  /** @param {Promise<unknown>} asked */
  async #do(asked) {
    try {
      await asked;
      await this.show();
    } catch (error) {
      this.#frame.say(error);
    }
  }
}
