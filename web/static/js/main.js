// Wires the page: the line to the server, the store, the views, and the address (#SESSION/agent/path, or
// #replay:SESSION/agent/path for a stored session that is only looked at).

import { Approvals } from "./approvals.js";
import { showMissing, SignIn } from "./astray.js";
import { Attention } from "./attention.js";
import { Composer } from "./composer.js";
import { Connection, RequestError } from "./connection.js";
import { controls } from "./controls.js";
import { Dialogue } from "./dialogue.js";
import { icon, onceAFrame, part, setText, styled } from "./dom.js";
import { agentName, snippet, stateName } from "./format.js";
import { download, Files } from "./files.js";
import { Inspector } from "./inspector.js";
import { heard, t } from "./language.js";
import { lazily } from "./lazy.js";
import { endedAs, LiveLine } from "./live.js";
import { showLevels } from "./levels.js";
import { Pictures } from "./pictures.js";
import { ReviewBar } from "./review_bar.js";
import { Side } from "./side.js";
import { Store } from "./store.js";
import { Tree } from "./tree.js";
import { Ways } from "./ways.js";

/** Milliseconds until a session that stopped is asked for again: the server goes on with it once it can. */
const RECOVERY = 3000;
const LINE_WORDS = { connecting: t("connecting"), open: t("connected"), offline: t("offline, trying again"), refused: t("signed out") };

const store = new Store();
/** @type {string[]} */ const kept = [];
const address = readAddress();
store.expect(address.session, address.readonly);
store.selected = address.path;
/** The session that a fork leads away from: the address of the fork is a new place to come back from.
 * @type {string|null} */
let leaving = null;

const connection = new Connection({
  hello: () => store.session.readonly
    ? ["open", { journal: store.session.id, ...has() }]
    : ["hello", { session: store.session.id, ...has() }],
  refused,
  message: (message) => {
    if (message.type !== "refused") return store.take(message);
    // What was shown of a session's end is all that can be had of it.
    if (message.code !== "locked") store.fail(heard(message.message));
    return refused(new RequestError(message.code, heard(message.message)));
  },
  state: showLine,
});

/** What the page has of the session, and wants of it first. */
function has() {
  return { since: store.last, first: store.reached, path: store.selected, lazy: true };
}

const signIn = new SignIn(() => connection.open());

/** @type {import("./controls.js").Actions} */
const actions = {
  toggle: (node) => attempt(connection.request(node.paused ? "resume" : "pause", { path: node.path })),
  cancel: (node) => attempt(connection.request("cancel", { path: node.path })),
  inject: (node) => {
    choose(node.path);
    composer.focus();
  },
};

const ways = new Ways(store, (text) => connection.request("foresee", { text }));
const composer = new Composer(store, (path, text, mode, calls) => {
  if (mode === "fork" || mode === "run") return fork(text, mode === "run");
  return mode === "say" ? connection.request("say", { text, ...ways.way }) : connection.request("inject", { path, text, mode, calls });
}, ways, actions.cancel);
// Fetched with the first message that waits, or the first pause.
const waits = () => {
  if (!store.nodes.some((node) => node.queued || node.paused)) return;
  store.removeEventListener("tree", waits);
  import("./queue.js").then(({ Queue }) => new Queue(store, (type, fields) => attempt(connection.request(type, fields))));
};
store.addEventListener("tree", waits);
// Fetched with the first session that was branched off another.
const branched = () => {
  if (!store.sessions.some((info) => info.source)) return;
  store.removeEventListener("sessions", branched);
  import("./branches.js").then(({ Branches }) => new Branches(store, openSession));
};
store.addEventListener("sessions", branched);
store.fetchHtml = (/** @type {number[]} */ numbers) => connection.request("render", { numbers });
/** @type {import("./inspector.js").Ask} */
const ask = (type, fields) => connection.request(type, { at: store.at, ...fields });
const pictures = new Pictures(ask, () => store.session.id);
const openExample = (/** @type {string} */ id) => openSession(id, true);
const dialogue = new Dialogue(store, { suggest: (text) => composer.put(text), explain: () => settings.show(), open: openExample, forget: (name) => attempt(changeFirst("first.forget", { name })), choose }, (record) => {
  store.move(record.n - 1);
  composer.put(record.said ?? "");
}, pictures, mark, {
  source: (n) => connection.request("source", { n }).then(({ text }) => text),
  again: (record) => {
    store.move(record.n - 1);
    attempt(fork(record.said ?? ""));
  },
  open: (path, n) => attempt(openResult(path, n)),
});
const fetchFile = (/** @type {string} */ type, /** @type {Record<string, unknown>} */ fields) =>
  attempt(ask(type, fields).then(({ href }) => download(href)));
