// The catalogue of modules: what each can do, what it needs, and which functions a person has approved. Modules can be
// added, approved and removed here while agents run.

import { el, part, setText, twice } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { t } from "../base/language.js";

/** The largest file that fits in one message, in bytes. */
const LARGEST = 128 * 1024;

/** @typedef {import("../state/wire.d.ts").ModuleDescription} Module */
/** @typedef {import("../state/wire.d.ts").HostRow} Host */
/** @typedef {import("../state/types.d.ts").Request} Request */
/** Who allowed a host. */
const BY = { policy: t("allowed by the policy"), always: t("allowed by you, always"), session: t("allowed by you, for this session") };

export class ModulesDialog {
  #dialog = /** @type {HTMLDialogElement} */ (part("modules-dialog"));
  #list = part("modules-list");
  #source = /** @type {HTMLInputElement} */ (part("modules-source"));
  #file = /** @type {HTMLInputElement} */ (part("modules-file"));
  #news = part("modules-news");
  #busy = false;
  /** @type {import("./secrets.js").OwnSecrets|undefined} */ #secrets;
  /** The hosts that modules may reach in the shown session; null if none is shown. @type {Host[]|null} */ #hosts = null;

  /**
   * @param {Request} request
   * @param {import("../state/store.js").Store} store
   */
  constructor(request, store) {
    this.request = request;
    this.store = store;
    part("modules-add").addEventListener("submit", (event) => {
      event.preventDefault();
      const source = this.#source.value.trim();
      if (source) this.#add({ source }).then((done) => { if (done) this.#source.value = ""; });
    });
    part("modules-choose").addEventListener("click", () => this.#file.click());
    this.#file.addEventListener("change", async () => {
      const file = this.#file.files?.[0];
      this.#file.value = "";
      if (!file) return;
      if (file.size > LARGEST) setText(this.#news, t("{name} is larger than {size}; give its path on the server's machine.", { name: file.name, size: bytes(LARGEST) }));
      else await this.#add({ source: await file.text(), name: file.name.replace(/\.py$/, "") });
    });
    this.#dialog.addEventListener("click", (event) => event.target === this.#dialog && this.#dialog.close());
  }

