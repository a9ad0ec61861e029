// Pictures, sounds and films in variables and files, as elements. Only what the server returns by name is shown or played, in
// formats that cannot contain a script. No address in a text is ever fetched.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** Most sessions show no picture, so this is fetched with the first. @typedef {() => Promise<Pictures>} FetchPictures */
/** @typedef {"img"|"audio"|"video"} Tag */

/** The elements that show or play a media type. @type {Record<string, Tag>} */
const TAGS = {
  "image/png": "img", "image/jpeg": "img", "image/gif": "img", "image/webp": "img",
  "audio/wav": "audio", "audio/x-wav": "audio", "audio/mpeg": "audio", "audio/mp4": "audio", "audio/aac": "audio", "audio/ogg": "audio", "audio/flac": "audio", "audio/webm": "audio",
  "video/mp4": "video", "video/webm": "video", "video/ogg": "video", "video/quicktime": "video",
};
const LARGEST_PICTURE = 8 << 20;
const LARGEST_PLAYED = 256 << 20;
/** What is held of contents that were shown: so many, and so many bytes. */
const KEPT = 40;
const KEPT_BYTES = 256 << 20;

/** How a content is shown; null if it can't be. @param {string} media @param {number} size @returns {Tag|null} */
export function tagOf(media, size) {
  const tag = TAGS[media.split(";")[0].trim().toLowerCase()] ?? null;
  return size > (tag === "img" ? LARGEST_PICTURE : LARGEST_PLAYED) ? null : tag;
}

/** The content that a download's address leads to. @param {string} href */
export async function contentOf(href) {
  const answer = await fetch(href);
  if (!answer.ok) throw new Error(t("It can't be fetched any more."));
  return answer.blob();
}

export class Pictures {
  /** Object URLs by the digest of their content, with its size. @type {Map<string, {address: Promise<string>, size: number}>} */
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
   * The picture or the player of a variable of agent `path`; null if the variable has nothing that can be shown.
   * @param {string} path
   * @param {{name: string, media: string, size: number, sha256: string}} value
   * @param {string} caption
   * @returns {Promise<HTMLElement|null>}
   */
  async of(path, { name, media, size, sha256 }, caption) {
    const tag = tagOf(media, size);
    return tag && this.#made(tag, sha256, size, caption, () => this.#fetch("download", { path, name }, media));
  }

  /**
   * The picture or the player of a file of the workspace, as it was after record `at`; null if it can't be shown.
   * @param {{path: string, size: number, media?: string}} file
   * @param {number|null} at
   * @param {string} [caption]
   * @returns {Promise<HTMLElement|null>}
   */
  async ofFile({ path, size, media = "" }, at, caption = path) {
    const tag = tagOf(media, size);
    if (!tag) return null;
    const fetched = () => this.#fetch("file.download", { path, at }, media);
    // The current file may have changed by the next request.
    if (at === null) return element(tag, await fetched(), caption);
    return this.#made(tag, `${this.session()} ${at} ${path}`, size, caption, fetched);
  }

  /**
   * @param {Tag} tag
   * @param {string} key
   * @param {number} size
   * @param {string} caption
   * @param {() => Promise<string>} fetched
   */
  async #made(tag, key, size, caption, fetched) {
    let kept = this.#kept.get(key);
    if (!kept) {
      kept = { address: fetched(), size };
      this.#kept.set(key, kept);
      this.#makeRoom();
    }
    try {
      return element(tag, await kept.address, caption);
    } catch (error) {
      this.#kept.delete(key);
      throw error;
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
    return URL.createObjectURL(new Blob([await contentOf(href)], { type: media }));
  }

  #makeRoom() {
    const bytes = () => [...this.#kept.values()].reduce((sum, { size }) => sum + size, 0);
    while (this.#kept.size > KEPT || (this.#kept.size > 1 && bytes() > KEPT_BYTES)) {
      const [[key, { address }]] = this.#kept;
      this.#kept.delete(key);
      address.then((one) => URL.revokeObjectURL(one), () => undefined);
    }
  }
}

/**
 * @param {Tag} tag
 * @param {string} src
 * @param {string} caption
 */
function element(tag, src, caption) {
  if (tag === "img") return el("img", { src, alt: caption, className: "picture" });

  const player = el(tag, { src, controls: true, preload: "metadata", className: "player", "aria-label": caption });
  player.addEventListener("error", () => player.replaceWith(el("p", { className: "nothing", role: "alert" }, t("This browser can't play it. Download it to play it elsewhere."))));
  return player;
}
