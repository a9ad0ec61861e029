// Pictures in variables and files, shown where they are embedded. Only pictures that the server returns by name, in formats
// that cannot contain a script, are shown. No address in a text is ever fetched.

import { el } from "../base/dom.js";

/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** Most sessions show no picture, so this is fetched with the first. @typedef {() => Promise<Pictures>} FetchPictures */

const MEDIA = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const LARGEST = 8 << 20;
const KEPT = 40;

export class Pictures {
  /** Object URLs by the digest of their content. @type {Map<string, Promise<string>>} */
  #kept = new Map();

  /**
   * @param {Ask} ask
   * @param {() => string|null} session
   */
  constructor(ask, session) {
    this.ask = ask;
    this.session = session;
  }

  /**
   * The picture in a variable of agent `path`; null if the variable has none that can be shown.
   * @param {string} path
   * @param {{name: string, media: string, size: number, sha256: string}} value
   * @param {string} caption
   * @returns {Promise<HTMLElement|null>}
   */
  async of(path, { name, media, size, sha256 }, caption) {
    if (!MEDIA.includes(media) || size > LARGEST) return null;
    return this.#made(sha256, caption, () => this.#fetch("download", { path, name }, media));
  }

  /**
   * The picture in a file of the workspace, as it was after record `at`; null if it can't be shown.
   * @param {{path: string, size: number, media?: string}} file
   * @param {number|null} at
   * @param {string} [caption]
   * @returns {Promise<HTMLElement|null>}
   */
  async ofFile({ path, size, media = "" }, at, caption = path) {
    if (!MEDIA.includes(media) || size > LARGEST) return null;
    const fetched = () => this.#fetch("file.download", { path, at }, media);
    // The current file may have changed by the next request.
    if (at === null) return el("img", { src: await fetched(), alt: caption, className: "picture" });
    return this.#made(`${this.session()} ${at} ${path}`, caption, fetched);
  }

  /**
   * @param {string} key
   * @param {string} caption
   * @param {() => Promise<string>} fetched
   */
  async #made(key, caption, fetched) {
    let address = this.#kept.get(key);
    if (!address) {
      address = fetched();
      this.#kept.set(key, address);
      this.#makeRoom();
    }
    try {
      return el("img", { src: await address, alt: caption, className: "picture" });
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }

  /**
   * Put pictures after the embeds in `body`, which is in the dialogue of agent `path`. Without an answer, the embeds stay tags.
   * @param {Element} body
   * @param {string} path
   */
  async fill(body, path) {
    for (const embed of body.querySelectorAll(".embed")) {
      const name = /^\$([A-Za-z_]\w*)$/.exec(embed.querySelector(".address")?.textContent ?? "")?.[1];
      if (!name) continue;
      try {
        const value = await this.ask("variable", { path, name });
        const picture = await this.of(path, value, embed.querySelector(".embed-caption")?.textContent ?? name);
        if (picture) embed.append(picture);
      } catch {
        // There is no such variable, or no connection to the server. The tag stays and names it.
      }
    }
  }

  /**
   * @template {"download"|"file.download"} T
   * @param {T} type
   * @param {import("../state/types.d.ts").Fields<T>} fields
   * @param {string} media
   */
  async #fetch(type, fields, media) {
    /** @type {import("../state/wire.d.ts").Download} */
    const { href } = await this.ask(type, fields);
    const answer = await fetch(href);
    return URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: media }));
  }

  #makeRoom() {
    const [oldest] = this.#kept;
    if (this.#kept.size <= KEPT || !oldest) return;
    this.#kept.delete(oldest[0]);
    oldest[1].then((address) => URL.revokeObjectURL(address), () => undefined);
  }
}
