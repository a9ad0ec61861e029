// What is shown in place of an unavailable session: the server no longer knows this page, or has no such session.
// Loaded at the page's start, because nothing can be fetched any more when it is needed.

import { el, part, setText } from "../base/dom.js";
import { t } from "../base/language.js";

/** A form for the server's new address, when the page's old one is no longer valid. Typed text is kept. */
export class SignIn {
  #field = el("input", { type: "text", autocomplete: "off", spellcheck: false, "aria-label": t("The new address or its token") });
  #news = el("span", { className: "bad", role: "alert" });
  #form = el("form", { className: "sign-in", hidden: true }, el("label", {}, t("The server restarted. Paste the new address from its terminal; your text is kept.")),
    this.#field, el("button", { type: "submit" }, t("Connect")), this.#news);

  /** @param {() => void} connect */
  constructor(connect) {
    part("composer").before(this.#form);
    this.#form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const given = this.#field.value.trim();
      if (!given) return;
      const address = URL.canParse(given) ? new URL(given) : new URL(`/?token=${encodeURIComponent(given)}`, location.href);
      if (address.origin !== location.origin) {
        location.assign(`${address.href.split("#")[0]}${location.hash}`);
        return;
      }
      const answer = await fetch(`${address.pathname}${address.search}`).catch(() => null);
      if (answer?.ok) connect();
      else setText(this.#news, t("The server does not accept this address. Copy the whole line from its terminal."));
    });
  }

  /** @param {boolean} out whether the server no longer knows the page */
  show(out) {
    this.#form.hidden = !out;
    if (out) setText(this.#news, "");
    document.body.classList.toggle("signed-out", out);
    for (const held of /** @type {NodeListOf<HTMLFieldSetElement|HTMLElement>} */ (document.querySelectorAll("[data-role=composer], [data-role=controls], [data-role=tree], [data-role=intent]"))) {
      held.inert = out;
    }
  }
}

/**
 * Show that a session is not there or can't be read, and where to go from there; null if it is there after all.
 * @param {string} heading
 * @param {string|null} why
 * @param {() => void} begin
 * @param {() => void} list
 */
export function showMissing(heading, why, begin, list) {
  document.querySelector(".missing")?.remove();
  document.body.classList.toggle("astray", why !== null);
  if (why === null) return;
  const fresh = el("button", { type: "button", className: "primary" }, t("New session"));
  const all = el("button", { type: "button" }, t("All sessions"));
  fresh.addEventListener("click", begin);
  all.addEventListener("click", list);
  part("dialogue").before(el("div", { className: "missing", role: "alert" }, el("h2", {}, heading), el("p", {}, why), el("p", {}, fresh, " ", all)));
}
