// The state of the page: a projection of records and of transient news. Views listen; only the store writes.
//
// If `at` is a number, the page shows the session as it was after that record. News is still taken in,
// and is shown when `at` is null again.
//
// The newest records of a session arrive first. The earlier ones follow, and are taken in in a few large pieces. Until
// then `whole` is false, and nothing may be shown that depends on all records.
//
// Old records arrive without HTML; `html` asks for it when one of them must be shown.
//
// Events: "session", "tree", "records", "earlier", "rendered", "live", "activity", "tick", "modules", "selected", "notice", "alert", "sessions", "examples", "reset", "moved", "you", "board".

import { firstLine, snippet } from "../base/format.js";
import { heard } from "../base/language.js";

/** @typedef {import("./types.d.ts").TreeNode} TreeNode */
/** @typedef {import("./types.d.ts").JournalRecord} JournalRecord */
/** @typedef {import("./types.d.ts").SessionFacts} SessionFacts */
/** @typedef {import("./types.d.ts").SessionInfo} SessionInfo */

const OUTPUT_KEPT = 60_000;
/** The largest number of records whose HTML is requested at once. */
const AT_ONCE = 200;
/** The number of records after the wanted ones that are requested with them. */
const AHEAD = 60;
/** Milliseconds until a refused request is repeated. */
const AGAIN = 1000;
const ENDS_A_DRAFT = new Set(["turn", "reply", "discard", "compress"]);

/** @type {TreeNode} */
const LONE_ROOT = {
  path: "/", name: "/", caller: "", kind: "agent", state: "idle", paused: false, doing: "", turns: 0, model: "",
  prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0, record: 0,
};

export class Store extends EventTarget {
  /** How often the user has opened a session. */ chosen = 0;
  /** @type {SessionFacts} */ session = { id: null, since: 0, intent: 1, levels: {}, model: "", journal: "", last: 0, readonly: false };
  /** All records that arrived, also those after `at`; their numbers have no gaps. @type {JournalRecord[]} */ records = [];
  /** Earlier records that arrived and are not taken in yet, in order. @type {JournalRecord[]} */ #before = [];
  /** Single earlier records that something still depends on, by number. @type {Map<number, JournalRecord>} */ #apart = new Map();
  /** How often the store was reset. */ #lives = 0;
  /** The record after which the session is shown; null for now. @type {number|null} */ at = null;
  /** @type {TreeNode[]} */ #now = [LONE_ROOT];
  /** @type {TreeNode[]} */ #then = [LONE_ROOT];
  /** The records of each agent, in order. @type {Map<string, JournalRecord[]>} */ #own = new Map();
  /** The record with which each agent began. @type {Map<string, JournalRecord>} */ #births = new Map();
  /** The sessions that changed last, and all that are pinned, open or waiting. @type {SessionInfo[]} */ sessions = [];
  /** The number of sessions; below, the number in the trash. */ total = 0;
  deleted = 0;
  /** Recorded sessions that come with the product. @type {import("../dialogue/welcome.js").Example[]} */ examples = [];
  /** First messages that the user saved. @type {import("../dialogue/welcome.js").FirstMessage[]} */ kept = [];
  /** The text that models are writing now, by agent. @type {Map<string, string>} */ drafts = new Map();
  /** The reasoning of models before they reply, by agent. @type {Map<string, string>} */ thoughts = new Map();
  /** What models do or wait for now, by agent. @type {Map<string, import("./types.d.ts").Activity>} */ activities = new Map();
  /** The milliseconds by which the server's clock is ahead of this one. */ #ahead = 0;
  /** The record with which each agent was last called. @type {Map<string, JournalRecord>} */ calls = new Map();
  /** The output of running tools, by the number of their `call` record.
   * @type {Map<number, {agent: string, text: string}>} */
  outputs = new Map();
  /** New wordings of messages that were changed before they were read, by the message's number. @type {Map<number, JournalRecord>} */ rewordings = new Map();
  /** The record in which an input was read, by the input's number. @type {Map<number, number>} */ receipts = new Map();
  /** The session that was requested last, until the server begins to send it.
   * @type {{id: string|null, readonly: boolean}|null} */
  #awaited = null;
  /** Questions that wait for a person, by the number of the record that asks. @type {Map<number, JournalRecord>} */ asked = new Map();
  /** Requests the HTML of records from the server. @type {(numbers: number[]) => Promise<{list: any[]}>} */
  fetchHtml = async () => ({ list: [] });
  /** Requests the HTML of what an agent is writing. @type {import("../dialogue/draft.js").Format} */
  format = async () => ({ closed: 0, html: "", open: "" });
  /** The numbers of records whose HTML is wanted, and below, of those for which it was requested. @type {Set<number>} */ #wanted = new Set();
  /** @type {Set<number>} */ #asked = new Set();
  /** Whether every call is denied. */ locked = false;
  /** The newest record after which the files may have changed. */ ended = 0;
  /** The number of running modules. */ modules = 0;
  /** The session's tokens. @type {import("./types.d.ts").Budget|undefined} */ budget;
  /** The records that must be drawn again. @type {number[]} */ redrawn = [];
  notice = "";
  /** The user, on a server with several users. @type {import("./wire.d.ts").YouNews|undefined} */ you;
  /** How far the small model on board is. @type {import("./wire.d.ts").BoardNews|undefined} */ board;
  /** What ended the session, if it ended. */ alert = "";
  selected = "/";

