// The memories about this user: to search, correct and forget for good, and the switches that turn memory off.

import { el, part, setText, twice } from "../base/dom.js";
import { dateTime } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { readAddress } from "../sessions/address.js";

/** @typedef {import("../state/wire.d.ts").MemoryRow} Fragment */

export class MemoriesDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("memories-dialog"));
  #field = /** @type {HTMLInputElement} */ (part("memories-query"));
  #list = part("memories-list");
  #news = part("memories-news");
  #on = /** @type {HTMLInputElement} */ (part("memories-on"));
  #here = /** @type {HTMLInputElement} */ (part("memories-here-on"));
  /** The number of searches so far. */ #asked = 0;

  /**
   * @param {import("../state/types.d.ts").Request} request
   * @param {(session: string) => unknown} open shows a session
   */
  constructor(request, open) {
    this.request = request;
    this.open = open;
    part("memories-search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search();
    });
    this.#dialog.addEventListener("click", (event) => event.target === this.#dialog && this.#dialog.close());
    this.#on.addEventListener("change", () => this.#switch("memory.switch", this.#on));
    this.#here.addEventListener("change", () => this.#switch("memory.session", this.#here));
    const distil = el("button", { type: "button", title: t("A model is asked what of this session is worth remembering, in any language.") }, t("Look through this session"));
    distil.addEventListener("click", () => this.#distil(distil));
    part("memories-here").after(" ", distil);
    this.distil = distil;
    twice(/** @type {HTMLButtonElement} */ (part("memories-forget-all")), t("Forget everything"), t("Forget it for good?"), () => this.#forgetAll());
  }

  show() {
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#field.focus();
    this.#search();
  }

  async #search() {
    const query = this.#field.value.trim();
    const asked = ++this.#asked;
    setText(this.#news, t("Searching …"));
    try {
      const { results, on, session_on } = await this.request("memory", { query, limit: 50 });
      if (asked !== this.#asked) return; // Another search began in the meantime, and its answer will be shown.
      this.#list.replaceChildren(...results.map((one) => this.#row(one)));
      part("memories-switches").hidden = false;
      this.#on.checked = on;
      part("memories-here").hidden = session_on === null;
      this.#here.checked = session_on === true;
      this.distil.hidden = !on || session_on !== true;
      setText(this.#news, on ? found(query, results.length) : OFF);
    } catch (error) {
      this.#list.replaceChildren();
      this.#say(error);
    }
  }

  /** @param {Fragment} one */
  #row(one) {
    const words = [t(one.kind), holds(one), matched(one), one.agent && t("by {agent}", { agent: one.agent }), dateTime(one.since)];
    const forget = el("button", { type: "button", "aria-label": t("Forget: {text}", { text: one.text.slice(0, 60) }) }, t("Forget"));
    const edit = el("button", { type: "button", "aria-label": t("Edit: {text}", { text: one.text.slice(0, 60) }) }, t("Edit"));
    const text = el("p", { dir: "auto" }, one.text);
    const row = el("li", {}, text, el("p", { className: "facts", title: one.why }, `${words.filter(Boolean).join(" · ")} `, ...this.#source(one), ...marks(one)), edit, " ", forget);
    edit.addEventListener("click", () => this.#edit(one, row, text, edit));
    twice(forget, t("Forget"), t("Forget it for good?"), () => this.#forget(one, row));
    return row;
  }

  /** Where it was said, to be looked at. @param {Fragment} one */
  #source({ session }) {
    if (!session) return [];
    const link = el("button", { type: "button", className: "link", title: t("Session {session}", { session }) }, t("Where it is from"));
    link.addEventListener("click", () => {
      this.#dialog.close();
      this.open(session);
    });
    return [link, " "];
  }

  /**
   * @param {"memory.switch"|"memory.session"} what
   * @param {HTMLInputElement} box
   */
  async #switch(what, box) {
    try {
      const { on } = await this.request(what, { value: box.checked });
      box.checked = on;
      setText(this.#news, this.#standing());
    } catch (error) {
      box.checked = !box.checked;
      this.#say(error);
    }
  }

  /** Where memory is on, now that both switches are as they are. */
  #standing() {
    if (!this.#on.checked) return OFF;
    const isOnHere = part("memories-here").hidden || this.#here.checked;
    return isOnHere ? t("Memory is on.") : t("Memory is on, but not in this session: here nothing is remembered, and agents are told nothing.");
  }

  /** @param {HTMLButtonElement} button */
  async #distil(button) {
    const { session } = readAddress();
    if (session === null) return;
    button.disabled = true;
    setText(this.#news, t("A model is being asked …"));
    try {
      const { count, left_out } = await this.request("memory.distil", { sessions: [session] });
      await this.#search();
      setText(this.#news, left_out[session] ?? looked(count));
    } catch (error) {
      this.#say(error);
    } finally {
      button.disabled = false;
    }
  }

  async #forgetAll() {
    try {
      const { count } = await this.request("memory.clear", {});
      this.#list.replaceChildren();
      setText(this.#news, t("{count} forgotten.", { count }));
    } catch (error) {
      this.#say(error);
    }
  }

  /**
   * Turn the text into a field: Enter or Save stores its content, Escape or Cancel changes nothing.
   * @param {Fragment} one
   * @param {HTMLElement} row
   * @param {HTMLElement} text
   * @param {HTMLElement} button the button that opened it
   */
  #edit(one, row, text, button) {
    const field = el("textarea", { dir: "auto", rows: 3, maxLength: 240, value: one.text, "aria-label": t("New text") });
    const cancel = el("button", { type: "button" }, t("Cancel"));
    const form = el("form", { className: "memory-edit" }, field, el("button", { type: "submit" }, t("Save")), cancel);
    const leave = () => {
      form.replaceWith(text);
      button.hidden = false;
      button.focus();
    };
    cancel.addEventListener("click", leave);
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Escape" && event.key !== "Enter")) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Escape") leave();
      else form.requestSubmit();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const { memory } = await this.request("memory.edit", { memory: one.id, text: field.value });
        const fresh = this.#row({ ...one, text: memory?.text ?? field.value });
        row.replaceWith(fresh);
        fresh.querySelector("button")?.focus();
        setText(this.#news, t("Saved. The old text is deleted."));
      } catch (error) {
        this.#say(error);
        field.focus();
      }
    });
    text.replaceWith(form);
    button.hidden = true;
    field.focus();
  }

  /**
   * @param {Fragment} one
   * @param {HTMLElement} row
   */
  async #forget(one, row) {
    try {
      await this.request("memory.forget", { memories: [one.id] });
      row.remove();
      setText(this.#news, t("Forgotten."));
      this.#field.focus();
    } catch (error) {
      this.#say(error);
    }
  }

  /** @param {unknown} error */
  #say(error) {
    setText(this.#news, error instanceof Error ? error.message : String(error));
  }
}

const OFF = t("Memory is off: nothing is remembered, and agents are told nothing.");

/**
 * @param {string} query
 * @param {number} count
 */
function found(query, count) {
  if (!query) return count ? t("Newest memories first.") : t("Nothing is remembered yet.");
  return count ? t("{count} found, best first.", { count }) : t("Memory holds nothing about that.");
}

/** What came of looking through a session. @param {number} count of messages */
function looked(count) {
  if (!count) return t("There was nothing new to ask a model about.");
  return plural(count, "A model was asked about 1 message.", "A model was asked about {count} messages.");
}

/** Where it holds, if that is not everywhere. @param {Fragment} one */
function holds({ scope }) {
  return { project: t("in its directory"), session: t("in its session"), person: "" }[scope];
}

/** How well it matches the search, in a word; the figures are in the title. @param {Fragment} one */
function matched({ score, why }) {
  return why && (score >= 0.5 ? t("good match") : t("match"));
}

/** Warnings that matter before it is believed. @param {Fragment} one */
function marks(one) {
  const badge = (/** @type {string} */ words, /** @type {string} */ look) => el("span", { className: `badge ${look}` }, words);
  return [
    ...(one.untrusted ?? []).map((label) => badge(t("from {label}", { label }), "strange")),
    ...(one.contradicts?.length ? [badge(t("contradicted"), "incomplete")] : []), ...(one.current ? [] : [badge(t("replaced or withdrawn"), "")]),
  ];
}
