// Browser notifications and a sound, for users who want them: the settings, and the notification itself. Fetched when
// there is something to report, or with the column of sessions.

import { el, setText } from "../base/dom.js";
import { t } from "../base/language.js";

const NOTIFY = "iact.notify";
const SOUND = "iact.sound";

/** The user's settings for notifications. */
export function notifySettings() {
  const why = el("p", { className: "facts", role: "status" });
  const wanted = box(t("Notify me when a session waits, fails, or answers after 30 s"), kept(NOTIFY), async (on) => {
    setText(why, "");
    if (on && (await Notification.requestPermission()) !== "granted") {
      setText(why, t("This browser blocks notifications from this page. Allow them in the browser's settings for this site."));
      return false;
    }
    keep(NOTIFY, on);
    return on;
  });
  const sound = box(t("With a sound"), kept(SOUND), async (on) => {
    keep(SOUND, on);
    if (on) ring();
    return on;
  });
  return el("details", { className: "session-extra", "data-role": "notify" }, el("summary", {}, t("Notifications")), wanted, sound, why);
}

/**
 * @param {string} words
 * @param {boolean} on
 * @param {(on: boolean) => Promise<boolean>} change returns the new setting
 */
function box(words, on, change) {
  const input = el("input", { type: "checkbox", checked: on });
  input.addEventListener("change", async () => { input.checked = await change(input.checked); });
  return el("label", {}, input, ` ${words}`);
}

/**
 * Notify the user of a session, as far as the settings allow.
 * @param {import("../state/types.d.ts").SessionInfo} info
 * @param {string} words
 * @param {(id: string) => void} open
 */
export function tell(info, words, open) {
  if (kept(SOUND)) ring();
  if (!kept(NOTIFY) || globalThis.Notification?.permission !== "granted") return;
  const note = new Notification(words, { body: info.title, tag: `iact ${info.id}` });
  note.addEventListener("click", () => {
    window.focus();
    open(info.id);
    note.close();
  });
}

/** Two short tones. */
function ring() {
  const context = new AudioContext();
  for (const [at, pitch] of [[0, 660], [0.16, 880]]) {
    const tone = new OscillatorNode(context, { frequency: pitch });
    const loud = new GainNode(context, { gain: 0.08 });
    tone.connect(loud).connect(context.destination);
    tone.start(context.currentTime + at);
    tone.stop(context.currentTime + at + 0.12);
    tone.addEventListener("ended", () => { if (at > 0) context.close(); });
  }
}

/** @param {string} name */
function kept(name) {
  try {
    return localStorage.getItem(name) === "on";
  } catch {
    return false;
  }
}

/**
 * @param {string} name
 * @param {boolean} on
 */
function keep(name, on) {
  try {
    localStorage.setItem(name, on ? "on" : "off");
  } catch {
    // If the browser stores nothing for us, the setting lasts until the page is closed.
  }
}
