// Uploads and downloads: a file that is dropped on the page, pasted or chosen waits for the next message, and then becomes
// a variable.

import { el, part, styled } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { t } from "../base/language.js";
import { PIECE, RequestError, bytesOf } from "../state/connection.js";

/** Bytes of a message, as they are sent, from which it is sent like a file. */
const LONG = 200 * 1024;
/** The most bytes of a message, or of a file that becomes a variable. */
const MOST = 32 << 20;

/** @typedef {import("../state/connection.js").Connection} Connection */

export class Uploads {
  #input = /** @type {HTMLInputElement} */ (part("file"));
  #zone = part("drop");
  /** How deep in the page's elements a drag is; 0 if there is none. */ #depth = 0;
  /** Files that wait for a message; fetched with the first. @type {Promise<import("./attachments.js").Attachments>|undefined} */ #attachments;
  /** Uploads run one after the other: a connection transfers one file at a time. @type {Promise<unknown>} */ #queue = Promise.resolve();

  /**
   * @param {Connection} connection
   * @param {(text: string, bad?: boolean) => void} say
   * @param {import("../state/store.js").Store} store
   */
  constructor(connection, say, store) {
    this.connection = connection;
    this.say = say;
    this.store = store;
    part("attach").addEventListener("click", () => this.choose());
    this.#input.addEventListener("change", () => {
      this.send([...(this.#input.files ?? [])]);
      this.#input.value = "";
    });
    addEventListener("dragenter", (event) => this.#drag(event, 1));
    addEventListener("dragleave", (event) => this.#drag(event, -1));
    addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      this.#depth = 0;
      this.#zone.hidden = true;
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.send([...(event.dataTransfer?.files ?? [])]);
    });
    addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      this.send(files);
    });
  }

  /**
   * Upload a file that does not become a variable: an archive of a session, which the server imports.
   * @param {File} file
   */
  bring(file) {
    const brought = this.#queue.then(async () => {
      await this.#send(file, true);
      return this.connection.request("session.import");
    });
    this.#queue = brought.catch(() => undefined);
    return brought;
  }

  choose() {
    this.#input.click();
  }

  /**
   * Send a message to the root, a long one like a file.
   * @param {string} text
   * @param {import("./mode_picker.js").Way & {once: string}} way
   */
  async message(text, way) {
    const size = bytesOf(text);
    if (size > MOST) {
      throw new RequestError("usage", t("This message is too long: {size}, where at most {most} fit. Attach several files instead.", { size: bytes(size), most: bytes(MOST) }));
    }
    // Line breaks and quotes have two bytes on their way.
    const isShort = bytesOf(JSON.stringify(text)) <= LONG;
    if (isShort) return this.connection.request("say", { text, ...way });

    const { chosen, session: { id } } = this.store;
    const sent = this.#queue.then(async () => {
      await this.#send(new File([text], "message.md", { type: "text/markdown" }));
      // A new session gets its id meanwhile, for example by a file that was attached before.
      const isAnother = this.store.chosen !== chosen || (id !== null && this.store.session.id !== id);
      if (isAnother) throw new RequestError("usage", t("You opened another session; the message was not sent."));
      return this.connection.request("say", { uploaded: true, ...way });
    });
    this.#queue = sent.catch(() => undefined);
    return sent;
  }

  /** Put files beside the message field. Nothing of them leaves the page before the message. @param {File[]} files */
  async send(files) {
    if (this.store.past) {
      this.say(t("Files can't be added during a replay. Go back to live first."), true);
      return;
    }
    if (this.store.selected !== "/") {
      this.say(t("Files go to the root agent; choose it first."), true);
      return;
    }
    const large = files.find(({ size }) => size > MOST);
    if (large) this.say(tooLarge(large), true);
    try {
      this.#attachments ??= Promise.all([import("./attachments.js"), styled("attachments")]).then(([{ Attachments }]) => new Attachments(this.store));
      (await this.#attachments).add(files.filter(({ size }) => size <= MOST));
    } catch {
      this.#attachments = undefined;
      this.say(t("Not connected; try again in a moment."), true);
    }
  }

  /** Upload the files that wait, before the message that they belong to. */
  async deliver() {
    const attachments = await this.#attachments;
    const rest = attachments?.take() ?? [];
    try {
      for (; rest.length; rest.shift()) await this.#upload(rest[0]);
    } catch (error) {
      attachments?.add(rest);
      throw error;
    }
  }

  /** @param {File} file */
  #upload(file) {
    const sent = this.#queue.then(async () => {
      await this.#send(file);
      await this.connection.request("upload.end");
    });
    this.#queue = sent.catch(() => undefined);
    return sent;
  }

  /**
   * @param {File} file
   * @param {boolean} archive
   */
  async #send(file, archive = false) {
    const { connection } = this;
    if (!archive && file.size > MOST) {
      throw new RequestError("usage", tooLarge(file));
    }
    const line = await connection.announce({ name: file.name, media: file.type.split(";")[0], size: file.size, archive });
    for (let at = 0; at < file.size; at += PIECE) {
      const piece = await file.slice(at, at + PIECE).arrayBuffer();
      await connection.sendBytes(piece, line, at + piece.byteLength);
      if (file.size > 4 * PIECE) this.say(t("Uploading {name}: {done} of {size}", { name: file.name, done: bytes(Math.min(at + PIECE, file.size)), size: bytes(file.size) }));
    }
  }

  /**
   * @param {DragEvent} event
   * @param {number} by
   */
  #drag(event, by) {
    if (!hasFiles(event)) return;
    this.#depth += by;
    this.#zone.hidden = this.#depth <= 0 || this.store.past;
  }
}

/** @param {File} file */
function tooLarge({ name, size }) {
  return t("{name} is too large: {size}, where a file may have {most}.", { name, size: bytes(size), most: bytes(MOST) });
}

/** @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** Let the browser download an address of this server as a file. @param {string} href */
export function download(href) {
  const link = el("a", { href, download: "" });
  link.hidden = true;
  document.body.append(link);
  link.click();
  link.remove();
}
