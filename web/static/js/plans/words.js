// What the journal says of a plan in single words, as people read it: ways of working, steps, questions, decisions, figures.

import { t } from "../base/language.js";
import { WAYS } from "../state/ways.js";

/** The kinds of steps. @type {Record<string, string>} */
const KINDS = {
  tool: t("tool"), agent: t("agent"), person: t("you"), reflection: t("judgement"), observer: t("look at a result"), micro_planner: t("repair"),
  interjection: t("your message"), aggregator: t("report"),
};

/** What models are asked about a plan. @type {Record<string, string>} */
const QUESTIONS = {
  plan: t("plan"), correct: t("correction of the plan"), replan: t("new plan"), profile: t("plan with its risks"), repair: t("corrected plan"),
  reflect: t("judgement"), interject: t("your message"), word: t("what your message asks for"), observe: t("look at a result"), patch: t("repair of a step"),
  analyze: t("judgement of the goal"), judge: t("check of a result"), reason: t("answer"), synthesize: t("report"), compact: t("shorter texts"), answer: t("answer to an agent"),
};

/** What else is a word of ours: decisions about a step, how a profile is run and trusted, and what that is made of. @type {Record<string, string>} */
const OTHERS = {
  replace: t("other steps"), skip: t("leave it out"), give_up: t("give up"),
  pure: t("as written"), guarded: t("with its rules"), repair_eligible: t("with its rules, and one repair if needed"),
  sound: t("sound"), degraded: t("with caveats"), unsound: t("not to be relied on"),
  schema: t("open parameters"), planning: t("its author's doubts"), method: t("its functions"), scale: t("its size"), history: t("earlier failures"),
  failed: t("failed"), empty: t("empty results"), thin: t("thin results"), diagnosed: t("conditions met"), branched: t("branches taken"), recovered: t("recoveries"),
  exit_status: t("exit status"), non_empty: t("not empty"), regex: t("pattern"), syntactic: t("form"), n: t("every"), rounds: t("rounds"),
};

/** @param {string} mode */
export const wayName = (mode) => WAYS.find(([way]) => way === mode)?.[1] ?? mode;
/** @param {string} kind */
export const kindName = (kind) => KINDS[kind] ?? plain(kind);
/** @param {string} question */
export const questionName = (question) => QUESTIONS[question] ?? plain(question);
/** @param {string} word */
export const otherName = (word) => OTHERS[word] ?? plain(word);

/** @param {string} word */
function plain(word) {
  return t(word.replaceAll("_", " "));
}
