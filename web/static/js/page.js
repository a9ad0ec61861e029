// Wires the page: the connection to the server, the store, the views, and the address.

import { Heading } from "./agents/heading.js";
import { Tree } from "./agents/tree.js";
import { icon, onceAFrame, part, setText, styled } from "./base/dom.js";
import { Drawers } from "./base/drawers.js";
import { snippet } from "./base/format.js";
import { heard, t } from "./base/language.js";
import { lazily } from "./base/lazy.js";
import { Approvals } from "./composer/approvals.js";
import { Composer } from "./composer/composer.js";
import { ModePicker } from "./composer/mode_picker.js";
import { download, Uploads } from "./composer/uploads.js";
import { ActivityLine } from "./dialogue/activity_line.js";
import { Dialogue } from "./dialogue/dialogue.js";
import { ReviewBar } from "./files/review_bar.js";
import { readAddress, writeAddress } from "./sessions/address.js";
import { Attention } from "./sessions/attention.js";
import { Side } from "./sessions/side.js";
import { showMissing, SignIn } from "./sessions/unavailable.js";
import { showLevels } from "./settings/intent_levels.js";
import { PaletteOpener } from "./settings/palette_opener.js";
import { Connection, RequestError } from "./state/connection.js";
import { Store } from "./state/store.js";

/** Milliseconds until a stopped session is requested again: the server continues it once it can. */
const RECOVERY = 3000;
/** Milliseconds in which several changed sessions are requested at once. */
const TOGETHER = 200;
/** The used share of a session's tokens from which the page shows how many are left. */
const MOST_USED = 0.8;

export class Page {
  store = addressed(new Store());
  connection = new Connection({
    hello: () => {
      const { id, readonly } = this.store.session;
      const has = { since: this.store.last, first: this.store.reached, path: this.store.selected, lazy: true };
      return readonly && id !== null ? ["open", { journal: id, ...has }] : ["hello", { session: id, ...has }];
    },
    refused: (error) => this.#refused(error),
    again: () => this.composer.again(),
    message: (message) => this.#take(message),
    state: (state) => this.#connectionState(state),
  });
  signIn = new SignIn(() => this.connection.open());
  /** The saved plans. @type {import("./settings/commands.js").SavedPlan[]} */ plans = [];
  /** @type {import("./agents/controls.js").Actions} */
  actions = {
    toggle: (node) => this.attempt(this.connection.request(node.paused ? "resume" : "pause", { path: node.path })),
    cancel: (node) => this.attempt(this.connection.request("cancel", { path: node.path })),
    inject: (node) => {
      this.choose(node.path);
      this.composer.focus();
    },
  };
  /** @type {import("./state/types.d.ts").Request} */
  request = (type, fields) => this.connection.request(type, fields);
  /** Sends a request about the shown session. @type {import("./state/types.d.ts").Request} */
  ask = (type, fields) => this.connection.request(type, { at: this.store.at, ...fields });
  /** @type {import("./dialogue/pictures.js").FetchPictures} */
  pictures = () => this.#pictures ??= import("./dialogue/pictures.js").then(({ Pictures }) => new Pictures(this.ask, () => this.store.session.id));
  /** @type {import("./dialogue/embeds.js").FetchEmbeds} */
  embeds = () => this.#embeds ??= Promise.all([this.pictures(), import("./dialogue/embeds.js")]).then(([pictures, { Embeds }]) => new Embeds(this.ask, pictures));
  modePicker = new ModePicker(this.store);
  composer = new Composer(this.store, async (path, text, mode, calls, once) => {
    if (mode === "fork" || mode === "run") return this.#fork(text, mode === "run");
    if (path === "/") await this.uploads.deliver();
    return mode === "say"
      ? this.uploads.message(text, { ...this.modePicker.way, once })
      : this.connection.request("inject", { path, text, mode, calls, once });
  }, this.modePicker, this.actions.cancel);
  uploads = new Uploads(this.connection, (text, bad) => this.composer.say(text, bad), this.store);
  /** Set up after the message field, because Escape means something else there while a drawer is open. */
  drawers = new Drawers();

