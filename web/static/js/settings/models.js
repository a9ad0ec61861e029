// The model of each role: view it, try it with a real question, and choose it. A key is typed once; the server stores
// it and never sends it back.

import { el, setText } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { heard, number, t } from "../base/language.js";

/** @typedef {{dialect: "text"|"tools"|null, takes: string[]|null, price_prompt: number|null, price_cached: number|null, price_completion: number|null}} Terms */
/** @typedef {{role: string, url: string, model: string, context: number, key: boolean, own: boolean} & Terms} Role */
/** @typedef {import("../state/wire.d.ts").Preset} Preset */
/** @typedef {import("../state/wire.d.ts").ModelFile} ModelFile */
/** @typedef {import("../state/wire.d.ts").AddedEndpoint} AddedEndpoint */
/** @typedef {import("../state/types.d.ts").Request} Request */

const ABOUT = { smart: t("answers you, and does every task that has no role of its own"), fast: t("judges plans, and shortens long texts") };

/**
 * The section of the settings, which loads its own content.
 * @param {Request} request
 * @param {() => void} changed called when another model answers the next message
 * @param {boolean} connect whether the form for the model that answers is open from the start
 * @returns {HTMLElement}
 */
export function modelsSection(request, changed, connect) {
  const list = el("ul", { className: "modules roles" });
  const files = el("ul", { className: "modules", "data-role": "model-files" });
  const endpoints = el("ul", { className: "modules", "data-role": "model-endpoints" });
  const added = el("section", { hidden: true }, el("h4", {}, t("Added providers")), endpoints);
  const news = el("p", { className: "facts", role: "status" });
  const add = el("button", { type: "button" }, t("Add a role"));
  /** @type {Preset[]} */ let presets = [];
  const refresh = async () => {
    try {
      const [found, known, local, remote] = await Promise.all([request("models"), request("model.presets"), request("model.files"), request("model.endpoints")]);
      presets = known.list;
      files.replaceChildren(...local.list.map(fileRow));
      endpoints.replaceChildren(...remote.list.map(endpointRow));
      added.hidden = !remote.list.length;
      list.replaceChildren(...found.list.map((/** @type {Role} */ role) => row(role)));
      if (!connect) return;
      connect = false;  // after the form was used, the list is shown again
      const first = list.querySelector("[data-model-role=smart]");
      first?.replaceChildren(form(found.list[0], false));
      first?.scrollIntoView({ block: "nearest" });
      first?.querySelector("select")?.focus();
    } catch (error) {
      say(error);
    }
  };
  const say = (/** @type {unknown} */ error) => setText(news, error instanceof Error ? error.message : String(error));
  /** @param {ModelFile} file */
  const fileRow = (file) => {
    const facts = [bytes(file.size), file.present ? "" : t("downloaded when it is first needed"), file.in_use ? t("answers now") : ""].filter(Boolean).join(" · ");
    return modelRow(file.title, facts, file.in_use, () => act("model.board", { name: file.name }, t("{model} answers from the next message on.", { model: file.title })));
  };
  /** @param {AddedEndpoint} endpoint */
  const endpointRow = ({ name, model, url, in_use: answers }) => {
    const facts = [t("{model} at {url}", { model, url }), answers ? t("answers now") : ""].filter(Boolean).join(" · ");
    return modelRow(name, facts, answers, () => act("model.endpoint", { name }, t("{model} answers from the next message on.", { model: name })));
  };
  /**
   * @param {string} title
   * @param {string} facts
   * @param {boolean} answers whether it is the one that answers now
   * @param {() => void} choose
   */
  const modelRow = (title, facts, answers, choose) => {
    const use = el("button", { type: "button", "aria-label": t("Use {model}", { model: title }) }, t("Use"));
    use.hidden = answers;
    use.addEventListener("click", choose);
    return el("li", {}, el("strong", {}, title), " ", el("span", { className: "facts" }, facts), " ", use);
  };
  /** @param {Role} role */
  const row = (role) => {
    const change = el("button", { type: "button", "aria-label": t("Change the model for {role}", { role: role.role }) }, t("Edit"));
    const forget = el("button", { type: "button", "aria-label": t("Remove the model of {role}", { role: role.role }) }, t("Remove"));
    forget.hidden = !role.own;
    const which = !role.own && role.role !== "smart" && !role.model ? t("same as smart") : role.url ? t("{model} at {url}", { model: role.model || t("its only model"), url: role.url }) : t("the small model on board");
    const facts = [which, role.url && (role.key ? t("key stored") : t("no key")), role.url && t("window of {count} tokens", { count: role.context })].filter(Boolean).join(" · ");
    const item = el("li", { "data-model-role": role.role }, el("strong", {}, role.role), " ", el("span", { className: "facts" }, /** @type {Record<string, string>} */ (ABOUT)[role.role] ?? ""), el("p", {}, facts), change, " ", forget);
    change.addEventListener("click", () => item.replaceChildren(form(role, false)));
    forget.addEventListener("click", () => act("model.forget", { role: role.role }, t("{role} has no model of its own now.", { role: role.role })));
    return item;
  };
  /**
   * @template {import("../state/types.d.ts").RequestType} T
   * @param {T} type
   * @param {import("../state/types.d.ts").Fields<T>} fields
   * @param {string} words
   */
  const act = async (type, fields, words) => {
    setText(news, t("Working …"));
    try {
      await request(type, fields);
      setText(news, words);
      changed();
      await refresh();
    } catch (error) {
      say(error);
    }
  };
  /**
   * @param {Role} role
   * @param {boolean} fresh
   */
  const form = (role, fresh) => {
    const named = (/** @type {string} */ label, /** @type {HTMLElement} */ input) => el("label", {}, el("span", {}, label), input);
    const field = (/** @type {Record<string, unknown>} */ properties) => el("input", { type: "text", autocomplete: "off", spellcheck: false, ...properties });
    const name = field({ value: role.role, pattern: "[a-z][a-z0-9_\\-]{0,39}", required: true });
    const url = field({ type: "url", value: role.url, required: true, placeholder: "http://127.0.0.1:8000/v1" });
    const key = field({ type: "password", value: "", placeholder: role.key ? t("stored; type to replace it") : t("if it needs one"), autocomplete: "new-password" });
    const model = field({ value: role.model, placeholder: t("leave empty if it has only one") });
    const known = el("datalist", { id: `models-of-${role.role || "new"}` });
    model.setAttribute("list", known.id);
    const context = field({ type: "number", value: String(role.context || ""), min: "512", step: "1" });
    const dialect = el("select", {}, ...[["text", t("as blocks in its text")], ["tools", t("as function calls (if it insists on them)")]].map(([value, words]) =>
      el("option", { value, selected: (role.dialect ?? "text") === value }, words)));
    const takes = ["image", "audio"].map((medium) => el("input", { type: "checkbox", value: medium, checked: role.takes?.includes(medium) ?? false }));
    const media = el("fieldset", { className: "role-media" }, el("legend", {}, t("It also accepts")), el("label", {}, takes[0], ` ${t("pictures")}`), el("label", {}, takes[1], ` ${t("sound")}`));
    const price = (/** @type {number|null} */ value) => field({ type: "number", value: value === null || value === undefined ? "" : String(value), min: "0", step: "any", inputMode: "decimal" });
    const prices = [price(role.price_prompt), price(role.price_cached), price(role.price_completion)];
    const costs = el("details", { open: prices.some(({ value }) => value) }, el("summary", {}, t("Price of a million tokens")), named(t("Read"), prices[0]), named(t("From cache"), prices[1]), named(t("Written"), prices[2]),
      el("p", { className: "facts" }, t("In any currency. Without prices, no cost is shown.")));
    const provider = el("select", {}, el("option", { value: "" }, t("another address")), ...presets.map(({ name, title, url: address }) =>
      el("option", { value: name, selected: address === role.url }, title)));
    const hint = el("p", { className: "facts" });
    provider.addEventListener("change", () => {
      const chosen = presets.find(({ name }) => name === provider.value);
      if (!chosen) return;
      url.value = chosen.url;
      model.value = "";
      known.replaceChildren();
      key.placeholder = chosen.needs_key ? t("needed") : t("not needed");
      setText(hint, [chosen.keys && t("A key is made at {address}.", { address: chosen.keys }), heard(chosen.about)].filter(Boolean).join(" "));
    });
    const came = el("p", { className: "facts", role: "status" });
    const attempt = el("button", { type: "button" }, t("Test"));
    const cancel = el("button", { type: "button" }, t("Cancel"));
    const made = el("form", { className: "role-form" },
      ...(fresh ? [named(t("Role"), name)] : [el("strong", {}, role.role === "smart" && !role.url ? t("Connect a model") : role.role)]), named(t("Provider"), provider), hint, named(t("Server address (…/v1)"), url), named(t("Key"), key), named(t("Model"), model), known, named(t("Context length"), context), named(t("Calls tools"), dialect), media, costs, came,
      el("p", {}, el("button", { type: "submit", className: "primary" }, t("Save")), " ", attempt, " ", cancel));
    const fields = () => ({ role: name.value.trim(), url: url.value.trim(), model: model.value.trim(), key: key.value || null, context: Number(context.value) || null,
      dialect: /** @type {"text"|"tools"} */ (dialect.value), takes: takes.filter(({ checked }) => checked).map(({ value }) => /** @type {"image"|"audio"} */ (value)),
      ...Object.fromEntries(["price_prompt", "price_cached", "price_completion"].map((each, index) => [each, prices[index].value === "" ? null : Number(prices[index].value)])) });
    attempt.addEventListener("click", async () => {
      if (!made.reportValidity()) return;
      setText(came, t("Asking the model …"));
      try {
        const tried = await request("model.try", fields());
        known.replaceChildren(...tried.names.map((/** @type {string} */ value) => el("option", { value })));
        const listed = tried.names.length ? t("It offers {names}.", { names: tried.names.slice(0, 12).join(", ") }) : "";
        const outcome = tried.fault ? heard(tried.fault) : t("{model} answered “{answer}” after {ms} ms.", { model: tried.model, answer: tried.answer || "…", ms: number(tried.ms) });
        setText(came, [outcome, listed].filter(Boolean).join(" "));
        came.classList.toggle("bad", Boolean(tried.fault));
      } catch (error) {
        setText(came, error instanceof Error ? error.message : String(error));
      }
    });
    cancel.addEventListener("click", () => refresh());
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      void act("model.choose", fields(), t("Saved. {role} uses this model from the next message on.", { role: name.value.trim() }));
    });
    return made;
  };
  add.addEventListener("click", () => list.append(el("li", {}, form({ role: "", url: "", model: "", context: 0, key: false, own: true, dialect: null, takes: null, price_prompt: null, price_cached: null, price_completion: null }, true))));
  void refresh();
  return el("section", { "aria-label": t("Models") }, el("h3", {}, t("Models")), list, add, news, added,
    el("h4", {}, t("On this machine")), files, el("p", { className: "facts" }, t("Add another file with “iact model add file:PATH” or “hub:OWNER/NAME”.")));
}
