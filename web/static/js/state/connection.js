// One websocket that reconnects automatically.
//
// After a loss it reports the session and the newest record of the page; the server sends the rest.
// Requests carry an id and are answered by `ok` or `error`. A request that was pending when the connection
// broke fails, and its caller keeps the text that the user typed.
//
// A tunnel, a sleeping laptop or a phone's network can swallow every byte and leave the connection open. So a silent
// server is asked whether it is there; without an answer, the connection is given up and made again.

import { bytes } from "../base/format.js";
import { heard, t } from "../base/language.js";

const FIRST_WAIT = 250;
const LONGEST_WAIT = 8000;
const HANDSHAKE = 8000;
/** Milliseconds between two looks at a connection. */
const LOOK = 2500;
/** After this many looks without a word from the server it is asked, … */
const ASKED = 2;
/** … after this many, the page says that there is no answer, … */
const TOLD = 3;
/** … and after this many, the connection is given up. Looks are counted, not time: while a laptop sleeps there are none. */
const GIVEN_UP = 5;
/** Milliseconds that a request may take on a connection that is alive, … */
const PATIENCE = 120_000;
/** … and those that build, load or search much. */
const LONG_PATIENCE = 1_800_000;
/** @type {ReadonlySet<string>} */
const LONG = new Set(["module.add", "module.approve", "everybody.module.add", "memory.rebuild", "session.import", "session.purge",
  "model.try", "model.board", "compress", "apply", "export", "audit.download", "upload.end"]);
/** The bytes of one message to the server, without a margin for its id; it leaves a client that sends more. */
const LONGEST = 255 * 1024;
/** Bytes of one piece of a file. The server tells of each, so on a slow line none may take longer than `GIVEN_UP`. */
export const PIECE = 64 * 1024;
/** How many bytes of a file may be on their way: sent, and not taken by the server. */
const UNDER_WAY = 4 * PIECE;

/** A request was refused or could not be sent. `code` is the server's, or "offline". */
export class RequestError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** @typedef {import("./wire.d.ts").Requests} Requests */
/** The types of requests. @typedef {keyof Requests} RequestType */
/** @template {RequestType} Type @typedef {Requests[Type]["fields"]} Fields */
/** Messages that the server sends unasked. @typedef {import("./wire.d.ts").News} News */

/**
 * @typedef {"connecting"|"open"|"silent"|"offline"|"refused"} ConnectionState
 * @typedef {{hello: () => ["hello", Fields<"hello">]|["open", Fields<"open">], message: (message: News) => void,
 *   state: (state: ConnectionState) => void, again: () => void, refused: (error: RequestError) => void}} Handlers
 */

export class Connection {
  /** @type {WebSocket|null} */ #socket = null;
  /** @type {Map<number, {resolve: (value: any) => void, reject: (error: RequestError) => void, until: number}>} */
  #waiting = new Map();
  /** How many looks in a row have found no word from the server. */
  #quiet = 0;
  /** @type {ReturnType<typeof setInterval>|undefined} */ #looking;
  /** The file that is being sent: how many bytes of it the server has taken, and why it takes no more.
   * @type {{announced: number, taken: number, refused: RequestError|null, heard: () => void}} */
  #upload = { announced: 0, taken: 0, refused: null, heard: () => {} };
  #next = 1;
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */ #timer;

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
    addEventListener("online", () => this.#checkNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.#checkNow());
  }