/** Most visits look into no variable. @type {Promise<import("./variables.js").VariableDialog>|undefined} */ let variables;
const variable = {
  show: async (/** @type {string} */ path, /** @type {string} */ name) => {
    variables ??= import("./variables.js").then(({ VariableDialog }) => new VariableDialog(ask,
      (agent, one) => fetchFile("download", { path: agent, name: one }),
      (agent, one) => connection.request("declassify", { path: agent, name: one }), pictures));
    await (await variables).show(path, name);
  },
};
/** Fetched with the first file that is opened. @type {Promise<import("./viewer.js").FileDialog>|undefined} */
let viewer;
const openFile = (/** @type {string} */ path, /** @type {{at?: number|null, since?: number}} */ options = {}) => {
  viewer ??= import("./viewer.js").then(({ FileDialog }) => new FileDialog(store, ask, pictures, { fetch: fetchFile, mention }));
  attempt(viewer.then((dialog) => dialog.open(path, options)));
};
/** Fetched with the first text that may name a file. @type {Promise<import("./mentions.js").Mentions>|undefined} */
let mentions;
new LiveLine(store, actions.cancel);
new Tree(store, actions, choose);
const inspector = new Inspector(store, ask, (n) => {
  closeDrawers();
  const record = store.record(n);
  if (record) choose(record.agent);
  requestAnimationFrame(() => requestAnimationFrame(() => dialogue.reveal(n)));
}, (path, name) => variable.show(path, name), { open: openFile, fetch: fetchFile });
const approvals = new Approvals(store, (call, allow, remember, why, lasts) => connection.request("clear", { call, allow, remember, ...(why && { why }), ...(lasts && { for: lasts }) }), choose);
part("replay-open").append(icon("history"));
part("palette-open").append(icon("commands"));
part("more-open").append(icon("more"));
part("attach").append(icon("attach"));
const files = new Files(connection, (text, bad) => composer.say(text, bad), () => !store.past);
/** @type {(type: string, fields?: Record<string, unknown>) => Promise<any>} */
const request = (type, fields) => connection.request(type, fields);
const unreachable = () => composer.say(t("Not connected; try again in a moment."), true);
const memories = lazily("memories-open", "memory", async () => new (await import("./memories.js")).MemoriesDialog(request), unreachable);
const modules = lazily("modules-open", "modules", async () => new (await import("./modules.js")).ModulesDialog(request), unreachable);
store.addEventListener("modules", onceAFrame(() => modules.made()?.changed()));
const review = new ReviewBar(store, request, unreachable);
const settings = lazily("settings-open", "settings", async () => new (await import("./settings.js")).SettingsDialog(request, () => void connection.hello().catch(refused)), unreachable);
/** @type {Promise<import("./replay.js").Replay>|undefined} */
let looking;
const look = () => looking ??= import("./replay.js").then(({ Replay }) => new Replay(store, (at) => connection.request("seek", { at }), () => composer.focus(), goOn));
const replay = { open: () => attempt(look().then((it) => it.open())) };
part("replay-open").addEventListener("click", () => attempt(look().then((it) => it.flip())));
store.addEventListener("moved", () => attempt(look()));
store.addEventListener("session", () => {
  part("replay-open").hidden = store.session.id === null || store.session.readonly;
  if (store.session.readonly) attempt(look());
});
const side = new Side(async () => {
  const [{ Sessions }, { notifySettings }] = await Promise.all([import("./sessions.js"), import("./notify.js")]);
  return new Sessions(store, request, { open: openSession, bring: (file) => files.bring(file), notify: notifySettings() });
}, unreachable);
new Attention(store, () => side.show(), openSession);

