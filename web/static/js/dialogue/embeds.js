// What a text embeds, shown where it stands: a picture, a player, the first rows of a table, or a card that names the file,
// opens and downloads it. What is large is fetched when the user asks for it.

import { el, styled } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { t } from "../base/language.js";
import { download } from "../composer/uploads.js";
import { tagOf } from "./pictures.js";

/** @typedef {import("../agents/inspector.js").Ask} Ask */
/** @typedef {import("./pictures.js").Pictures} Pictures */
/** @typedef {import("../files/viewer.js").Shown} Shown */
/** Most sessions embed nothing, so this is fetched with the first. @typedef {() => Promise<Embeds>} FetchEmbeds */

/** What is larger is fetched only when the user asks for it. */
const AT_ONCE = 8 << 20;
/** The rows of a table that are shown, with its head. */
const ROWS = 6;
/** The longest name of a format that is shown, such as "JSON". */
const FORMAT = 8;

export class Embeds {
  /**
   * @param {Ask} ask
   * @param {Pictures} pictures
   */
  constructor(ask, pictures) {
    this.ask = ask;
    this.pictures = pictures;
  }

  /**
   * Show the variables that `body` embeds, which is in the dialogue of agent `path`. Without an answer, the embeds stay tags.
   * @param {Element} body
   * @param {string} path
   */
  fill(body, path) {
    for (const embed of body.querySelectorAll(".embed")) {
      const name = /^\$([A-Za-z_]\w*)$/.exec(embed.querySelector(".address")?.textContent ?? "")?.[1];
      if (name) whenNear(embed, () => this.#variable(embed, path, name));
    }
  }

  /**
   * Show a file of the workspace, as it was after record `at`.
   * @param {Element} embed
   * @param {string} path
   * @param {number|null} at
   * @param {HTMLElement} name opens the file
   */
  file(embed, path, at, name) {
    embed.querySelector(".address")?.replaceWith(name);
    whenNear(embed, async () => {
      const facts = /** @type {Shown} */ (await this.ask("file", { path, at }));
      const fetch = async () => download((await this.ask("file.download", { path, at })).href);
      const made = () => this.pictures.ofFile(facts, at, captionOf(embed, path));
      if (facts.kind !== "file") return;
      await this.#show(embed, path.match(/\.(\w+)$/)?.[1] ?? "", facts.media ?? "", facts.size, made, fetch);
      if (facts.show === "table") embed.append(await tableOf(facts));
    });
  }

  /**
   * @param {Element} embed
   * @param {string} path
   * @param {string} name
   */
  async #variable(embed, path, name) {
    const value = await this.ask("variable", { path, name });
    // The page opens the variable of any chip.
    embed.querySelector(".address")?.replaceWith(el("button", { type: "button", className: "chip" }, `$${name}`));
    const fetch = async () => download((await this.ask("download", { path, name })).href);
    const made = () => this.pictures.of(path, value, captionOf(embed, name));
    await this.#show(embed, value.media.split(/[/;+]/)[1] ?? "", value.media, value.size, made, fetch);
  }

  /**
   * @param {Element} embed
   * @param {string} format
   * @param {string} media
   * @param {number} size
   * @param {() => Promise<HTMLElement|null>} made
   * @param {() => Promise<void>} fetch
   */
  async #show(embed, format, media, size, made, fetch) {
    const tag = tagOf(media, size);
    if (tag === "img") {
      const picture = await made();
      if (picture) embed.append(picture);
      return;
    }

    await styled("embeds");
    embed.classList.add("file-card");
    const facts = [format.length <= FORMAT ? format.toUpperCase() : "", bytes(size)];
    embed.append(el("span", { className: "facts" }, facts.filter(Boolean).join(" · ")));
    if (tag && size > AT_ONCE) embed.append(button(embed, t("Play"), async (pressed) => {
      const player = await made();
      if (player) pressed.replaceWith(player);
      if (player instanceof HTMLMediaElement) await player.play();
    }));
    embed.append(button(embed, t("Download"), fetch));
    const player = tag && size <= AT_ONCE ? await made() : null;
    if (player) embed.append(player);
  }
}

/**
 * @param {Element} embed
 * @param {string} words
 * @param {(pressed: HTMLElement) => Promise<void>} act
 */
function button(embed, words, act) {
  const made = el("button", { type: "button", className: "link" }, words);
  made.addEventListener("click", async () => {
    try {
      await act(made);
    } catch (error) {
      embed.append(el("span", { className: "bad", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  });
  return made;
}

/** The first rows of a table. @param {Shown} facts */
async function tableOf({ rows = [], more_rows: more = 0 }) {
  const { table } = await import("../files/viewer.js");
  const left = rows.length - ROWS + more;
  const note = left > 0 ? [el("p", { className: "facts" }, t("{more} more rows; open the file to see them.", { more: left }))] : [];
  return el("div", { className: "embed-table" }, table(rows.slice(0, ROWS)), ...note);
}

/** @param {Element} embed @param {string} otherwise */
function captionOf(embed, otherwise) {
  return embed.querySelector(".embed-caption")?.textContent || otherwise;
}

/**
 * Do something once an element comes near to what is in view. Without an answer, the embed stays a tag.
 * @param {Element} embed
 * @param {() => Promise<void>} act
 */
function whenNear(embed, act) {
  const near = new IntersectionObserver(([seen]) => {
    if (!seen.isIntersecting) return;
    near.disconnect();
    act().catch(() => undefined); // there is no such variable or file any more, or no connection
  }, { rootMargin: "600px" });
  near.observe(embed);
}
