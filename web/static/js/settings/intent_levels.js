// The permission of the session: the three fixed levels, levels between them that the policy names, and
// the current level if it has no name.

import { el } from "../base/dom.js";
import { t } from "../base/language.js";

/**
 * @param {HTMLElement} group
 * @param {Record<string, number>} named
 * @param {number} now
 */
export function showLevels(group, named, now) {
  const common = [...group.querySelectorAll("label:not([data-level])")];
  for (const one of group.querySelectorAll("label[data-level]")) one.remove();
  const between = Object.entries(named);
  const known = [0, 1, 2, ...between.map(([, value]) => value)];
  if (!known.includes(now)) between.push([String(now), now]);
  for (const [name, value] of between.sort(([, a], [, b]) => a - b)) {
    const input = el("input", { type: "radio", name: "intent", value: String(value) });
    const title = value < 1 ? t("Between Read only and Change files ({value}): what your policy allows there", { value }) : t("Between Change files and Anything ({value}): what your policy allows there", { value });
    const label = el("label", { title, "data-level": name }, input, el("span", {}, name));
    common[Math.ceil(value)].before(label);
  }
  const choice = group.querySelector(`input[value="${now}"]`);
  if (choice instanceof HTMLInputElement) choice.checked = true;
}
