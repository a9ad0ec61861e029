// The question of a module to a person, in the bar of approvals. Fetched with the first such question.

import { el, part, setText } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../state/records.js").FormField} FormField */
/** @typedef {string|boolean|number|string[]} Value */
/** @typedef {Record<string, Value>} Values what was filled in, by field */

/** The length of a text from which its field has several lines. */
const LONG = 200;
/** The field in which the user says what should be other about a result of a plan's step. */
const CHANGE = "change";
/** The titles and hints of our own questions. @type {Record<string, {title: string, hint: string}>} */
const OWN = {
  answer: { title: t("What came of it"), hint: "" },
  change: { title: t("What should be changed"), hint: t("Leave it empty to accept the result.") },
};
let made = 0;

/** @typedef {{fields?: FormField[], url?: string, skill?: object|null, tool?: object|null, function?: string}} Asked */

/** Whether a plan asks the user to accept a result. @param {Asked} asked */
function isAcceptance(asked) {
  return asked.function === "PERSON" && (asked.fields ?? []).some(({ name }) => name === CHANGE);
}

/** A field of a question of a plan, in the language of the page. @param {FormField} field @returns {FormField} */
function ours(field) {
  const words = OWN[field.name];
  return words ? { ...field, title: words.title, description: words.hint } : field;
}

/** The title of a question, and its two answers. @param {Asked} asked */
function wordsFor(asked) {
  if (isAcceptance(asked)) return { title: t("A result waits for your yes"), yes: t("Accept the result"), no: t("Don't accept it") };
  if (asked.function === "PERSON") return { title: t("A step of the plan is yours"), yes: t("It is done"), no: t("I don't do it") };
  if (asked.skill) return { title: t("An agent offers a skill"), yes: t("Approve the skill"), no: t("Don't approve it") };
  const title = asked.tool ? t("A tool is called") : t("A module asks you");
  const yes = asked.fields?.length ? t("Send the answer") : t("Yes");
  return { title, yes: asked.url ? t("I opened it") : yes, no: t("Don't answer") };
}

export class FormQuestion {
  #bar = part("approvals");
  #title = part("approvals-title");
  /** The value of each field; undefined if it is empty. @type {Map<string, () => Value|undefined>} */ #read = new Map();

  /**
   * @param {{fields?: FormField[], url?: string, skill?: object|null, tool?: object|null, function?: string}} asked
   * @param {Element} below
   */
  constructor(asked, below) {
    const { fields = [], url = "" } = asked;
    this.#bar.classList.add("form");
    const { title, yes, no } = wordsFor(asked);
    setText(this.#title, title);
    setText(part("approve"), yes);
    setText(part("deny"), no);
    const controls = el("div", { className: "form-fields" });
    // The server has already checked it. Nothing else may become a link.
    if (url.startsWith("https://")) {
      controls.append(el("p", {}, el("a", { href: url, target: "_blank", rel: "noreferrer" }, t("Open the address in a new tab"))));
    }
    controls.append(...fields.map((field) => this.#control(asked.function === "PERSON" ? ours(field) : field)));
    below.append(controls);
    if (isAcceptance(asked)) {
      controls.addEventListener("input", () => setText(part("approve"), this.#read.get(CHANGE)?.() ? t("Have it changed") : yes));
    }
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