  /** @param {import("../state/types.d.ts").Fields<"module.add">} fields */
  #add(fields) {
    return this.#do("module.add", fields, t("Added. Approve it before agents can use it."));
  }

  async show() {
    this.#list.replaceChildren(el("li", { className: "nothing" }, t("Asking the sandbox …")));
    setText(this.#news, "");
    if (!this.#dialog.open) this.#dialog.showModal();
    await Promise.all([this.#refresh(), this.#showSecrets()]);
  }

  /** The user's secrets, below the modules that receive them. */
  async #showSecrets() {
    const { OwnSecrets } = await import("./secrets.js");
    await (this.#secrets ??= new OwnSecrets(part("own-secrets"), this.request, Boolean(this.store.you), (words) => this.#say(words))).show();
  }

  /** A module was added or removed, for any reason. */
  changed() {
    if (this.#dialog.open && !this.#busy) this.#refresh();
  }

  async #refresh() {
    try {
      const { list } = await this.request("modules");
      // Without a session, there are only the modules.
      this.#hosts = await this.request("module.hosts").then((answer) => answer.list, () => null);
      const open = new Set([...this.#list.querySelectorAll("details[open]")].map((one) => one.getAttribute("data-module")));
      this.#list.replaceChildren(...list.map((/** @type {Module} */ one) => this.#module(one, open.has(one.name))));
      if (!list.length) this.#list.append(el("li", { className: "nothing" }, t("There are no modules.")));
    } catch (error) {
      this.#list.replaceChildren();
      this.#say(error);
    }
  }

  /**
   * @template {import("../state/types.d.ts").RequestType} T
   * @param {T} type
   * @param {import("../state/types.d.ts").Fields<T>} fields
   * @param {string} words the text to show when it is done
   */
  async #do(type, fields, words) {
    if (this.#busy) return false;
    this.#busy = true;
    setText(this.#news, t("Working …"));
    try {
      await this.request(type, fields);
      setText(this.#news, words);
      await this.#refresh();
      return true;
    } catch (error) {
      this.#say(error);
      return false;
    } finally {
      this.#busy = false;
    }
  }

  /** @param {unknown} error */
  #say(error) {
    setText(this.#news, error instanceof Error ? error.message : String(error));
  }

  /**
   * @param {Module} module
   * @param {boolean} open
   */
  #module(module, open) {
    const strange = module.origin !== "shipped" && !module.shared;
    const approved = module.functions.filter((one) => one.approved).length;
    const state = !module.functions.length ? t("has not run here yet") : approved === module.functions.length ? t("approved") : t("{approved} of {all} approved", { approved, all: module.functions.length });
    const summary = el("summary", {}, el("span", { className: "function" }, module.name), " ",
      el("span", { className: `badge ${approved === module.functions.length && approved ? "ok" : "incomplete"}` }, state), " ",
      el("span", { className: "facts" }, [module.version, module.origin === "shipped" ? t("built in") : module.shared ? t("for all users") : t(module.origin), t(module.state)].filter(Boolean).join(" · ")));
    const details = el("details", { "data-module": module.name, open }, summary, el("p", {}, module.manifest?.purpose || module.summary),
      el("p", { className: "facts" }, `SHA-256 ${module.digest.slice(0, 16)}…`), ...needs(module.manifest), ...this.#reach(module),
      el("ul", { className: "functions" }, ...module.functions.map((one) => this.#function(module, one, strange))), ...(strange ? [this.#controls(module, approved)] : []));
    return el("li", {}, details);
  }

  /**
   * @param {Module} module
   * @param {Module["functions"][number]} one
   * @param {boolean} strange
   */
  #function(module, one, strange) {
    const about = (module.manifest?.functions ?? []).find((each) => `${module.name}.${each.name}` === one.name);
    const row = el("li", {}, el("span", { className: "function" }, one.name), " ", el("span", { className: "badge" }, t("impact {impact}", { impact: one.impact })), " ",
      el("span", { className: `badge ${one.approved ? "ok" : "incomplete"}` }, one.approved ? t("approved") : t("not approved")));
    if (strange && !one.approved) {
      const button = el("button", { type: "button", "aria-label": t("Approve {name}", { name: one.name }) }, t("Approve"));
      button.addEventListener("click", (event) => event.isTrusted && this.#do("module.approve", { name: module.name, functions: [one.name], digest: module.digest }, t("{name} is approved.", { name: one.name })));
      row.append(" ", button);
    }
    row.append(el("p", { className: "facts" }, about?.summary ?? ""));
    return row;
  }

  /** The hosts that a module may reach, and a field for another. @param {Module} module */
  #reach(module) {
    const mine = this.#hosts?.filter((one) => one.module === module.name) ?? [];
    if (!this.#hosts || (!mine.length && !module.manifest?.needs?.egress?.length)) return [];
    const rows = mine.map((one) => {
      const row = el("li", {}, el("span", { className: "function" }, one.host), " ", el("span", { className: "facts" }, BY[one.by]));
      const { by } = one;
      if (by === "policy") return row;
      const remove = el("button", { type: "button", "aria-label": t("Revoke {host}", { host: one.host }) }, t("Revoke"));
      remove.addEventListener("click", (event) => event.isTrusted && this.#do("module.allow", { name: module.name, hosts: [one.host], for: by, remove: true }, t("You will be asked about {host} again.", { host: one.host })));
      row.append(" ", remove);
      return row;
    });
    const host = el("input", { type: "text", size: 24, maxlength: 300, spellcheck: false, placeholder: "docs.python.org", "aria-label": t("Host that {name} may reach", { name: module.name }) });
    const lasts = el("select", { "aria-label": t("For how long") }, el("option", { value: "session" }, t("in this session")), el("option", { value: "always" }, t("always")));
    const form = el("form", { className: "module-controls" }, host, " ", lasts, " ", el("button", { type: "submit" }, t("Allow")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = /** @type {HTMLInputElement} */ (host).value.trim();
      if (event.isTrusted && text) this.#do("module.allow", { name: module.name, hosts: [text], for: /** @type {"session"|"always"} */ (lasts.value) }, t("{name} may reach {host}.", { name: module.name, host: text }));
    });
    const list = rows.length ? el("ul", { className: "hosts" }, ...rows) : el("p", { className: "facts" }, t("No hosts are allowed; it asks when it needs one."));
    return [el("h3", {}, t("Hosts")), list, form];
  }

  /**
   * @param {Module} module
   * @param {number} approved
   */
  #controls(module, approved) {
    const all = el("button", { type: "button" }, t("Approve all of it"));
    all.hidden = approved === module.functions.length;
    all.addEventListener("click", (event) => event.isTrusted && this.#do("module.approve", { name: module.name, digest: module.digest }, t("{name} is approved in its current version.", { name: module.name })));
    const remove = el("button", { type: "button" }, t("Remove"));
    twice(remove, t("Remove"), t("Really remove it?"), () => this.#do("module.remove", { name: module.name }, t("{name} is removed.", { name: module.name })));
    return el("p", { className: "module-controls" }, all, " ", remove);
  }
}

/** The permissions that a module asks for, which an approval grants. @param {import("../state/wire.d.ts").ModuleDescription["manifest"]} manifest */
function needs(manifest) {
  const { egress = [], secrets = [], workspace = "none" } = manifest?.needs ?? {};
  const named = egress.filter((one) => one !== "*");
  const words = [
    named.length ? t("reach {hosts}", { hosts: named.join(", ") }) : "", secrets.length ? t("get the secrets {secrets}", { secrets: secrets.join(", ") }) : "",
    workspace !== "none" ? workspace === "write" ? t("change files in the workspace") : t("read files in the workspace") : "",
  ].filter(Boolean);
  return words.length ? [el("p", { className: "notice warning" }, t("Needs: {words}", { words: words.join("; ") }))] : [];
}