/** Ask for the sessions, once for several that changed. */
let asking = false;
function askForSessions() {
  if (asking) return;
  asking = true;
  setTimeout(() => {
    asking = false;
    if (side.column) side.column.refresh();
    else connection.request("sessions", { limit: 50 }).catch(() => undefined);
  }, 200);
}
store.addEventListener("stale", askForSessions);

/** A place that is to be shown as soon as its records are there. @type {{id: string, n: number, agent: string}|null} */
let goal = null;
const reach = onceAFrame(() => {
  if (!goal || store.session.id !== goal.id || store.last < Math.max(goal.n, store.session.last) || goal.n < store.first) return;
  const { agent, n } = goal;
  goal = null;
  reveal(agent, n);
});
for (const what of ["session", "records"]) store.addEventListener(what, reach);

/**
 * Show a record in its agent's dialogue; gives its entry.
 * @param {string} agent
 * @param {number} n
 * @returns {Promise<Element|null>}
 */
async function reveal(agent, n) {
  choose(agent);
  await frame();
  await frame();
  dialogue.reveal(n);
  return part("dialogue").querySelector(".entry.flash");
}

function frame() {
  return new Promise((resolve) => { requestAnimationFrame(resolve); });
}

/** @type {Promise<import("./find.js").Find>|undefined} */ let finding;
/** @type {import("./find.js").Find|undefined} */ let find;
async function showFind() {
  try {
    finding ??= Promise.all([import("./find.js"), styled("sessions")]).then(([{ Find }]) => new Find(store, ask, reveal));
    find = await finding;
    find.show();
  } catch {
    finding = undefined;
    unreachable();
  }
}
addEventListener("keydown", (event) => {
  const wanted = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "f";
  // Asked for again, it is the browser's own.
  if (!wanted || store.session.id === null || find?.focused || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  showFind();
});

// A chip in a dialogue stands in a record, whose agent has the variable.
part("dialogue").addEventListener("click", (event) => {
  const chip = event.target instanceof Element ? event.target.closest("button.chip") : null;
  const path = /** @type {HTMLElement|null|undefined} */ (chip?.closest(".entry"))?.dataset.agent;
  if (chip && path) variable.show(path, (chip.textContent ?? "").slice(1));
});

// A reply that was cut off is gone on with where it ended.
part("dialogue").addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.go-on") : null;
  const path = /** @type {HTMLElement|null|undefined} */ (button?.closest(".entry"))?.dataset.agent;
  if (!path || store.past) return;
  const text = t("Continue exactly where you were cut off.");
  attempt(path === "/" ? connection.request("say", { text }) : connection.request("inject", { path, text, mode: "queue" }));
});

// What is too long is shown in part, until a person wants all of it.
part("dialogue").addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.show-all") : null;
  if (button) attempt(import("./whole.js").then(({ showWhole }) => showWhole(button, (n) => connection.request("source", { n, plain: true }))));
});

/** Fetched with the first key that may stand for a command, or with the list of all.
 * @type {Promise<import("./palette.js").Palette>|undefined} */