  /** The tree as it is shown. */
  get nodes() {
    return this.at === null ? this.#now : this.#then;
  }

  /** Whether nothing can be changed from here, because the session is stored or looked back at. */
  get past() {
    return this.at !== null || this.session.readonly;
  }

  /** The number of records up to the shown moment; record numbers begin at 1. */
  get count() {
    return Math.min(this.shown, this.last);
  }

  /** The number of the oldest record from which all later ones are here. */
  get first() {
    return this.records[0]?.n ?? 1;
  }

  /** The number from which the server has sent all records up to `last`. */
  get reached() {
    return this.#before[0]?.n ?? this.first;
  }

  /** Whether the whole session is here, from its first record. */
  get whole() {
    return this.records.length ? this.first === 1 : !this.session.last && !this.#awaited?.id;
  }

  /** The number of the last shown record. */
  get shown() {
    return this.at ?? this.last;
  }

  /** The number of the newest record here. */
  get last() {
    return this.records.length ? this.records[this.records.length - 1].n : 0;
  }

  /** The record with number `n`: numbers have no gaps. @param {number} n @returns {JournalRecord|undefined} */
  record(n) {
    return this.records[n - this.first] ?? this.#apart.get(n);
  }

  /** The shown records of an agent. @param {string} path */
  own(path) {
    const all = this.#own.get(path) ?? [];
    return this.at === null ? all : all.slice(0, countUpTo(all, this.at));
  }

