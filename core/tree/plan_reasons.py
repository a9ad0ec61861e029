"""Our own reasons for what is missing from a plan, as a person reads them, in the languages of a plan's answers.

A plan's records, its report to a caller and `--json` keep the reasons as they arose, with the ids of steps. What a program
printed is not ours, and stays as it is. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.plan import verdict as verdicts

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
        r"The bound on (.+) ended it\.",
        "The bound on {0} ended it.",
        "Eine Grenze, die dafür gesetzt ist, hat es beendet.",
        "为它设定的上限使它结束了。",
    ),
    _reason(r"It was left out\.", "It was left out.", "Es wurde ausgelassen.", "它被省略了。"),
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
)
"""Reasons that hold another one."""


def told_reason(why: str, language: Language) -> str:
    """A reason as a person reads it; as it is if it is not one of ours."""
    for reason in _LED_IN:
        if found := reason.pattern.fullmatch(why):
            # One is led in by us; what looks so within is a program's text.
            return reason.told(language).format(_told(found[1], language))
    return _told(why, language)


def _told(why: str, language: Language) -> str:
    for reason in _REASONS:
        if found := reason.pattern.fullmatch(why):
            return reason.told(language).format(*found.groups())
    return why
