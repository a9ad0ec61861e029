// The ways of working on a message, in the order in which they are offered.
// Written by docs/reference/ways.py from core/records/ways.py; run: python -m docs.reference.generated

import { t } from "../base/language.js";

/** Each way: value, name, description. @type {[string, string, string][]} */
export const WAYS = [
  ["dialogue", t("Chat"), t("The root agent works step by step and sees each result before it continues")],
  ["auto", t("Auto"), t("Chosen depending on what the message asks for")],
  ["profile", t("Prepared plan"), t("A plan with its risks and alternatives, written beforehand in two or three model calls")],
  ["static", t("Run the plan as written"), t("The steps run as planned; no model judges the results on the way")],
  ["reflect", t("Check after each stage"), t("A model judges the results after each wave of steps and decides how to continue")],
  ["nreflect", t("Check after every few steps"), t("A model judges the results after every few steps, while other steps run")],
  ["orchestrator", t("Supervised"), t("A model reads each result and may add or cancel steps")],
  ["analyze", t("Repeat until done"), t("A model judges the result at the end and plans again until the goal is reached")],
];
