// The dialogs about saved plans: what of a plan is left open when it is saved, and the values for that when it is run.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";
import { form, frame, labelled } from "../people/form.js";

/** @typedef {import("../state/types.d.ts").Request} Ask asks the server */
/** @typedef {import("../state/wire.d.ts").TemplateRow} TemplateRow */
/** @typedef {import("../state/wire.d.ts").TemplateParameter} TemplateParameter */

/**
 * Let the user save a plan under a name, with some of its values left open.
 * @param {Ask} ask
 * @param {string} path the plan
 */
export async function savePlan(ask, path) {
  const { dialog, content, say } = frame("template-save", t("Save this plan"));
  const name = el("input", { type: "text", autocomplete: "off", spellcheck: false, maxLength: 64 });
  /** @type {Row[]} */ let rows = [];
  const fields = el("fieldset", { className: "template-values" }, el("legend", {}, t("Values that are asked for each time the plan is used")));
  content.append(el("p", { className: "facts" }, t("Its name, for PLAN from=NAME and for the command palette: letters, digits, - and _.")),
    form(t("Save"), async () => {
      try {
        await ask("plan.save", { path, name: name.value.trim(), parameters: Object.fromEntries(rows.flatMap((row) => row())) });
        dialog.close();
      } catch (error) {
        say(error);
      }
    }, labelled(t("Name"), name), fields));
  name.focus();

  let offered = [];
  try {
    offered = (await ask("plan.offers", { path })).list;
  } catch (error) {
    say(error);
    return;
  }
  rows = [...offered.map((offer) => offeredRow(fields, offer)), ownRow(fields)];
}

/** @typedef {() => [string, string][]} Row returns the name and value of its parameter, if it is one */

/**
 * A value of the plan that can be left open.
 * @param {HTMLElement} parent
 * @param {{name: string, value: string}} offer
 * @returns {Row}
 */
function offeredRow(parent, { name, value }) {
  const box = el("input", { type: "checkbox" });
  const field = nameField(t("Name of the value {value}", { value }), name);
  parent.append(el("div", { className: "template-value" }, labelled(value, box), field));
  field.addEventListener("input", () => { box.checked = true; });
  return () => (box.checked ? [[field.value.trim(), value]] : []);
}

/**
 * A value that is not offered.
 * @param {HTMLElement} parent
 * @returns {Row}
 */
function ownRow(parent) {
  const value = el("input", { type: "text", autocomplete: "off", spellcheck: false, placeholder: t("Another value of the plan"), "aria-label": t("Another value of the plan") });
  const field = nameField(t("Name of the other value"), "value");
  parent.append(el("div", { className: "template-value" }, value, field));
  return () => (value.value.trim() ? [[field.value.trim(), value.value]] : []);
}

/**
 * @param {string} label
 * @param {string} value
 */
function nameField(label, value) {
  return el("input", { type: "text", value, autocomplete: "off", spellcheck: false, maxLength: 40, "aria-label": label });
}

/**
 * Ask for the values of a saved plan, then run it.
 * @param {TemplateRow} template
 * @param {(values: Record<string, string>) => Promise<unknown>} run
 */
export function askValues(template, run) {
  const { dialog, content, say } = frame("template-run", t("Run the plan {plan}", { plan: template.name }));
  const fields = template.parameters.map((parameter) => valueField(parameter));
  content.append(...(template.goal ? [el("p", { className: "facts", dir: "auto" }, template.goal)] : []),
    form(t("Show the plan"), async () => {
      try {
        await run(Object.fromEntries(fields.map(({ name, read }) => [name, read()])));
        dialog.close();
      } catch (error) {
        say(error);
      }
    }, ...fields.map(({ label, field }) => labelled(label, field))));
  fields[0]?.field.focus();
}

/** @param {TemplateParameter} parameter */
function valueField({ name, kind, was, default: otherwise, about }) {
  const before = otherwise ?? was;
  const label = about ? `${name} (${about})` : name;
  if (kind === "yes or no") {
    const box = el("input", { type: "checkbox", checked: before === "true" });
    return { name, label, field: box, read: () => String(box.checked) };
  }
  const field = el("input", { type: "text", value: before, autocomplete: "off", spellcheck: false, inputMode: kind === "number" ? "decimal" : "text" });
  return { name, label, field, read: () => field.value };
}
