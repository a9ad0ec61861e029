// The tools of a message and of code in it. They appear where the user points, tabs or holds a finger.

import { el, part, setText } from "../base/dom.js";
import { t } from "../base/language.js";
import { countUpTo } from "../state/store.js";

/** @typedef {import("../state/store.js").Store} Store */
/** @typedef {import("../state/types.d.ts").JournalRecord} JournalRecord */
/**
 * @typedef {object} Means
 * @property {(n: number) => Promise<string>} source the text of a record, as it was written
 * @property {(record: JournalRecord) => void} again sends the same message again, in a fork before it
 * @property {(path: string, n: number) => void} open shows the variable with a result
 */

/** Milliseconds after which a resting finger shows the tools. */
const HOLD = 500;
/** @type {Record<string, string>} */
const ENDINGS = { python: "py", javascript: "js", typescript: "ts", bash: "sh", shell: "sh", sh: "sh", markdown: "md", text: "txt", "": "txt", yaml: "yaml" };

/**
 * Add the tools to an entry of the dialogue, once.
 * @param {HTMLElement} entry
 * @param {Store} store
 * @param {Means} means
 * @param {string} how the type of the event that asked for them
 */
export function equip(entry, store, means, how) {
  if (how === "pointerdown") hold(entry);
  const record = store.record(Number(entry.dataset.n));
  if (!record) return;
  const head = entry.querySelector(":scope > .entry-head");
  const body = entry.querySelector(":scope > .entry-body");
  if (head && body && !entry.classList.contains("minor") && !head.querySelector(".tools")) {
    const tools = el("span", { className: "tools", role: "toolbar", "aria-label": t("Message") });
    tools.append(button(t("Copy"), () => copied(/** @type {HTMLElement} */ (body).innerText)));
    if (record.kind !== "call") tools.append(button(t("Copy as Markdown"), async () => copied(record.said ?? await means.source(record.n))));
    const said = record.kind === "reply" && record.agent === "/" ? before(store, record.n) : record.kind === "say" ? record : undefined;
    if (said?.said !== undefined && !store.session.foreign) tools.append(button(t("Try again"), () => means.again(said), t("Send the same message again, in a branch that begins before it")));
    head.insertBefore(tools, head.querySelector(".when"));
  }
  for (const block of entry.querySelectorAll(".code, .output")) dressCode(block, entry, means);
}

/**
 * The message that a reply answers.
 * @param {Store} store
 * @param {number} n
 */
function before(store, n) {
  return store.records.slice(0, countUpTo(store.records, n - 1)).findLast((record) => record.kind === "say");
}

/**
 * @param {Element} block
 * @param {HTMLElement} entry
 * @param {Means} means
 */
function dressCode(block, entry, means) {
  if (block.querySelector(":scope > .tools") || !block.querySelector("pre")) return;
  const text = () => [...block.querySelectorAll("pre")].map((one) => one.textContent ?? "").join("\n");
  const tools = el("span", { className: "tools", role: "toolbar", "aria-label": t("Code") }, button(t("Copy"), () => copied(text())));
  const outcome = /** @type {HTMLElement|null} */ (block.closest("[data-n]"));
  if (block.classList.contains("code")) {
    const language = block.querySelector(".language")?.textContent ?? "";
    tools.append(button(t("Save"), () => save(text(), `code.${ENDINGS[language] ?? language}`)));
  } else if (outcome && block.closest(".card.result")) {
    tools.append(button(t("Open as a variable"), () => means.open(entry.dataset.agent ?? "/", Number(outcome.dataset.n))));
  }
  block.append(tools);
}

/**
 * @param {string} label
 * @param {() => unknown} act
 * @param {string} [title]
 */
function button(label, act, title = "") {
  const made = el("button", { type: "button", title }, label);
  made.addEventListener("click", async () => {
    const done = await act();
    if (typeof done !== "string") return;
    setText(made, done);
    setText(part("live"), done);
    setTimeout(() => setText(made, label), 1500);
  });
  return made;
}

/** @param {string} text @returns {Promise<string>} what to say of it */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return t("Copied");
  } catch {
    // Without a secure connection, the browser has no clipboard for scripts, but still has the old copy command.
    const field = el("textarea", { value: text, className: "sr" });
    const held = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (held instanceof HTMLElement) held.focus();
    return done ? t("Copied") : t("The browser did not allow copying.");
  }
}

/**
 * @param {string} text
 * @param {string} name
 */
function save(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  el("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** Show the tools of an entry under a finger that rests. @param {HTMLElement} entry */
function hold(entry) {
  const timer = setTimeout(() => {
    for (const other of document.querySelectorAll(".entry.held")) other.classList.remove("held");
    entry.classList.add("held");
  }, HOLD);
  for (const what of ["pointerup", "pointercancel", "pointermove"]) entry.addEventListener(what, () => clearTimeout(timer), { once: true });
}
