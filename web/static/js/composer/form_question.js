// The question of a module to a person, in the bar of approvals. Fetched with the first such question.

import { el, part, setText } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/records.js").FormField} FormField */
/** @typedef {string|boolean|number|string[]} Value */
/** @typedef {Record<string, Value>} Values what was filled in, by field */

/** The length of a text from which its field has several lines. */
const LONG = 200;
let made = 0;

export class FormQuestion {
  #bar = part("approvals");
  #title = part("approvals-title");
  /** The value of each field; undefined if it is empty. @type {Map<string, () => Value|undefined>} */ #read = new Map();

  /**
   * @param {{fields?: FormField[], url?: string, skill?: object|null, tool?: object|null}} asked
   * @param {Element} below
   */
  constructor({ fields = [], url = "", skill, tool }, below) {
    this.#bar.classList.add("form");
    setText(this.#title, skill ? t("An agent offers a skill") : tool ? t("A tool is called") : t("A module asks you"));
    setText(part("approve"), skill ? t("Approve the skill") : url ? t("I opened it") : fields.length ? t("Send the answer") : t("Yes"));
    setText(part("deny"), skill ? t("Don't approve it") : t("Don't answer"));
    const controls = el("div", { className: "form-fields" });
    // The server has already checked it. Nothing else may become a link.
    if (url.startsWith("https://")) {
      controls.append(el("p", {}, el("a", { href: url, target: "_blank", rel: "noreferrer" }, t("Open the address in a new tab"))));
    }
    controls.append(...fields.map((field) => this.#control(field)));
    below.append(controls);
  }

  /** Another question is shown now. */
  leave() {
    this.#bar.classList.remove("form");
    setText(this.#title, t("Approval needed"));
  }

  /** The values that were filled in, by field. */
  values() {
    /** @type {Values} */ const found = {};
    for (const [name, read] of this.#read) {
      const value = read();
      if (value !== undefined) found[name] = value;
    }
    return found;
  }

  /** @param {FormField} field */
  #control(field) {
    const { name, kind, title, description, required } = field;
    const id = `form-field-${(made += 1)}`;
    const words = `${title || name}${required ? ` (${t("needed")})` : ""}`;
    const about = description ? [el("small", { id: `${id}-about` }, description)] : [];
    if (kind === "choices") {
      const boxes = (field.choices ?? []).map((value, at) => {
        const box = el("input", { type: "checkbox", value, checked: Array.isArray(field.default) && field.default.includes(value) });
        return { box, label: el("label", {}, box, ` ${field.titles?.[at] || value}`) };
      });
      this.#read.set(name, () => {
        const chosen = boxes.filter(({ box }) => box.checked).map(({ box }) => box.value);
        return chosen.length || field.default ? chosen : undefined;
      });
      return el("fieldset", {}, el("legend", {}, words), ...about, ...boxes.map(({ label }) => label));
    }
    const control = this.#input(field, id);
    if (description) control.setAttribute("aria-describedby", `${id}-about`);
    if (required) control.setAttribute("aria-required", "true");
    const label = el("label", { htmlFor: id }, words);
    return kind === "boolean" ? el("div", { className: "yes" }, control, label, ...about) : el("div", {}, label, ...about, control);
  }

  /**
   * @param {FormField} field
   * @param {string} id
   */
  #input({ name, kind, format, choices = [], titles, least, most, ...field }, id) {
    const given = field.default;
    if (kind === "boolean") {
      const box = el("input", { id, type: "checkbox", checked: given === true });
      this.#read.set(name, () => box.checked);
      return box;
    }
    if (kind === "choice") {
      const options = choices.map((value, at) => el("option", { value }, titles?.[at] || value));
      const none = typeof given === "string" ? [] : [el("option", { value: "" }, "–")];
      const select = el("select", { id }, ...none, ...options);
      select.selectedIndex = typeof given === "string" ? choices.indexOf(given) : 0;
      this.#read.set(name, () => choices[select.selectedIndex - none.length]);
      return select;
    }
    const number = kind === "number" || kind === "integer";
    const value = given === undefined || given === null ? "" : String(given);
    const several = kind === "text" && !format && (most ?? 0) >= LONG;
    const type = number ? "number" : { email: "email", uri: "url", date: "date" }[String(format)] || "text";
    const input = several ? el("textarea", { id, value, rows: 3 }) : el("input", { id, type, value, autocomplete: "off" });
    if (number && input instanceof HTMLInputElement) {
      input.step = kind === "integer" ? "1" : "any";
      if (least !== undefined && least !== null) input.min = String(least);
      if (most !== undefined && most !== null) input.max = String(most);
    } else if (kind === "text" && most) {
      input.maxLength = most;
    }
    this.#read.set(name, () => (input.value === "" ? undefined : number ? Number(input.value) : input.value));
    return input;
  }
}