  /** Whether a record has its HTML. Requests it if not. @param {JournalRecord|undefined} record */
  rendered(record) {
    if (!record || record.html !== undefined) return true;
    if (!this.#asked.has(record.n) && !this.#wanted.has(record.n)) {
      if (!this.#wanted.size) queueMicrotask(() => this.#fetch());
      this.#wanted.add(record.n);
    }
    return false;
  }

  async #fetch() {
    if (!this.#wanted.size) return;
    // The following records will probably be wanted next, so that a replay does not have to ask at every step.
    const newest = Math.max(...this.#wanted);
    for (let n = newest + 1; n <= newest + AHEAD; n += 1) {
      const next = this.record(n);
      if (next && next.html === undefined && !this.#asked.has(n)) this.#wanted.add(n);
    }
    const numbers = [...this.#wanted].slice(0, AT_ONCE);
    for (const n of numbers) {
      this.#wanted.delete(n);
      this.#asked.add(n);
    }
    if (this.#wanted.size) queueMicrotask(() => this.#fetch());
    const life = this.#lives;
    try {
      const { list } = await this.fetchHtml(numbers);
      if (life !== this.#lives) return;
      for (const { n, html, messages } of list) Object.assign(this.record(n) ?? {}, messages ? { html, messages } : { html });
      this.#tell("rendered");
    } catch {
      // Refused because there were too many requests, or the connection was lost. Views that still show these records ask again.
      setTimeout(() => this.#tell("rendered"), AGAIN);
    } finally {
      for (const n of numbers) this.#asked.delete(n);
    }
  }

  /** The `spawn` or `open` record of an agent. @param {string} path */
  birth(path) {
    return this.#births.get(path);
  }

  /** The record in which an input was read, if it was read by the shown moment. @param {number} n */
  readAt(n) {
    const read = this.receipts.get(n);
    return read !== undefined && read <= this.shown ? read : undefined;
  }

  /** Show the session as it was after record `at`; null for as it is now. @param {number|null} at */
  move(at) {
    if (at === this.at) return;
    if (this.at === null) this.#then = this.#now;
    this.at = at;
    this.#tell("moved");
    if (at === null) this.#tell("tree");
  }

  /** @param {string} path */
  node(path) {
    return this.nodes.find((node) => node.path === path);
  }

  /** @param {string} path */
  select(path) {
    if (path === this.selected) return;
    this.selected = path;
    this.#tell("selected");
  }

  /**
   * Forget the shown session and expect another.
   * @param {string|null} id
   * @param {boolean} [readonly]
   */
  expect(id, readonly = false) {
    this.chosen += 1;
    this.#reset();
    this.#awaited = { id, readonly };
    this.session = { ...this.session, id, since: 0, journal: "", last: 0, readonly };
    this.#tell("session");
  }

  /** Take the user's first messages. @param {import("../dialogue/welcome.js").FirstMessage[]} list */
  keep(list) {
    this.kept = list;
    this.#tell("examples");
  }

  /** @param {import("../dialogue/welcome.js").Example[]} list */
  offer(list) {
    this.examples = list;
    this.#tell("examples");
  }

  /** The expected session will not come; accept any. */
  waitNoMore() {
    this.#awaited = null;
  }

  /** Take in a message of the server. @param {any} message */
  take(message) {
    if (this.#stale(message)) return;
    switch (message.type) {
      case "session": this.#session(message); break;
      case "tree": this.#tree(message); break;
      case "record": this.#records([message]); break;
      case "rendered": this.#again(message.list); break;
      case "records": this.#several(message); break;
      case "delta": this.#delta(message); break;
      case "activity": this.#activity(message); break;
      case "output": this.#output(message); break;
      case "notice": this.#notice(message); break;
      case "sessions": this.#sessions(message); break;
      case "standing": this.#standing(message); break;
      case "you": this.#you(message); break;
      case "board": this.#board(message); break;
    }
  }

  /** @param {import("./wire.d.ts").YouNews} message */
  #you(message) {
    this.you = message;
    this.#tell("you");
  }

  /** @param {import("./wire.d.ts").BoardNews} message */
  #board(message) {
    this.board = message;
    this.#tell("board");
  }

  /** @param {{list: SessionInfo[], total?: number, deleted?: number}} message */
  #sessions({ list, total = list.length, deleted = 0 }) {
    Object.assign(this, { sessions: list, total, deleted });
    this.#tell("sessions");
  }

  /** A session changed. Without a state, or if it is not known here, the list must be requested again.
   * @param {{session: string, state?: SessionInfo["state"], since?: string, what?: string}} message */
  #standing({ session, state, since = "", what = "" }) {
    const index = this.sessions.findIndex((info) => info.id === session);
    if (index >= 0 && state) {
      const sessions = [...this.sessions];
      sessions[index] = { ...sessions[index], open: true, state, since, what };
      this.sessions = sessions;
      this.#tell("sessions");
    }
    if (index < 0 || !state || state === "idle" || state === "failed") this.#tell("stale");
  }

  /** Whether a message is still about the previously shown session. @param {any} message */
  #stale(message) {
    if (this.#awaited === null || message.type === "notice" || message.type === "sessions" || message.type === "standing" || message.type === "you" || message.type === "board") return false;
    const { id, readonly } = this.#awaited;
    // A foreign session is shown read-only, even if it was meant to be continued.
    // So is a session that another user has shared for viewing.
    const expected = message.foreign || message.role || Boolean(message.readonly) === readonly;
    if (message.type !== "session" || message.id !== id || !expected) return true;
    this.#awaited = null;
    return false;
  }

  /** @param {any} message */
  #session(message) {
    if (message.id !== this.session.id && this.session.id !== null) this.#reset();
    if (message.since < this.last) this.#reset();
    if (message.now) this.#ahead = Date.parse(message.now) - Date.now();
    this.activities.clear();  // the present ones arrive next
    if (this.alert) {
      this.alert = "";  // if it still applies, it arrives again
      this.#tell("alert");
    }
    // The state of its agents is not known before it is read.
    if (message.opening) {
      this.#now = [{ ...LONE_ROOT, state: "opening" }];
      message.model = "";
      this.#tell("tree");
    }
    this.session = { ...this.session, journal: "", last: 0, readonly: false, example: false, foreign: "", opening: false, ...message, model: heard(message.model ?? this.session.model) };
    this.#tell("session");
  }

  /** The share of its tokens or money that the session has used; 1 if too little is left for another turn. */
  get used() {
    const { tokens = 0, used = 0, exhausted = false, cost = 0, money = 0 } = this.budget ?? {};
    return exhausted ? 1 : Math.max(tokens && used / tokens, money && cost / money);
  }

  /** A tree with `at` answers a move; it is dropped if the page has moved elsewhere in the meantime.
   * @param {{nodes: TreeNode[], at?: number|null, modules?: number, lockdown?: boolean, budget?: import("./types.d.ts").Budget}} message */
  #tree({ nodes, at = null, modules = 0, lockdown, budget }) {
    const tree = nodes.length ? nodes : [LONE_ROOT];
    if (at === null) {
      this.#now = tree;
      this.modules = modules;
      this.locked = lockdown ?? this.locked;
      this.budget = budget;
    } else if (at === this.at) {
      this.#then = tree;
    }
    if (at === this.at) this.#tell("tree");
  }

  /** @param {{text: string, level?: string}} message */
  #notice({ text, level }) {
    if (level === "error") {
      this.alert = heard(text);
      this.#tell("alert");
    } else {
      this.notice = heard(text);
      this.#tell("notice");
    }
  }

  /** Announce records that arrived together once. @param {JournalRecord[]} list */
  #records(list) {
    for (const record of list) this.#record(record);
    this.#tell("records");
  }