  /** Connect, and stay connected from now on. */
  open() {
    clearTimeout(this.#timer);
    clearInterval(this.#looking);
    this.handlers.state(this.#failures > 1 ? "offline" : "connecting");
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
    this.#socket = socket;
    let opened = false;
    const watchdog = setTimeout(() => opened || socket.close(), HANDSHAKE);
    socket.onopen = () => {
      opened = true;
      clearTimeout(watchdog);
      this.#failures = 0;
      this.#quiet = 0;
      this.#looking = setInterval(() => this.#look(), LOOK);
      this.handlers.state("open");
      this.hello().then(() => this.handlers.again(), (error) => {
        if (error.code !== "offline") this.handlers.refused(error);
      });
    };
    socket.onmessage = (event) => {
      if (this.#quiet >= TOLD) this.handlers.state("open");
      this.#quiet = 0;
      this.#take(JSON.parse(event.data));
    };
    socket.onclose = () => {
      clearTimeout(watchdog);
      this.#lost(opened);
    };
  }

  /** Report which session the page shows and which records it has. */
  hello() {
    const asked = this.handlers.hello();
    return asked[0] === "open" ? this.request("open", asked[1]) : this.request("hello", asked[1]);
  }

  /**
   * Send a message. Settles when the server has answered.
   * @template {RequestType} Type
   * @param {Type} type
   * @param {Fields<Type>} [fields]
   * @returns {Promise<Requests[Type]["answer"]>}
   */
  request(type, fields) {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new RequestError("offline", t("Not connected; try again in a moment.")));
    }
    const id = this.#next++;
    const text = JSON.stringify({ ...fields, type, id });
    const size = bytesOf(text);
    if (size > LONGEST) {
      return Promise.reject(new RequestError("usage", t("This is too long to be sent: {size}, where at most {most} fit. Attach it as a file.", { size: bytes(size), most: bytes(LONGEST) })));
    }
    const until = Date.now() + (LONG.has(type) ? LONG_PATIENCE : PATIENCE);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, until });
      socket.send(text);
    });
  }

  /**
   * Announce a file. Returns the line on which the server expects its bytes: on another one, it knows nothing of it.
   * @param {Fields<"upload">} file
   */
  async announce(file) {
    const line = this.#socket;
    const announced = this.#next;
    await this.request("upload", file);
    // Only now: what is told before the answer is about the file before.
    this.#upload = { announced, taken: 0, refused: null, heard: () => {} };
    return line;
  }

  /**
   * Send a piece of the announced file. Settles when the server has taken enough for another.
   * @param {ArrayBuffer} piece
   * @param {WebSocket|null} line
   * @param {number} until how many bytes of the file are sent with this piece
   */
  async sendBytes(piece, line, until) {
    const upload = this.#upload;
    if (!this.#isOpen(line)) throw lostUpload();
    line?.send(piece);
    while (until - upload.taken > UNDER_WAY && upload.refused === null && this.#isOpen(line)) {
      await new Promise((heard) => { upload.heard = () => heard(undefined); });
    }
    if (upload.refused !== null) throw upload.refused;
    if (!this.#isOpen(line)) throw lostUpload();
  }

  /** Whether a line is still the one that is open. @param {WebSocket|null} line */
  #isOpen(line) {
    return line !== null && line === this.#socket && line.readyState === WebSocket.OPEN;
  }

  /** @param {any} message */
  #take(message) {
    if (message.type === "uploading") {
      this.#upload.taken = message.taken;
      this.#upload.heard();
      return;
    }
    if (message.type !== "ok" && message.type !== "error") {
      this.handlers.message(message);
      return;
    }
    const asked = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "ok") asked?.resolve(message);
    else if (asked) asked.reject(new RequestError(message.code, heard(message.message)));
    else if (message.id === this.#upload.announced) {
      this.#upload.refused = new RequestError(message.code, heard(message.message));
      this.#upload.heard();
    } else this.handlers.message({ type: "notice", text: message.message });
  }

  /** Find out whether the server is still there, and which requests it has left unanswered for too long. */
  #look() {
    this.#quiet += 1;
    if (this.#quiet >= GIVEN_UP) {
      this.#giveUp();
      return;
    }
    if (this.#quiet >= ASKED) this.#ping();
    if (this.#quiet === TOLD) this.handlers.state("silent");

    const now = Date.now();
    for (const [id, { reject, until }] of [...this.#waiting]) {
      if (now < until) continue;
      this.#waiting.delete(id);
      reject(new RequestError("late", t("The server has not answered this request. It may still carry it out; look at the session before you send it again.")));
    }
  }

  #ping() {
    this.request("ping").catch(() => undefined);
  }

  /** Leave a connection that swallows what is sent. Its `close` would come only after an answer from the server. */
  #giveUp() {
    const socket = this.#socket;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#lost(true);
  }

  /** @param {boolean} opened */
  async #lost(opened) {
    clearInterval(this.#looking);
    this.#socket = null;
    this.#upload.heard();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) {
      reject(new RequestError("offline", t("The connection was lost before the server answered.")));
    }
    this.#failures += 1;
    this.handlers.state(this.#failures > 1 ? "offline" : "connecting");
    const isRefused = !opened && (await refused());
    // Meanwhile the page can have been looked at again, which connects at once.
    if (this.#socket !== null) return;
    clearTimeout(this.#timer);
    if (isRefused) {
      this.handlers.state("refused");
      // Another tab may sign in, which also admits this tab.
      this.#timer = setTimeout(() => this.#lost(false), LONGEST_WAIT);
      return;
    }
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(10, this.#failures - 1));
    this.#timer = setTimeout(() => this.open(), wait * (0.5 + Math.random()));
  }

  /** The page is looked at again, or the network is back: connect, or ask at once whether the connection is alive. */
  #checkNow() {
    if (this.#socket === null) {
      this.open();
    } else if (this.#socket.readyState === WebSocket.OPEN) {
      this.#quiet = Math.max(this.#quiet, ASKED);
      this.#ping();
    }
  }
}

function lostUpload() {
  return new RequestError("offline", t("The connection was lost during the upload. Send the file again."));
}

/** How many bytes a text has when it is sent. @param {string} text */
export function bytesOf(text) {
  return new Blob([text]).size;
}

/** Whether the server is running but no longer knows this page (it was restarted with a new token). */
async function refused() {
  try {
    // The line may swallow this request, too.
    const signal = AbortSignal.timeout(HANDSHAKE);
    return (await fetch("/static/icon.svg", { cache: "no-store", signal })).status === 401;
  } catch {
    return false;
  }
}
