"""Our own reasons for what is missing from a plan, as a person reads them, in the languages of a plan's answers.

A plan's records, its report to a caller and `--json` keep the reasons as they arose, with the ids of steps. What a program
printed is not ours, and stays as it is. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.plan import verdict as verdicts
from iact.core.plan.deliberation import NO_REPLY
from iact.core.plan.planner import NO_PLAN

Language = Literal["en", "de", "zh"]
"""A language in which a plan's answer has a form."""


@dataclass(frozen=True, slots=True)
class _Reason:
    """A reason of ours, and how it is told. `{0}` and so on are what the pattern's groups found."""

    pattern: re.Pattern[str]
    en: str
    de: str
    zh: str

    def told(self, language: Language) -> str:
        """The sentence in a language."""
        match language:
            case "en":
                return self.en
            case "de":
                return self.de
            case "zh":
                return self.zh


def _reason(pattern: str, en: str, de: str, zh: str) -> _Reason:
    return _Reason(re.compile(pattern, re.DOTALL), en, de, zh)


_EXIT: Final = r"The exit status is (-?\d+), not (-?\d+)\."

_REASONS: Final = (
    _reason(
        rf"{_EXIT} Its output: (.+)",
        "The exit status is {0}, not {1}. Its output: {2}",
        "Der Rückgabewert ist {0} statt {1}. Die Ausgabe: {2}",
        "退出状态是 {0}，而不是 {1}。输出：{2}",
    ),
    _reason(
        _EXIT,
        "The exit status is {0}, not {1}.",
        "Der Rückgabewert ist {0} statt {1}.",
        "退出状态是 {0}，而不是 {1}。",
    ),
    _reason(
        r"It waited for what did not succeed: .+",
        "Something that it needs did not succeed.",
        "Etwas, das davor kommt, ist nicht gelungen.",
        "它之前的步骤没有成功。",
    ),
    _reason(
        r"The output does not match .+",
        "What came of it does not look as it should.",
        "Was dabei herauskam, sieht nicht aus wie verlangt.",
        "结果不符合要求的样子。",
    ),
    _reason(
        r"The output does not fit its contract's schema: .+",
        "What came of it does not have the form that it should have.",
        "Was dabei herauskam, hat nicht die verlangte Form.",
        "结果没有要求的形式。",
    ),
    _reason(
        r"What was promised of its result was not checked\.",
        "What was promised of its result was not checked.",
        "Was von seinem Ergebnis verlangt ist, wurde nicht geprüft.",
        "对其结果的要求没有检查。",
    ),
    _reason(
        re.escape(verdicts.NOT_BY_PERSON),
        verdicts.NOT_BY_PERSON,
        "Das wolltest du selbst tun; andere Schritte wurden an seiner Stelle getan.",
        "这一步本该由您来做，却由其他步骤代替了。",
    ),
    _reason(
        r"The bound on (.+) (?:ended it|was hit)\.",
        "The bound on {0} ended it.",
        "Eine Grenze, die dafür gesetzt ist, hat es beendet.",
        "为它设定的上限使它结束了。",
    ),
    _reason(
        rf"{re.escape(NO_REPLY)} (.+)",
        f"{NO_REPLY} {{0}}",
        "Vom Modell war keine Antwort zu bekommen. {0}",
        "没有得到模型的回答。{0}",
    ),
    _reason(
        re.escape(NO_PLAN),
        NO_PLAN,
        "Ohne Plan wurde nichts getan.",
        "没有计划，所以什么都没做。",
    ),
    _reason(r"It was left out\.", "It was left out.", "Es wurde ausgelassen.", "它被省略了。"),
    _reason(
        r"A rule of the plan left it out\.|Left out by the rule: .+",
        "A rule of the plan left it out.",
        "Eine Regel des Plans hat es ausgelassen.",
        "计划的一条规则省略了它。",
    ),
    _reason(
        r"The output is empty\.", "Nothing came of it.", "Es kam nichts dabei heraus.", "没有得到任何结果。"
    ),
    _reason(
        r"The output is not JSON, .+",
        "What came of it does not have the form that it should have.",
        "Was dabei herauskam, hat nicht die verlangte Form.",
        "结果没有要求的形式。",
    ),
    _reason(
        r"It took longer than (\S+) seconds and was stopped\.",
        "It took longer than {0} seconds and was stopped.",
        "Es dauerte länger als {0} Sekunden und wurde angehalten.",
        "用时超过 {0} 秒，已被停止。",
    ),
    _reason(
        r"\S+ did not complete\.",
        "It could not be carried out.",
        "Es ließ sich nicht ausführen.",
        "没能执行。",
    ),
    _reason(
        r"\S+ was cancelled before it ended\.",
        "It was cancelled before it ended.",
        "Es wurde abgebrochen, bevor es fertig war.",
        "在完成之前被取消了。",
    ),
    _reason(
        r"\S+ was interrupted; its outcome is unknown\.|The program stopped while it ran\.",
        "It was interrupted; what came of it is not known.",
        "Es wurde unterbrochen; was daraus wurde, ist nicht bekannt.",
        "执行被中断，结果不明。",
    ),
    _reason(
        r"\S+ was not carried out: the session was forked here\.",
        "It was not carried out, since the session was forked here.",
        "Es wurde nicht ausgeführt, weil die Sitzung hier abgezweigt wurde.",
        "没有执行，因为会话在这里被分出了。",
    ),
    _reason(
        r"The user cancelled this (?:step|work)\.",
        "You cancelled it.",
        "Du hast es abgebrochen.",
        "您取消了它。",
    ),
    _reason(
        r"A message of the user ended the plan\.",
        "Your message ended the plan.",
        "Deine Nachricht hat den Plan beendet.",
        "您的消息结束了这个计划。",
    ),
    _reason(r"The plan has concluded\.", "The plan had ended.", "Der Plan war zu Ende.", "计划已经结束。"),
    _reason(
        r"The user was not asked any more\.",
        "You were not asked any more.",
        "Du wurdest nicht mehr gefragt.",
        "没有再询问您。",
    ),
    _reason(
        r"The user did not accept the result\.",
        "You did not accept the result.",
        "Du hast das Ergebnis nicht angenommen.",
        "您没有接受这个结果。",
    ),
    _reason(
        r"Nobody was there to accept the result\.",
        "Nobody was there to accept the result.",
        "Niemand war da, der das Ergebnis hätte annehmen können.",
        "没有人在场接受这个结果。",
    ),
    _reason(
        r"It asked something that nobody answered\.",
        "It asked something that nobody answered.",
        "Es hat etwas gefragt, was niemand beantwortet hat.",
        "它提了一个没有人回答的问题。",
    ),
    _reason(
        r"It never started; it waited for .+|What it stands on was lost meanwhile\.",
        "Something that it needs was missing.",
        "Etwas, das davor kommt, hat gefehlt.",
        "缺少它所需要的内容。",
    ),
    _reason(
        r"\S+ was not run: the content of .+ was lost\.",
        "The content of something that it needs was lost.",
        "Der Inhalt von etwas, das es braucht, ging verloren.",
        "它所需要的某项内容丢失了。",
    ),
    _reason(
        r"Not needed any more\.", "It was not needed any more.", "Es war nicht mehr nötig.", "不再需要它了。"
    ),
    _reason(r"It is \w+\.", "It has no result.", "Es hat kein Ergebnis.", "没有结果。"),
    _reason(r"It failed\.", "It failed.", "Es ist misslungen.", "失败了。"),
    _reason(
        r"What it wrote in its copy of the workspace could not be kept, .+",
        "What it wrote could not be kept.",
        "Was es geschrieben hat, war nicht aufzubewahren.",
        "它写下的内容没能保留。",
    ),
    _reason(
        r"The results can't be trusted: .+",
        "The results can't be relied on.",
        "Auf die Ergebnisse ist kein Verlass.",
        "这些结果不可靠。",
    ),
    _reason(
        r"No (?:plan|profile) could be had\b.*",
        "No plan could be had.",
        "Es war kein Plan zu bekommen.",
        "没能得到计划。",
    ),
    _reason(
        r"The plan could not be used, also after one correction\.",
        "The plan could not be used, also after one correction.",
        "Der Plan war nicht zu gebrauchen, auch berichtigt nicht.",
        "计划无法使用，改正一次之后也不行。",
    ),
    _reason(
        r"An internal error ended this plan.*",
        "An internal error ended it.",
        "Ein interner Fehler hat es beendet.",
        "一个内部错误使它结束了。",
    ),
)