  /** @type {(id: string|null, readonly?: boolean, place?: {n: number, agent: string}) => void} */
  open = (id, readonly, place) => this.#open(id, readonly, place);
  /** @type {(path: string, options?: {at?: number|null, since?: number}) => void} */
  openFile = (path, options) => this.#openFile(path, options);
  /** @type {import("./state/types.d.ts").Fetch} */
  fetchFile = (type, fields) => this.attempt(this.ask(type, /** @type {{path: string, name: string}} */ (fields)).then(({ href }) => download(href)));
  unreachable = () => this.composer.say(t("Not connected; try again in a moment."), true);
  settings = lazily("settings-open", "settings", async () => new (await import("./settings/settings.js")).SettingsDialog(this.request, () => this.#hello()), this.unreachable);
  dialogue = new Dialogue(this.store, {
    suggest: (text, files) => {
      this.composer.put(text);
      if (files.length) this.uploads.send(files);
    },
    ask: this.request,
    explain: () => this.settings.show(),
    connect: () => this.settings.show("connect"),
    open: (/** @type {string} */ id) => this.open(id, true),
    forget: (name) => this.attempt(this.#changeFirst("first.forget", { name })),
    choose: (path) => this.choose(path),
  }, (record) => {
    this.store.move(record.n - 1);
    this.composer.put(record.said ?? "");
  }, this.embeds, (body, n) => this.#mark(body, n), {
    source: (n) => this.connection.request("source", { n }).then(({ text }) => text),
    again: (record) => {
      this.store.move(record.n - 1);
      this.attempt(this.#fork(record.said ?? ""));
    },
    open: (path, n) => this.attempt(this.#openResult(path, n)),
  });
  /** Shows one of the details about the selected agent. */
  inspector = { reach: (/** @type {import("./agents/inspector.js").Tab} */ tab) => this.attempt(this.#inspect().then((it) => it.reach(tab))) };
  approvals = new Approvals(this.store, ([call, ...also], [digest, ...others], allow, remember, why, lasts) =>
    this.connection.request("clear", { call, allow, digest, remember, ...(also.length && { also, also_digests: others }), ...(why && { why }), ...(lasts && { for: lasts }) }), (path) => this.choose(path),
    (ask, digest, accept, values) => this.connection.request("form.answer", { ask, digest, accept, values }),
    (n) => this.connection.request("question", { n }));
  review = new ReviewBar(this.store, this.request, this.unreachable);
  side = new Side(async () => {
    const [{ Sessions }, { notifySettings }] = await Promise.all([import("./sessions/sessions.js"), import("./sessions/notifications.js")]);
    return new Sessions(this.store, this.request, { open: this.open, bring: (file) => this.uploads.bring(file), notify: notifySettings() });
  }, this.unreachable);

  /** The session that is left for a fork. The fork's address becomes a new entry in the browser's history.
   * @type {string|null} */
  #leaving = null;
  /** The session in the address, if it does not exist. @type {string|null|undefined} */ #lost;
  /** A place to show as soon as its records have arrived. @type {{id: string, n: number, agent: string}|null} */
  #goal = null;
  #reach = onceAFrame(() => this.#reveal());
  /** Whether the sessions are about to be requested. */ #asking = false;
  /** Requests a session again that stopped because the disk was full. @type {ReturnType<typeof setTimeout>|undefined} */
  #again;
  // Parts that most visits don't need are fetched on first use.
  /** @type {Promise<import("./agents/inspector.js").Inspector>|undefined} */ #inspector;
  /** @type {Promise<import("./agents/variables.js").VariableDialog>|undefined} */ #variables;
  /** @type {Promise<import("./files/viewer.js").FileDialog>|undefined} */ #viewer;
  /** @type {Promise<import("./dialogue/pictures.js").Pictures>|undefined} */ #pictures;
  /** @type {Promise<import("./dialogue/embeds.js").Embeds>|undefined} */ #embeds;
  /** @type {Promise<import("./dialogue/mentions.js").Mentions>|undefined} */ #mentions;
  /** @type {Promise<import("./sessions/replay.js").Replay>|undefined} */ #replay;
  /** @type {Promise<import("./dialogue/search.js").Search>|undefined} */ #fetchingSearch;
  /** @type {import("./dialogue/search.js").Search|undefined} */ #search;
  /** @type {Promise<unknown>|undefined} */ #budget;

  /** Only on a server with several users. @type {import("./people/people.js").People|undefined} */ people;

  /** Show the session in the address, and connect. */
  start() {
    this.store.fetchHtml = (/** @type {number[]} */ numbers) => this.connection.request("render", { numbers });
    this.store.format = (/** @type {string} */ agent, /** @type {string} */ text) => this.connection.request("format", { agent, text });
    this.#views();
    this.#dialogs();
    this.#session();
    this.#address();
    this.#later();
    this.connection.open();
  }

  #views() {
    const { store } = this;
    this.#showPanes();
    new ActivityLine(store, this.actions.cancel);
    new Tree(store, this.actions, (path) => this.choose(path));
    new Heading(store, this.actions);
    new Attention(store, () => this.side.show(), this.open);
    this.#inDialogue(part("dialogue"));
    for (const [role, shape] of /** @type {const} */ ([["replay-open", "history"], ["palette-open", "commands"], ["more-open", "more"], ["attach", "attach"]])) {
      part(role).append(icon(shape));
    }
    // The address names the shown session, so this link must not become part of it.
    document.querySelector("a.skip")?.addEventListener("click", (event) => {
      event.preventDefault();
      this.composer.focus();
    });
  }

  /** The panes at the sides are closed until there is something in them. */
  #showPanes() {
    document.querySelector(".panes")?.classList.toggle("blank", this.store.session.id === null);
  }

  #dialogs() {
    const { store, approvals, inspector, review, settings, side } = this;
    const memories = lazily("memories-open", "memory", async () => new (await import("./settings/memories.js")).MemoriesDialog(this.request, (id) => this.open(id)), this.unreachable);
    const modules = lazily("modules-open", "modules", async () => new (await import("./settings/modules.js")).ModulesDialog(this.request, store), this.unreachable);
    store.addEventListener("modules", onceAFrame(() => modules.made()?.changed()));
    const find = () => this.#showSearch();
    addEventListener("keydown", (event) => {
      const wanted = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "f";
      // On the second press, the browser's own search opens.
      if (!wanted || store.session.id === null || this.#search?.focused || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      find();
    });
    new PaletteOpener({
      store, approvals, inspector, review, settings, find, memories, modules,
      actions: this.actions, composer: this.composer, files: this.uploads, sessions: side, plans: this.plans,
      choose: (path) => this.choose(path),
      replay: { open: () => this.attempt(this.#look().then((it) => it.open())) },
      open: this.open,
      lock: (value) => this.attempt(this.connection.request("lockdown", { value })),
      setIntent: (value) => this.attempt(this.connection.request("intent", { value })),
      exportPage: () => this.fetchFile("export", {}),
      keepFirst: (text) => this.attempt(this.#keepFirst(text)),
      runPlan: (plan) => this.attempt(this.#runPlan(plan)),
    }, () => this.#askForPlans(), this.unreachable);
  }

  /** Fill the bar and the lines above the message field. */
  #session() {
    const { store, connection } = this;
    store.addEventListener("session", () => {
      const { model, intent, levels } = store.session;
      this.#showPanes();
      // In an empty session, the dialogue itself shows which model answers.
      part("model").hidden = !model || store.session.id === null;
      part("intent").hidden = Boolean(store.session.opening);
      part("model").title = model;
      // Only the model's name; details are shown before the first message, and in the title.
      setText(part("model"), heard(model.split(/[,;] /)[0]));
      showLevels(part("intent"), levels, intent);
      /** @type {HTMLFieldSetElement} */ (part("intent")).disabled = store.session.readonly;
      this.#writeAddress();
      if (this.#lost === undefined || (store.session.id === this.#lost && !store.records.length)) return;
      this.#lost = undefined;
      showMissing("", null, () => {}, () => {});
    });
    // A server without examples or first messages answers with an error.
    store.addEventListener("session", () => {
      connection.request("examples").then(({ list }) => store.offer(list), () => undefined);
      connection.request("first").then(({ list }) => store.keep(list), () => undefined);
    }, { once: true });
    part("intent").addEventListener("change", (event) => {
      const value = Number(/** @type {HTMLInputElement} */ (event.target).value);
      const before = store.session.intent;
      connection.request("intent", { value }).catch((error) => {
        this.composer.say(error.message, true);
        showLevels(part("intent"), store.session.levels, before);
      });
    });
    part("unlock").addEventListener("click", () => this.attempt(connection.request("lockdown", { value: false })));
    const showLock = onceAFrame(() => {
      part("lockdown").hidden = !store.locked;
      part("unlock").hidden = store.past;
    });
    for (const what of ["records", "reset", "moved"]) store.addEventListener(what, showLock);
    store.addEventListener("alert", () => {
      clearTimeout(this.#again);
      if (store.alert) this.#again = setTimeout(() => connection.hello().catch(() => undefined), RECOVERY);
      part("alert").hidden = !store.alert;
      setText(part("alert"), store.alert);
    });
    store.addEventListener("stale", () => this.#askForSessions());
    this.#whenNeeded("board", () => store.board?.phase && store.board.phase !== "ready", () => import("./dialogue/board_line.js"),
      ({ BoardLine }) => new BoardLine(store, () => this.settings.show("connect")));
    store.addEventListener("you", () => Promise.all([import("./people/people.js"), styled("settings")]).then(([{ People }]) => this.people ??= new People(store, this.request, this.open), this.unreachable));
  }

  #address() {
    const { store } = this;
    store.addEventListener("selected", () => this.#writeAddress());
    for (const what of ["session", "records"]) store.addEventListener(what, this.#reach);
    addEventListener("popstate", () => {
      const { session, path, readonly } = readAddress();
      if (session !== store.session.id || readonly !== store.session.readonly) {
        store.expect(session, readonly);
        store.select(path);
        this.#hello();
      }
      store.select(path);
    });
  }

  /**
   * Fetch a part with the first event that needs it. If it can't be fetched, the next such event tries again.
   * @template T
   * @param {string} event of the store
   * @param {() => unknown} needed
   * @param {() => Promise<T>} load
   * @param {(part: T) => unknown} make
   */
  #whenNeeded(event, needed, load, make) {
    const { store } = this;
    const look = () => {
      if (!needed()) return;
      store.removeEventListener(event, look);
      load().then(make, () => {
        store.addEventListener(event, look);
        this.unreachable();
      });
    };
    store.addEventListener(event, look);
  }

  /** Parts that are fetched when the session first needs them. */
  #later() {
    const { store, connection } = this;
    this.#whenNeeded("session", () => store.session.id !== null, () => this.#inspect(), () => undefined);
    this.#whenNeeded("tree", () => store.nodes.some((node) => node.queued || node.paused), () => import("./composer/waiting_messages.js"),
      ({ WaitingMessages }) => new WaitingMessages(store, (type, fields) => this.attempt(connection.request(type, fields))));
    this.#whenNeeded("tree", () => store.nodes.some((node) => node.kind === "plan"), () => import("./dialogue/waiting_plan.js"),
      ({ WaitingPlan }) => new WaitingPlan(store, this.request));
    this.#whenNeeded("sessions", () => store.sessions.some((info) => info.source), () => import("./dialogue/branches.js"),
      ({ Branches }) => new Branches(store, this.open));
    store.addEventListener("tree", () => {
      if (this.#budget || store.past || store.used < MOST_USED) return;
      this.#budget = import("./composer/budget_bar.js").then(({ BudgetBar }) => new BudgetBar(store, (type, fields) => connection.request(type, fields), (text) => {
        this.open(null);
        this.composer.put(text);
      }, () => this.settings.show()), () => { this.#budget = undefined; });
    });
    part("replay-open").addEventListener("click", () => this.attempt(this.#look().then((it) => it.flip())));
    store.addEventListener("moved", () => this.attempt(this.#look()));
    store.addEventListener("session", () => {
      part("replay-open").hidden = store.session.id === null || store.session.readonly;
      if (store.session.readonly) this.attempt(this.#look());
    });
  }

  /** Handle clicks in the text of agents. @param {HTMLElement} dialogue */
  #inDialogue(dialogue) {
    dialogue.addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      // Each is in a record, and belongs to that record's agent.
      const entry = button?.closest(".entry");
      const path = entry instanceof HTMLElement ? entry.dataset.agent : undefined;
      if (!button) return;
      if (button.matches(".chip") && path) this.#showVariable(path, (button.textContent ?? "").slice(1));
      if (button.matches(".go-on") && path) this.#goOnWriting(path, button.dataset.say);
      if (button.matches(".show-all")) {
        this.attempt(import("./dialogue/full_text.js").then(({ showWhole }) => showWhole(button, (n) => this.connection.request("source", { n, plain: true }))));
      }
    });
  }

  // --- the connection

  /** @param {any} message */
  #take(message) {
    if (message.type !== "refused") return this.store.take(message);
    // Only the shown end of the session is available.
    if (message.code !== "locked") this.store.fail(heard(message.message));
    return this.#refused(new RequestError(message.code, heard(message.message)));
  }

  #hello() {
    this.connection.hello().catch((error) => this.#refused(error));
  }

  /** The requested session is not available. @param {RequestError} error */
  #refused(error) {
    const { store } = this;
    if (error.code === "locked" && !store.session.readonly) {
      const { id } = store.session;
      store.expect(id, true);
      this.attempt(this.connection.hello());
    } else {
      store.waitNoMore();
      const heading = { usage: t("This session does not exist."), journal: t("This session can't be read.") }[error.code];
      if (heading && store.session.id !== null) {
        this.#lost = store.session.id;
        showMissing(heading, error.message, () => this.open(null), () => part("sessions").click());
        return;
      }
    }
    this.composer.say(error.message, true);
  }

  /** @param {import("./state/connection.js").ConnectionState} state */
  #connectionState(state) {
    const words = { connecting: t("connecting"), open: t("connected"), silent: t("The server does not answer; waiting"), offline: t("Server not reachable, trying again"), refused: t("signed out") };
    part("connection").dataset.state = state === "refused" || state === "silent" ? "offline" : state;
    setText(part("connection-text"), words[state]);
    if (state === "open") this.#askForSessions();
    this.signIn.show(state === "refused");
  }

  /** Show the error of a request, if it fails. @param {Promise<unknown>} request */
  attempt(request) {
    request.catch((error) => this.composer.say(error.message, true));
  }

  /** Request the sessions, once for several changes. */
  #askForSessions() {
    if (this.#asking) return;
    this.#asking = true;
    setTimeout(() => {
      this.#asking = false;
      if (this.side.column) this.side.column.refresh();
      else this.connection.request("sessions", { limit: 50 }).catch(() => undefined);
    }, TOGETHER);
  }

  // --- navigation

  #writeAddress() {
    const { session, selected } = this.store;
    const fresh = this.#leaving !== null && session.id !== this.#leaving;
    if (fresh) this.#leaving = null;
    writeAddress({ session: session.id, path: selected, readonly: session.readonly }, fresh);
  }

  /** @param {string} path */
  choose(path) {
    this.store.select(path);
    this.drawers.close();
  }

  /**
   * Show a session, or a new one if `id` is null.
   * @param {string|null} id
   * @param {boolean} [readonly]
   * @param {{n: number, agent: string}} [place] a record to show there
   */
  #open(id, readonly = false, place = undefined) {
    const { store } = this;
    this.#goal = place && id !== null ? { id, ...place } : null;
    this.drawers.close();
    if (place && id === store.session.id && readonly === store.session.readonly) {
      this.#reach();
      return;
    }
    writeAddress({ session: id, path: "/", readonly }, true);
    store.expect(id, readonly);
    store.select("/");
    this.#hello();
    if (!readonly) this.composer.focus();
  }

  /** Go to the requested place, if its records have arrived. */
  #reveal() {
    const { store } = this;
    const goal = this.#goal;
    if (!goal || store.session.id !== goal.id || store.last < Math.max(goal.n, store.session.last) || goal.n < store.first) return;
    this.#goal = null;
    this.#show(goal.agent, goal.n);
  }

  /**
   * Show a record in its agent's dialogue. Returns its entry.
   * @param {string} agent
   * @param {number} n
   * @returns {Promise<Element|null>}
   */
  async #show(agent, n) {
    this.choose(agent);
    await frame();
    await frame();
    this.dialogue.reveal(n);
    return part("dialogue").querySelector(".entry.flash");
  }

  async #showSearch() {
    try {
      this.#fetchingSearch ??= Promise.all([import("./dialogue/search.js"), styled("sessions")])
        .then(([{ Search }]) => new Search(this.store, this.ask, (agent, n) => this.#show(agent, n)));
      this.#search = await this.#fetchingSearch;
      this.#search.show();
    } catch {
      this.#fetchingSearch = undefined;
      this.unreachable();
    }
  }

  #inspect() {
    this.#inspector ??= import("./agents/inspector.js").then(({ Inspector }) => new Inspector(this.store, this.ask, (n) => {
      this.drawers.close();
      const record = this.store.record(n);
      if (record) this.choose(record.agent);
      requestAnimationFrame(() => requestAnimationFrame(() => this.dialogue.reveal(n)));
    }, (path, name) => this.#showVariable(path, name), { open: this.openFile, fetch: this.fetchFile }));
    this.#inspector.catch(() => { this.#inspector = undefined; });
    return this.#inspector;
  }