  /** Several records: the newest of a session, or records before those that are here.
   * @param {{list: JournalRecord[], apart?: JournalRecord[]}} message */
  #several({ list, apart = [] }) {
    for (const record of apart) if (!this.#apart.has(record.n)) this.#apart.set(record.n, shorten(record));
    if (this.records.length && list.length && list[0].n < this.first) {
      this.#earlier(list);
      return;
    }
    for (const record of list) this.#record(record);
    if (apart.length) this.#foldAll();
    this.#tell("records");
  }

  /** Records get new HTML, now that more is known. @param {{n: number, html: string, messages?: any[]}[]} list */
  #again(list) {
    for (const { n, ...fields } of list) Object.assign(this.record(n) ?? {}, fields);
    this.redrawn = list.map(({ n }) => n);
    this.#tell("redrawn");
    this.#tell("rendered");
  }

  /** The session whose end is shown can't be opened. @param {string} why */
  fail(why) {
    this.session = { ...this.session, opening: false };
    this.#now = [{ ...LONE_ROOT, state: "failed" }];
    this.alert = why;
    for (const what of ["session", "tree", "alert"]) this.#tell(what);
  }

  /**
   * Take in earlier records, when they at least double the number of records here. So however long a session
   * is, each record is read only a few times.
   * @param {JournalRecord[]} list
   */
  #earlier(list) {
    const until = this.#before[0]?.n ?? this.first;
    const fresh = list.filter(({ n }) => n < until).map((record) => this.#apart.get(record.n) ?? shorten(record));
    if (!fresh.length) return;
    this.#before = fresh.concat(this.#before);
    if (this.#before[0].n > 1 && this.#before.length < this.records.length) return;
    this.records = this.#before.concat(this.records);
    this.#before = [];
    this.#foldAll();
    this.#tell("earlier");
    this.#tell("records");
  }

  /** Compute again what follows from all records here. */
  #foldAll() {
    const printed = this.outputs;
    for (const known of [this.#own, this.#births, this.calls, this.receipts, this.rewordings, this.asked]) known.clear();
    this.outputs = new Map();
    const { locked } = this;
    for (const [n, record] of this.#apart) {
      if (n < this.first) this.#fold(record);
      else this.#apart.delete(n);
    }
    for (const record of this.records) this.#fold(record);
    this.locked = locked;  // the tree reported it
    for (const [call, output] of this.outputs) output.text = printed.get(call)?.text ?? "";
  }

  /** @param {JournalRecord} record */
  #record(record) {
    if (record.n <= this.last) return;
    if (ENDS_A_DRAFT.has(record.kind)) {
      this.drafts.delete(record.agent);
      this.thoughts.delete(record.agent);
    }
    if (record.kind === "module") this.#tell("modules");
    if (record.kind === "effects" || record.kind === "settle") this.#tell("review");
    this.records.push(shorten(record));
    this.#fold(record);
  }

  /** Take in what follows from a record and the records before it. @param {JournalRecord} record */
  #fold(record) {
    if (record.kind === "call" && record.to) this.calls.set(record.to, record);
    this.#running(record);
    this.#questions(record);
    if (record.kind === "control" && record.op === "lockdown") this.locked = record.value === true;
    if (record.kind === "result" || (record.kind === "control" && record.op === "restore")) this.ended = record.n;
    for (const taken of record.took ?? []) this.receipts.set(taken, record.n);
    this.#rewords(record);
    const own = this.#own.get(record.agent);
    if (own) own.push(record);
    else this.#own.set(record.agent, [record]);
    if (record.kind === "spawn" || record.kind === "open") this.#births.set(record.agent, record);
  }

  /** A message gets a new wording. @param {JournalRecord} record */
  #rewords(record) {
    const before = record.kind === "control" && record.op === "reword" ? this.record(record.of) : undefined;
    if (!before || record.kind !== "control") return;
    before.said = record.said ?? record.body;
    this.rewordings.set(before.n, record);
  }

  /** A called function is shown as running until its result or its agent's reply arrives. @param {JournalRecord} record */
  #running(record) {
    if (record.kind === "call" && record.function !== "CALL" && !record.to) {
      this.outputs.set(record.n, { agent: record.agent, text: "" });
    } else if (record.kind === "result" && record.call) {
      this.outputs.delete(record.call);
    } else if (record.kind === "reply") {
      for (const [call, { agent }] of this.outputs) if (agent === record.agent) this.outputs.delete(call);
    }
  }

  /** A question is shown until it is answered, or until its call or its agent ends. @param {JournalRecord} record */
  #questions(record) {
    if (record.kind === "clearance" && record.params !== undefined) {
      if (record.to !== "endpoint") this.asked.set(record.n, record);
      return;
    }
    if ((record.kind === "host" || record.kind === "form") && record.op === "ask") this.asked.set(record.n, record);
    if (record.ask !== undefined) this.asked.delete(record.ask);
    if (record.kind !== "result" && record.kind !== "reply") return;
    for (const [n, { agent, turn, action, kind }] of this.asked) {
      if (kind === "host" || kind === "form") continue; // each of these gets an answer, however its call ends
      const same = record.kind === "reply" || (record.turn === turn && record.action === action);
      if (agent === record.agent && same) this.asked.delete(n);
    }
  }

  /** @param {{agent: string, text: string, restart?: boolean, thought?: boolean}} delta */
  #delta({ agent, text, restart, thought }) {
    if (restart) this.thoughts.delete(agent);
    const texts = thought ? this.thoughts : this.drafts;
    texts.set(agent, (restart ? "" : (texts.get(agent) ?? "")) + text);
    this.#tell("live");
  }

  /** @param {import("./types.d.ts").Activity} activity */
  #activity(activity) {
    if (activity.state) this.activities.set(activity.agent, activity);
    else this.activities.delete(activity.agent);
    this.#tell("activity");
  }

  /** The server's time, in milliseconds. */
  now() {
    return Date.now() + this.#ahead;
  }

  /** Update once a second. */
  tick() {
    this.#tell("tick");
  }

  /** @param {{agent: string, call: number, text: string}} output */
  #output({ agent, call, text }) {
    const before = this.outputs.get(call)?.text ?? "";
    this.outputs.set(call, { agent, text: (before + text).slice(-OUTPUT_KEPT) });
    this.#tell("live");
  }

  #reset() {
    this.records = [];
    this.#before = [];
    this.#apart.clear();
    this.#lives += 1;
    this.at = null;
    this.#own.clear();
    this.#births.clear();
    this.drafts.clear();
    this.thoughts.clear();
    this.activities.clear();
    this.calls.clear();
    this.outputs.clear();
    this.receipts.clear();
    this.rewordings.clear();
    this.asked.clear();
    this.locked = false;
    this.ended = 0;
    this.modules = 0;
    this.budget = undefined;
    this.#wanted.clear();
    this.#asked.clear();
    this.#now = this.#then = [LONE_ROOT];
    this.notice = this.alert = "";
    this.#tell("reset");
    this.#tell("alert");
  }

  /** @param {string} what */
  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}

/**
 * Keep the part of a record's text that views show; of a person's message, keep everything.
 * @param {JournalRecord} record
 */
function shorten(record) {
  const spoken = record.kind === "say" || (record.kind === "control" && (record.op === "inject" || record.op === "reword"));
  if (spoken && (!record.body_size || record.op === "reword")) record.said = record.body;
  record.body = record.kind === "say" || record.kind === "control" ? firstLine(record.body) : snippet(record.body);
  return record;
}

/**
 * The number of `records` (in order) whose number is at most `n`.
 * @param {{n: number}[]} records
 * @param {number} n
 */
export function countUpTo(records, n) {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (records[middle].n <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}
