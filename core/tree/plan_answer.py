"""The answer of a plan to the person who asked for it: in their language, in sentences, without what only programs read.

A model wrote it, or it has a form here, in English, German and Chinese. Ids of steps, patterns and kinds of checks
stay in the report to a caller (`core.tree.plan_report`), in the page and in `--json`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.context.excerpt import excerpt
from iact.core.language import labels
from iact.core.plan import verdict as verdicts
from iact.core.plan.contracts import as_text
from iact.core.plan.model import PlanNode
from iact.core.plan.state import NodeRecord
from iact.core.records.parts import Reached
from iact.core.tree.plan_answer_reasons import Language, told_reason
from iact.core.tree.plan_run import Ending, PlanRun

_SHOWN: Final = 4_000
"""The most characters of one result."""
_SUBJECT: Final = 80
_WHY: Final = 300

_NAMES: Final = ("path", "url", "query", "file", "name", "statement", "pattern", "command", "code")
"""Parameters by which people know what a step is about, the clearest first."""

_OURS: Final = frozenset(
    {
        verdicts.STEPS_DONE, verdicts.STEPS_DONE_IN_PLACES, verdicts.STEPS_MISSING, verdicts.NOTHING_DONE,
        verdicts.NOT_ASKED, verdicts.UNREADABLE, verdicts.NOT_SAID, verdicts.WANTED_MORE, verdicts.JUDGED_REACHED,
        verdicts.JUDGED_NOT_REACHED, verdicts.INSTEAD, verdicts.STOPPED,
    }
)  # fmt: skip
"""Reasons of ours, which say no more than the form does."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The form in one language."""

    language: Language
    reached: Mapping[Reached, str]
    stopped: str
    missing: str
    instead: str
    aside: str
    whole: str


_ENGLISH: Final = _Words(
    "en",
    {
        "yes": "It is done.",
        "partly": "Not all of it is done.",
        "no": "It is not done.",
        "unknown": "Nobody has checked whether it is done.",
    },
    "Stopped.",
    "What is missing:",
    "Done in another way than it was planned:",
    "Changed in a copy only, and not kept:",
    "the whole",
)
_GERMAN: Final = _Words(
    "de",
    {
        "yes": "Es ist erledigt.",
        "partly": "Es ist nicht alles erledigt.",
        "no": "Es ist nicht erledigt.",
        "unknown": "Ob es erledigt ist, hat niemand geprüft.",
    },
    "Angehalten.",
    "Was fehlt:",
    "Anders getan als geplant:",
    "Nur in einer Kopie geändert und nicht aufbewahrt:",
    "das Ganze",
)
_CHINESE: Final = _Words(
    "zh",
    {
        "yes": "已完成。",
        "partly": "没有全部完成。",
        "no": "没有完成。",
        "unknown": "没有人检查过是否完成。",
    },
    "已停止。",
    "缺少的部分：",
    "实际做法与计划不同：",
    "只在副本中更改，没有保留：",
    "全部",
)

_CHINESE_CHARACTERS: Final = re.compile(r"[\u4e00-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_LATIN_WORDS: Final = re.compile(r"[A-Za-z]{2,}")

_GERMAN_WORDS: Final = re.compile(
    r"[äöüß]|\b(?:der|die|das|und|ist|ein|eine|mit|für|nicht|bitte|welche|wie|was|von|zu|auf|aus|sieh|schreib\w*|mach\w*)\b",
    re.IGNORECASE,
)
_ENGLISH_WORDS: Final = re.compile(
    r"\b(?:the|and|is|of|to|a|in|for|with|not|what|which|how)\b", re.IGNORECASE
)


def answer_of(run: PlanRun, ending: Ending, aside: Sequence[str] = ()) -> str:
    """The answer: what was found or done, and then only what it lacks.

    `aside`: files that were changed in the throw-away layer of somebody who may only read.
    """
    machine = run.machine
    if machine is not None and machine.run.way_out is not None:
        return machine.run.way_out.text

    words = _words_for("\n".join((*run.briefing.words, run.source.goal)))
    verdict = ending.verdict
    parts: list[str] = []
    if verdict.by == "person" and verdict.reached != "yes":
        parts.append(words.stopped)
    elif verdict.reached != "yes":
        parts.append(f"{words.reached[verdict.reached]} {_reason(run, ending, words)}".strip())

    if ending.answer is not None:
        parts.append(as_text(ending.answer))
    else:
        parts += _results(run)

    if verdict.missing:
        rows = (
            f"- {_subject_of(run, one, words)}: {_why(why, words)}" for one, why in verdict.missing.items()
        )
        parts.append("\n".join([words.missing, *rows]))
    # A model's answer says what was done instead of what; the form has to.
    if verdict.replaced and ending.answer is None:
        rows = (
            f"- {_subject_of(run, one, words)} → {', '.join(_subject_of(run, heir, words) for heir in heirs)}"
            for one, heirs in verdict.replaced.items()
        )
        parts.append("\n".join([words.instead, *rows]))
    if aside:
        parts.append("\n".join([words.aside, *(f"- {labels.inline(path, _SUBJECT)}" for path in aside)]))
    return "\n\n".join(parts) or words.reached[verdict.reached]


def _words_for(text: str) -> _Words:
    """The form in the language of a request: Chinese, German, or else English."""
    chinese = len(_CHINESE_CHARACTERS.findall(text))
    # A Chinese request names files and programs in Latin letters; a Japanese one has kana between its characters.
    if chinese > len(_LATIN_WORDS.findall(text)) and not _KANA.search(text):
        return _CHINESE

    german, english = len(_GERMAN_WORDS.findall(text)), len(_ENGLISH_WORDS.findall(text))
    return _GERMAN if german > english else _ENGLISH


def _reason(run: PlanRun, ending: Ending, words: _Words) -> str:
    """Why it did not end well; empty if that says no more than the form."""
    because = ending.verdict.because
    if because == verdicts.NOTHING_DONE and not run.work():
        # There never was a step, so what went wrong is what was warned of.
        return " ".join(_why(warning, words) for warning in ending.warnings)

    if because in _OURS:
        return ""
    return told_reason(because, words.language)


def _results(run: PlanRun) -> Iterator[str]:
    """What the last steps gave, each under what it is about if there are several."""
    last = [record for record in last_steps(run) if record.output is not None]
    for record in last:
        text = excerpt(as_text(record.output).rstrip("\n"), _SHOWN)
        yield f"{_subject(record.node)}:\n{text}" if len(last) > 1 else text


def last_steps(run: PlanRun) -> list[NodeRecord]:
    """Executed steps of the current version that no other of its steps builds on."""
    work = run.work()
    needed = {one for record in work if record.state != "cancelled" for one in record.node.dependencies}
    return [record for record in work if record.state == "executed" and record.node.id not in needed]


def _subject_of(run: PlanRun, step: str, words: _Words) -> str:
    record = run.state.nodes.get(step)
    return _subject(record.node) if record is not None else words.whole


def _subject(node: PlanNode) -> str:
    """What a step is about, as a person would name it: its task, or the file, address or command that it works on."""
    if node.task:
        return labels.inline(node.task, _SUBJECT)
    named = [node.params[name] for name in _NAMES if isinstance(node.params.get(name), str)]
    return labels.inline(str(named[0]), _SUBJECT) if named else node.call


def _why(reason: str, words: _Words) -> str:
    return labels.inline(told_reason(reason, words.language), _WHY)
