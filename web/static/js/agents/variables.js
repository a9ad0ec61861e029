// The selected agent's variables with type, size, origin and provenance, and a dialog with the content of one.

import { el, part, setText, styled } from "../base/dom.js";
import { agentName, bytes } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").Variable} Variable */
/** @typedef {import("./inspector.js").Ask} Ask */

/**
 * The list as the inspector shows it.
 * @param {Variable[]} list
 * @param {(name: string) => void} show
 * @returns {HTMLElement}
 */
export function variableList(list, show) {
  if (!list.length) return el("p", { className: "nothing" }, t("This agent has no variables yet."));
  return el("ul", { className: "variables" }, ...list.map((one) => {
    const chip = el("button", { type: "button", className: "chip" }, `$${one.name}`);
    chip.addEventListener("click", () => show(one.name));
    const facts = el("span", { className: "facts" }, [one.media, bytes(one.size), whence(one.origin)].filter(Boolean).join(" · "));
    return el("li", {}, chip, facts, ...provenance(one.labels));
  }));
}

/** Who made a value: a person, an agent, or a tool. @param {string} origin */
function whence(origin) {
  if (origin === "the user") return t("from you");
  return origin.startsWith("/") ? t("written by {agent}", { agent: agentName(origin) }) : origin && t("from {origin}", { origin });
}

/** @param {string[]} labels */
function provenance(labels) {
  return labels.length ? [el("span", { className: "labels" }, ...labels.map((label) => el("span", { className: "badge" }, label)))] : [];
}

export class VariableDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("variable-dialog"));
  #content = part("variable-content");

  /**
   * @param {Ask} ask
   * @param {(path: string, name: string) => void} download
   * @param {(path: string, name: string, digest: string) => Promise<unknown>} vouch
   * @param {import("../dialogue/pictures.js").FetchPictures} pictures
   */
  constructor(ask, download, vouch, pictures) {
    this.pictures = pictures;
    this.ask = ask;
    this.download = download;
    this.vouch = vouch;
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
  }

  /**
   * @param {string} path
   * @param {string} name
   */
  async show(path, name) {
    setText(part("variable-name"), `$${name}`);
    this.#content.replaceChildren();
    if (!this.#dialog.open) this.#dialog.showModal();
    try {
      const value = await this.ask("variable", { path, name });
      const picture = await (await this.pictures()).of(path, value, name);
      this.#fill(path, value, picture ? [picture] : await this.#looks(path, value));
    } catch (error) {
      this.#content.replaceChildren(el("p", { className: "nothing", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /**
   * @param {string} path
   * @param {string} name
   * @param {string} digest
   */
  async #vouch(path, name, digest) {
    try {
      await this.vouch(path, name, digest);
      await this.show(path, name);
    } catch (error) {
      this.#content.append(el("p", { className: "bad", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /**
   * What a variable looks like, and its text.
   * @param {string} path
   * @param {import("../state/wire.d.ts").VariableContent} value
   */
  async #looks(path, value) {
    const text = value.text === null ? el("p", { className: "nothing" }, t("Binary file. Download it to view it.")) : el("pre", { tabIndex: 0 }, value.text);
    if (!value.look) return [text];
    const { name, media } = value;
    try {
      const [{ look }, { contentOf }] = await Promise.all([import("../files/look.js"), import("../dialogue/pictures.js"), styled("look")]);
      const parts = await look(value.look, {
        name, media, text: value.text ?? "",
        view: () => this.ask("variable.view", { path, name }),
        bytes: async () => (await contentOf((await this.ask("download", { path, name })).href)).arrayBuffer(),
        format: (piece) => this.ask("format", { agent: path, text: piece }),
      });
      return value.text === null ? parts : [...parts, el("details", {}, el("summary", {}, t("As text")), text)];
    } catch (error) {
      return [el("p", { className: "facts", role: "alert" }, error instanceof Error ? error.message : String(error)), text];
    }
  }

  /**
   * @param {string} path
   * @param {import("../state/wire.d.ts").VariableContent} value
   * @param {HTMLElement[]} content
   */
  #fill(path, value, content) {
    const button = el("button", { type: "button" }, t("Download"));
    button.addEventListener("click", () => this.download(path, value.name));
    const vouch = el("button", { type: "button", title: t("Marks this value as trusted. Calls that are blocked for untrusted data may then use it.") }, t("Trust this content"));
    vouch.hidden = value.labels.every((label) => label === "user" || label === "model");
    vouch.addEventListener("click", (event) => event.isTrusted && this.#vouch(path, value.name, value.digest));

    const facts = [value.media, bytes(value.size), whence(value.origin), `SHA-256 ${value.sha256.slice(0, 12)}…`];
    this.#content.replaceChildren(el("p", { className: "facts" }, facts.filter(Boolean).join(" · ")), ...provenance(value.labels), ...content, el("p", {}, button, " ", vouch));
  }
}