  #look() {
    this.#replay ??= import("./sessions/replay.js").then(({ Replay }) =>
      new Replay(this.store, (at) => this.connection.request("seek", { at }), () => this.composer.focus(), () => this.#goOn()));
    return this.#replay;
  }

  /** Go from a stored session to a live one: the running session, a new one, or for a foreign session, an adopted copy. */
  #goOn() {
    const { session } = this.store;
    if (session.foreign) this.attempt(this.#leave("adopt", { at: null }));
    else this.open(session.example ? null : session.id);
  }

  /**
   * Send a message in a fork of the shown session. The server and the page continue with the fork.
   * @param {string} text
   * @param {boolean} [run] whether calls that were running or waiting there are carried out
   */
  #fork(text, run = false) {
    return this.#leave("fork", { at: this.store.shown, text, run });
  }

  /**
   * Let the server make another session from the shown one, and continue with that.
   * @template {"fork"|"adopt"} T
   * @param {T} type
   * @param {import("./state/types.d.ts").Fields<T>} fields
   */
  async #leave(type, fields) {
    this.#leaving = this.store.session.id;
    try {
      await this.connection.request(type, fields);
      this.store.select("/");
    } catch (error) {
      this.#leaving = null;
      throw error;
    }
  }

  // --- files, variables, plans, first messages

  /**
   * @param {string} path
   * @param {string} name
   */
  async #showVariable(path, name) {
    this.#variables ??= import("./agents/variables.js").then(({ VariableDialog }) => new VariableDialog(this.ask,
      (agent, one) => this.fetchFile("download", { path: agent, name: one }),
      (agent, one, digest) => this.connection.request("declassify", { path: agent, name: one, digest }), this.pictures));
    await (await this.#variables).show(path, name);
  }

  /**
   * @param {string} path
   * @param {{at?: number|null, since?: number}} [options]
   */
  #openFile(path, options = {}) {
    this.#viewer ??= import("./files/viewer.js").then(({ FileDialog }) =>
      new FileDialog(this.store, this.ask, this.pictures, { fetch: this.fetchFile, mention: (one) => this.#mention(one) }));
    this.attempt(this.#viewer.then((dialog) => dialog.open(path, options)));
  }

  /**
   * Turn names of workspace files in a text into links.
   * @param {Element} body
   * @param {number} n
   */
  #mark(body, n) {
    if (!/\w[./]\w/.test(body.textContent ?? "") && !body.querySelector(":not(pre) > code")) return;
    this.#mentions ??= import("./dialogue/mentions.js").then(({ Mentions }) => new Mentions(this.ask, this.embeds, this.openFile));
    this.attempt(this.#mentions.then((made) => made.mark(body, n)));
  }

  /** Put the path of a file into the message field, at the caret. @param {string} path */
  #mention(path) {
    const field = /** @type {HTMLTextAreaElement} */ (part("text"));
    const { selectionStart, selectionEnd, value } = field;
    const before = /\S$/.test(value.slice(0, selectionStart)) ? " " : "";
    field.setRangeText(`${before}\`${path}\` `, selectionStart, selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    this.drawers.close();
    this.composer.focus();
  }

  /**
   * Show the variable that contains the result of record `n`.
   * @param {string} path
   * @param {number} n
   */
  async #openResult(path, n) {
    const { list } = await this.connection.request("variables", { path, at: n });
    const made = this.store.record(n)?.function;
    const found = list.find((/** @type {import("./state/types.d.ts").Variable} */ one) => one.origin === made);
    if (found) await this.#showVariable(path, found.name);
    else this.composer.say(t("This is not a variable."), true);
  }

  /** Continue a reply that was cut off, or work that a limit ended. @param {string} path @param {string} [text] */
  #goOnWriting(path, text = t("Continue exactly where you were cut off.")) {
    if (this.store.past) return;
    this.attempt(path === "/" ? this.connection.request("say", { text }) : this.connection.request("inject", { path, text, mode: "queue" }));
  }

  /**
   * Run a saved plan, after the user has given the values that it needs. It waits until it is reviewed and started.
   * @param {import("./settings/commands.js").SavedPlan} plan
   */
  async #runPlan({ name, template }) {
    const run = async (/** @type {Record<string, string>} */ values) => {
      const { path } = await this.connection.request("plan.run", { name, values, plan_first: true });
      this.choose(path);
    };
    if (!template?.parameters.length) return run({});
    const [{ askValues }] = await Promise.all([import("./plans/template.js"), styled("settings")]);
    askValues(template, run);
  }

  /** Ask for the saved plans. */
  async #askForPlans() {
    const { list, templates } = await this.connection.request("plans");
    const known = new Map(templates.map((template) => [template.name, template]));
    this.plans.splice(0, this.plans.length, ...list.map((name) => ({ name, template: known.get(name) })));
  }

  /** Save a text as a first message. @param {string} text */
  async #keepFirst(text) {
    await this.#changeFirst("first.keep", { name: snippet(text) || text.trim().slice(0, 60), text });
    this.composer.say(t("Saved. You can choose it when you begin a session."));
  }

  /**
   * Save or forget a first message.
   * @template {"first.keep"|"first.forget"} T
   * @param {T} type
   * @param {import("./state/types.d.ts").Fields<T>} fields
   */
  async #changeFirst(type, fields) {
    await this.connection.request(type, fields);
    this.store.keep((await this.connection.request("first")).list);
  }
}

function frame() {
  return new Promise((resolve) => { requestAnimationFrame(resolve); });
}

/** Let the store expect the session in the browser's address. @param {Store} store */
function addressed(store) {
  const { session, path, readonly } = readAddress();
  store.expect(session, readonly);
  store.selected = path;
  return store;
}
