// Who else may view or steer the shown session, and through which links.

import { el } from "../base/dom.js";
import { dateTime } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { button, choice, form, frame, labelled, once, row, section } from "./form.js";

export class SharingDialog {
  #frame = frame("sharing-dialog", t("Share this session"));
  /** @type {HTMLElement|undefined} */ #secret;

  /**
   * @param {import("../state/store.js").Store} store
   * @param {import("../state/types.d.ts").Request} request
   */
  constructor(store, request) {
    this.store = store;
    this.request = request;
  }

  async show() {
    try {
      const { grants, links, public: anybody } = await this.request("sharing");
      this.#frame.content.replaceChildren(
        section(t("People"), grants.map((one) => row(one.group ? t("Group {name}", { name: one.name }) : one.name, [one.role === "steerer" ? t("can steer") : t("can view")],
          button(t("Remove"), one.name, () => this.#do(this.request("unshare", { name: one.name, group: one.group }))))), t("No other user has access to this session.")),
        this.#people(),
        section(t("Links"), links.map((one) => this.#link(one)), t("There are no links to this session.")),
        ...(this.#secret ? [this.#secret] : []), this.#newLink(anybody));
    } catch (error) {
      this.#frame.say(error);
    }
  }

  /** @param {import("../state/wire.d.ts").LinkRow} one */
  #link(one) {
    const hidden = [...one.hides.map((part) => part === "files" ? t("without files") : t("without decisions")), ...(one.variables.length ? [t("without {names}", { names: one.variables.join(", ") })] : [])];
    const facts = [one.at === null ? t("with later messages") : t("up to record {at}", { at: one.at }), ...hidden, one.public ? t("for anyone who has it") : t("for people with an account"), plural(one.opened, "opened once", "opened {count} times"), t("expires {when}", { when: dateTime(one.ends) })];
    return row(t("Link of {when}", { when: dateTime(one.created) }), facts, button(t("Revoke"), dateTime(one.created), () => this.#do(this.request("link.revoke", { link: one.id }))));
  }

  #people() {
    const name = el("input", { type: "text", required: true, autocomplete: "off", "data-role": "share-name" });
    const kind = choice("user", [["user", t("Person")], ["group", t("Group")]]);
    const role = choice("reader", [["reader", t("can view")], ["steerer", t("can steer: write, pause, approve")]]);
    role.dataset.role = "share-role";
    return form(t("Share"), () => this.#do(this.request("share", { name: name.value.trim(), group: kind.value === "group", role: role.value === "steerer" ? "steerer" : "reader" })),
      labelled(t("Name"), name), kind, role);
  }

  /** @param {boolean} anybody */
  #newLink(anybody) {
    const days = el("input", { type: "number", min: "1", max: "365", value: "7", required: true });
    const frozen = el("input", { type: "checkbox" });
    const files = el("input", { type: "checkbox" });
    const gate = el("input", { type: "checkbox" });
    const everybody = el("input", { type: "checkbox" });
    const variables = el("input", { type: "text", autocomplete: "off", "data-role": "link-variables" });
    const make = async () => {
      const hides = /** @type {("files"|"gate")[]} */ ([...(files.checked ? ["files"] : []), ...(gate.checked ? ["gate"] : [])]);
      try {
        const { path } = await this.request("link.create", {
          days: Number(days.value), at: frozen.checked ? this.store.last : null, hides, public: everybody.checked,
          variables: variables.value.split(/[\s,$]+/).filter(Boolean),
        });
        this.#secret = once(t("Copy the link now; it is not shown again."), new URL(path, location.href).href);
        await this.show();
      } catch (error) {
        this.#frame.say(error);
      }
    };
    return form(t("Create a link"), make, labelled(t("Days until it expires"), days), labelled(t("Frozen as it is now"), frozen), labelled(t("Leave out files"), files),
      labelled(t("Leave out approvals and denials"), gate), labelled(t("Leave out variables"), variables), ...(anybody ? [labelled(t("Works without an account"), everybody)] : []));
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