let fetching;
/** @type {import("./palette.js").Palette|undefined} */ let palette;
/** @param {(palette: import("./palette.js").Palette) => void} then */
async function withPalette(then) {
  try {
    fetching ??= Promise.all([import("./palette.js"), import("./commands.js")]).then(([{ Palette }, { commandsOf }]) => new Palette(() => commandsOf(reachable), askForPlans));
    palette ??= await fetching;
  } catch {
    fetching = undefined;
    /** @type {HTMLDialogElement} */ (part("palette")).close();
    unreachable();
    return;
  }
  then(palette);
}
/** The dialog opens at once, and takes what is typed while its script comes. */
function openPalette() {
  const dialog = /** @type {HTMLDialogElement} */ (part("palette"));
  if (dialog.open) return;
  /** @type {HTMLInputElement} */ (part("palette-field")).value = "";
  dialog.showModal();
  let entered = false;
  const heard = (/** @type {KeyboardEvent} */ { key }) => { entered ||= key === "Enter"; };
  dialog.addEventListener("keydown", heard);
  withPalette((it) => {
    dialog.removeEventListener("keydown", heard);
    if (dialog.open) it.begin(entered);
  });
}
part("palette-open").addEventListener("click", openPalette);
addEventListener("keydown", (event) => {
  const list = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (list) event.preventDefault();
  if (list) openPalette();
  else if (!event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return;
  else if (palette) palette.shortcut(event);  // at once, so that the browser does nothing else with it
  else withPalette((it) => it.shortcut(event));
});
/** @type {import("./commands.js").Page} */
const reachable = {
  store, actions, choose, composer, inspector, approvals, replay, sessions: side, find: showFind, modules, memories, settings, files, review,
  open: openSession,
  lock: (value) => attempt(connection.request("lockdown", { value })),
  setIntent: (value) => attempt(connection.request("intent", { value })),
  exportPage: () => fetchFile("export", {}),
  plans: kept,
  keepFirst: (text) => attempt(changeFirst("first.keep", { name: snippet(text) || text.trim().slice(0, 60), text }).then(() => composer.say(t("Kept. It is offered when you begin a session.")))),
  runPlan: (name) => attempt(runPlan(name)),
};

/**
 * Let what a text names as files of the workspace open them.
 * @param {Element} body
 * @param {number} n
 */
function mark(body, n) {
  if (!/\w[./]\w/.test(body.textContent ?? "") && !body.querySelector(":not(pre) > code")) return;
  mentions ??= import("./mentions.js").then(({ Mentions }) => new Mentions(ask, pictures, openFile));
  attempt(mentions.then((made) => made.mark(body, n)));
}

/** Put the path of a file into the message field, where the caret is. @param {string} path */
function mention(path) {
  const field = /** @type {HTMLTextAreaElement} */ (part("text"));
  const { selectionStart, selectionEnd, value } = field;
  const before = /\S$/.test(value.slice(0, selectionStart)) ? " " : "";
  field.setRangeText(`${before}\`${path}\` `, selectionStart, selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  closeDrawers();
  composer.focus();
}

/** Begin a plan that was kept; it waits until somebody has looked at it. @param {string} name */
async function runPlan(name) {
  const { path } = await connection.request("plan.run", { name, plan_first: true });
  choose(path);
}

/**
 * Keep or forget what sessions begin with.
 * @param {string} type
 * @param {Record<string, unknown>} fields
 */
async function changeFirst(type, fields) {
  await connection.request(type, fields);
  store.keep((await connection.request("first")).list);
}

/** Ask which plans are kept. */
async function askForPlans() {
  const { list } = await connection.request("plans");
  kept.splice(0, kept.length, ...list);
}

/**
 * Show the variable that holds the result of record `n`.
 * @param {string} path
 * @param {number} n
 */
async function openResult(path, n) {
  const { list } = await connection.request("variables", { path, at: n });
  const made = store.record(n)?.function;
  const found = list.find((/** @type {import("./types.js").Variable} */ one) => one.origin === made);
  if (found) await variable.show(path, found.name);
  else composer.say(t("This is not a variable."), true);
}

/**
 * Say something in a fork of what is shown; the server goes on with the fork, and so does the page.
 * @param {string} text
 * @param {boolean} [run] what was under way there is carried out, too
 */
async function fork(text, run = false) {
  leaving = store.session.id;
  try {
    await connection.request("fork", { at: store.shown, text, run });
    store.select("/");
  } catch (error) {
    leaving = null;
    throw error;
  }
}

/** From a stored session to one that goes on: the running one, a new one, or for a foreign one a session of one's own. */
function goOn() {
  const { session } = store;
  if (session.foreign) attempt(adopt());
  else openSession(session.example ? null : session.id);
}

/** The server makes a session of our own of the foreign one that is shown, and goes on with it; so does the page. */
async function adopt() {
  leaving = store.session.id;
  try {
    await connection.request("adopt", { at: null });
    store.select("/");
  } catch (error) {
    leaving = null;
    throw error;
  }
}

/** The session that the address names and that does not exist. @type {string|null|undefined} */
let lost;

/** The session that the page asked for can't be had. @param {import("./connection.js").RequestError} error */
function refused(error) {
  if (error.code === "locked" && !store.session.readonly) {
    const { id } = store.session;
    store.expect(id, true);
    attempt(connection.hello());
  } else {
    store.waitNoMore();
    if (error.code === "usage" && store.session.id !== null) {
      lost = store.session.id;
      showMissing(error.message, () => openSession(null), () => part("sessions").click());
      return;
    }
  }
  composer.say(error.message, true);
}

/** @returns {{session: string|null, path: string, readonly: boolean}} */
function readAddress() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const slash = hash.indexOf("/");
  const session = slash < 0 ? hash : hash.slice(0, slash);
  const readonly = session.startsWith("replay:");
  return { session: (readonly ? session.slice(7) : session) || null, path: slash < 0 ? "/" : hash.slice(slash), readonly };
}

function writeAddress() {
  const { session, selected } = store;
  const place = `${session.readonly ? "replay:" : ""}${encodeURIComponent(session.id ?? "")}`;
  const hash = session.id === null ? "" : `#${place}${selected === "/" ? "" : encodeURI(selected)}`;
  if (hash === location.hash) return;
  if (leaving !== null && session.id !== leaving) {
    leaving = null;
    history.pushState(null, "", `${location.pathname}${hash}`);
  } else {
    history.replaceState(null, "", `${location.pathname}${hash}`);
  }
}

/** @param {string} path */
function choose(path) {
  store.select(path);
  closeDrawers();
}

/**
 * @param {string|null} id
 * @param {boolean} [readonly]
 * @param {{n: number, agent: string}} [place] a record to be shown there
 */
function openSession(id, readonly = false, place = undefined) {
  goal = place && id !== null ? { id, ...place } : null;
  closeDrawers();
  if (place && id === store.session.id && readonly === store.session.readonly) {
    reach();
    return;
  }
  const hash = `#${readonly ? "replay:" : ""}${encodeURIComponent(id ?? "")}`;
  history.pushState(null, "", id === null ? location.pathname : hash);
  store.expect(id, readonly);
  store.select("/");
  connection.hello().catch(refused);
  if (!readonly) composer.focus();
}

// The address says which session is shown, so this link must not become part of it.
document.querySelector("a.skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  composer.focus();
});

