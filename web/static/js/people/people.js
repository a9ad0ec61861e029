// On a server with several users: the owner of the session, and the dialogs for sharing, account and administration.

import { el, icon, part } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/types.d.ts").Request} Request */

export class People {
  #whose = el("p", { className: "model", "data-role": "whose" });

  /**
   * @param {import("../state/store.js").Store} store
   * @param {Request} request
   * @param {(id: string) => void} open
   */
  constructor(store, request, open) {
    this.store = store;
    this.request = request;
    this.open = open;
    part("model").after(this.#whose);
    const { name = "", admin = false, guest = false } = store.you ?? {};
    const share = this.#button("share-open", "share", t("Share"), t("Share this session: with people, or by a link"), async () => new (await import("./sharing.js")).SharingDialog(store, request).show());
    const about = () => {
      const { id, role, owner } = store.session;
      share.hidden = id === null || Boolean(role) || store.session.readonly;
      this.#whose.hidden = !role;
      this.#whose.textContent = !role ? "" : role === "steerer" ? t("{owner}'s session, which you can steer", { owner: owner ?? "" }) : t("{owner}'s session, view only", { owner: owner ?? "" });
    };
    store.addEventListener("session", about);
    about();
    if (guest) {
      share.remove();
      return;
    }
    this.#button("account-open", "person", t("Account"), t("Account of {name}: sessions shared with you, tokens, usage, sign out", { name }), async () => new (await import("./account.js")).AccountDialog(request, open).show());
    if (admin) this.#button("admin-open", "shield", t("Administration"), t("Administration: users and audit"), async () => new (await import("./administration.js")).AdministrationDialog(request).show());
  }

  /**
   * @param {string} role
   * @param {Parameters<typeof icon>[0]} shape
   * @param {string} label
   * @param {string} title
   * @param {() => Promise<unknown>} run
   */
  #button(role, shape, label, title, run) {
    const button = el("button", { className: "icon-button", "data-role": role, title }, icon(shape), el("span", { className: "label" }, label));
    button.addEventListener("click", run);
    part("more").append(button);
    return button;
  }
}