_LED_IN: Final = (
    _reason(
        r"It failed and was left out: (.+)",
        "It failed and was left out: {0}",
        "Es ist misslungen und wurde ausgelassen: {0}",
        "它失败了，因此被省略：{0}",
    ),
    _reason(
        r"It was left out: (.+)",
        "It was left out: {0}",
        "Es wurde ausgelassen: {0}",
        "它被省略了：{0}",
    ),
    _reason(
        r"(\S+ (?:did not complete|was cancelled before it ended|was interrupted; its outcome is unknown)\.) "
        r"It had printed: (.+)",
        "{0} It had printed: {1}",
        "{0} Ausgegeben hatte es: {1}",
        "{0}此前的输出：{1}",
    ),
    _reason(
        r"Not needed any more: (.+)",
        "It was not needed any more: {0}",
        "Es war nicht mehr nötig: {0}",
        "不再需要它了：{0}",
    ),
    _reason(
        r"The user did not accept the result\. They say: (.+)",
        "You did not accept the result: {0}",
        "Du hast das Ergebnis nicht angenommen: {0}",
        "您没有接受这个结果：{0}",
    ),
    _reason(
        r"The agent did not finish \(\w+\): (.+)",
        "The agent did not finish: {0}",
        "Der Agent kam nicht zu Ende: {0}",
        "代理没有完成：{0}",
    ),
)
"""Reasons that hold another one."""


def told_reason(why: str, language: Language) -> str:
    """A reason as a person reads it; as it is if it is not one of ours."""
    for reason in _LED_IN:
        if found := reason.pattern.fullmatch(why):
            # One is led in by us; what looks so within is a program's text.
            inner, *others = found.groups()
            return reason.told(language).format(_told(inner, language), *others)
    return _told(why, language)


def _told(why: str, language: Language) -> str:
    for reason in _REASONS:
        if found := reason.pattern.fullmatch(why):
            return reason.told(language).format(*found.groups())
    return why