addEventListener("popstate", () => {
  const { session, path, readonly } = readAddress();
  if (session !== store.session.id || readonly !== store.session.readonly) {
    store.expect(session, readonly);
    store.select(path);
    connection.hello().catch(refused);
  }
  store.select(path);
});

/** @param {Promise<unknown>} request */
function attempt(request) {
  request.catch((error) => composer.say(error.message, true));
}

// --- the bar and the dialogue's head

const head = controls(actions, { labels: true });
part("controls").append(head.element);

const showHead = onceAFrame(() => {
  const node = store.node(store.selected);
  setText(part("agent-name"), agentName(store.selected));
  const state = part("agent-state");
  const doing = node?.state === "paused" ? "" : (node?.doing ?? "");
  setText(state, doing.startsWith("waiting") ? "" : (node && endedAs(node)) || stateName(node?.state ?? ""));
  state.dataset.state = node?.state ?? "";
  state.dataset.ended = node?.ended ?? "";
  setText(part("agent-doing"), heard(doing));
  part("agent-name").classList.toggle("path", store.selected !== "/");
  part("controls").hidden = node === undefined || store.session.opening || store.session.id === null || store.past;
  if (node) head.update(node);
});
for (const what of ["tree", "selected", "session", "reset", "moved"]) store.addEventListener(what, showHead);
showHead();

const showTitle = onceAFrame(() => {
  const first = store.whole ? store.records.find((record) => record.kind === "say") : undefined;
  const info = store.sessions.find(({ id }) => id === store.session.id);
  const title = store.session.id === null ? t("New session") : ((info?.named || info?.source || !store.whole ? info?.title : first?.body) || t("Session"));
  setText(part("session-title"), title);
  const asking = store.asked.size ? `${t("({count} to approve)", { count: store.asked.size })} ` : "";
  const waiting = store.sessions.filter(({ id, state }) => state === "waits" && id !== store.session.id).length;
  const others = waiting ? `${t("({count} waiting)", { count: waiting })} ` : "";
  document.title = store.session.id === null ? `${others}iact` : `${asking}${others}${title} · iact`;
});
for (const what of ["session", "records", "reset", "sessions"]) store.addEventListener(what, showTitle);

store.addEventListener("session", () => {
  const { model, intent, levels } = store.session;
  // Where nothing was said yet, the dialogue itself says which model answers.
  part("model").hidden = !model || store.session.id === null;
  part("intent").hidden = Boolean(store.session.opening);
  part("model").title = model;
  // Its name; what else there is to say about it is said before the first message, and by the title.
  setText(part("model"), model.split(/[,;] /)[0]);
  showLevels(part("intent"), levels, intent);
  /** @type {HTMLFieldSetElement} */ (part("intent")).disabled = store.session.readonly;
  writeAddress();
});
store.addEventListener("selected", writeAddress);
// A server without the product around it has none, and says so.
store.addEventListener("session", () => connection.request("examples").then(({ list }) => store.offer(list), () => undefined), { once: true });
store.addEventListener("session", () => connection.request("first").then(({ list }) => store.keep(list), () => undefined), { once: true });
/** Fetched when most of a session's tokens are used. @type {Promise<unknown>|undefined} */
let budget;
store.addEventListener("tree", () => {
  const { budget: now, past } = store;
  if (budget || past || !now || now.used < 0.8 * now.tokens) return;
  budget = import("./budget.js").then(({ BudgetBar }) => new BudgetBar(store, (type, fields) => connection.request(type, fields), (text) => {
    openSession(null);
    composer.put(text);
  }, () => settings.show()), () => { budget = undefined; });
});
part("unlock").addEventListener("click", () => attempt(connection.request("lockdown", { value: false })));
const showLock = onceAFrame(() => {
  part("lockdown").hidden = !store.locked;
  part("unlock").hidden = store.past;
});
for (const what of ["records", "reset", "moved"]) store.addEventListener(what, showLock);
store.addEventListener("session", () => {
  if (lost === undefined || (store.session.id === lost && !store.records.length)) return;
  lost = undefined;
  showMissing(null, () => {}, () => {});
});
/** Asks again for a session that stopped for want of room on the disk. @type {ReturnType<typeof setTimeout>|undefined} */
let again;
store.addEventListener("alert", () => {
  clearTimeout(again);
  if (store.alert) again = setTimeout(() => connection.hello().catch(() => undefined), RECOVERY);
  part("alert").hidden = !store.alert;
  setText(part("alert"), store.alert);
});

part("intent").addEventListener("change", (event) => {
  const value = Number(/** @type {HTMLInputElement} */ (event.target).value);
  const before = store.session.intent;
  connection.request("intent", { value }).catch((error) => {
    composer.say(error.message, true);
    showLevels(part("intent"), store.session.levels, before);
  });
});

/** @param {import("./connection.js").LineState} state */
function showLine(state) {
  part("connection").dataset.state = state === "refused" ? "offline" : state;
  setText(part("connection-text"), LINE_WORDS[state]);
  if (state === "open") askForSessions();
  signIn.show(state === "refused");
}

// --- drawers on narrow screens

/** @type {NodeListOf<HTMLElement>} */
const openers = document.querySelectorAll("[data-drawer]");
const veil = part("veil");
for (const opener of openers) {
  const which = /** @type {"tree"|"inspector"} */ (opener.dataset.drawer);
  opener.append(icon(which));
  opener.addEventListener("click", () => {
    const pane = document.getElementById(`${which}-pane`);
    const open = !pane?.classList.contains("open");
    closeDrawers();
    pane?.classList.toggle("open", open);
    opener.setAttribute("aria-expanded", String(open));
    veil.hidden = !open;
  });
}
veil.addEventListener("click", closeDrawers);
addEventListener("keydown", (event) => {
  // In a dialog the key closes that alone.
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) closeDrawers();
});

function closeDrawers() {
  for (const pane of document.querySelectorAll(".pane.open")) pane.classList.remove("open");
  for (const opener of openers) opener.setAttribute("aria-expanded", "false");
  veil.hidden = true;
}

connection.open();
