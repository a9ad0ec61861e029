"""Distilling: a model is asked what of a person's messages is worth remembering, and its answer is read. Pure.

Plain rules take statements from a message as soon as it is read (`core.tree.statements`). A model understands more: any
language, and what was said in passing. It is asked off the hot path, about what the root has read since the last time,
and its answer is a record, so a rebuild of memory asks nobody.

    3 preference: I'm allergic to peanuts.
    5 withdrawn: I no longer want dates as 31.01.2026.

A clause counts only if the message that it names says it: most of its words are there. Questions of the message don't
count for that, nor what an order hands over behind a colon; a clause that begins as an order is none. So a model can hardly
invent a statement, and what it answers is worth as much as the message: the person's word. An answer of the
root is shown before the message that it led to, unless the root had read something from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from iact.core.context.tokens import estimate
from iact.core.language.labels import inline
from iact.core.ports import LONGEST_STATEMENT, ChatMessage, StatementKind
from iact.core.tree import origin
from iact.core.tree.agent_context import Heard
from iact.core.tree.statements import (
    Clause,
    as_clause,
    asserted,
    can_be_decision,
    is_bare_order,
    own_words,
    statements_in,
)
from iact.core.tree.tree import Tree

ANSWER_TOKENS: Final = 800
"""The most tokens of a model's answer."""

_MESSAGE: Final = 1_500
"""How many characters of one message the model reads."""

_ANSWER: Final = 200
"""How many characters of the root's answer before it."""

_MOST: Final = 30
"""The most messages that one question is about; further ones are left to the next."""

_FROM_ONE: Final = 6
"""The most statements that one message can make."""

_ASKED: Final = """\
Below are messages that a person wrote to an assistant, numbered. Write down what of them helps in later conversations: \
lasting wishes and constraints of the person (preference), decisions (decision), facts about the person or the project \
(fact), and lessons (lesson). What no longer holds is withdrawn. Write one clause a line, in this form:

NUMBER KIND: CLAUSE

NUMBER is that of the message that says it. KIND is preference, decision, fact, lesson or withdrawn. Write as the person, \
in the person's language, with the person's words, names and numbers. Leave out questions, orders, examples, quotations, \
what only the task at hand needs, and what you can't read there. If nothing is left, write: none
"""

_KNOWN: Final = "Known already, and not to be written again:"

_LINE: Final = re.compile(
    r"^[\s\-*•#]*\[?(?P<message>\d{1,4})\]?[.:)]?\s*\W{0,2}(?P<kind>preference|decision|fact|lesson|withdrawn)\W{0,2}\s*[:|–—-]\s*"
    r"(?P<clause>\S.*)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST: Final = 3
"""The letters of the shortest word that is compared."""

_WITHOUT_SPACES: Final = "\u2e80"
"""Where scripts begin that put no spaces between words: Chinese, Japanese and others of East Asia."""

_STEM: Final = 5
"""The letters of a word that are compared, so that its forms count as the same."""

_SAID: Final = 0.6
"""The share of a clause's words that its message must have."""

_SAME: Final = 0.75
"""The share of a clause's words from which another statement says the same."""

_ABOUT: Final = 0.5
"""The share from which a later withdrawal is about it."""


@dataclass(frozen=True, slots=True)
class DistillRequest:
    """A question about some of the root's messages."""

    until: int
    """How many of its messages have been distilled with it."""
    messages: Sequence[ChatMessage]


@dataclass(frozen=True, slots=True)
class Distilled:
    """One statement of a model's answer."""

    heard: Heard
    """The message that says it."""
    ordinal: int
    """Its number among the statements that were distilled from this message."""
    clause: Clause


def distiller(tree: Tree) -> str:
    """The role of the model that distils."""
    return "fast" if "fast" in tree.roles else "smart"


def request(tree: Tree) -> DistillRequest | None:
    """The question about what has not been distilled; None if nothing was said since, or its model is too small."""
    role = tree.roles.get(distiller(tree))
    if role is None or role.small or not tree.remembers:
        return None

    heard = tree.root.context.chronicle.heard
    since = tree.root.context.chronicle.distilled
    room = role.context // 2 - estimate(_ASKED) - ANSWER_TOKENS
    lines = list[str]()
    until = since
    for index, message in enumerate(heard[since : since + _MOST], start=since):
        told = _told(tree, index, message)
        room -= estimate(told)
        if room < 0 and lines:
            break
        if told:
            lines.append(told)
        until = index + 1
    if not lines:
        return None

    known = [clause.text for message in heard[since:until] for clause in statements_in(message.own)]
    listed = "\n".join([_KNOWN, *(f"- {text}" for text in known)]) if known else ""
    text = "\n\n".join(part for part in (_ASKED, listed, *lines) if part)
    return DistillRequest(until, [ChatMessage("user", text)])


def _told(tree: Tree, index: int, message: Heard) -> str:
    """A message as the model reads it, after what the root had answered last; empty if no person wrote it."""
    said = own_words(message.own).strip()
    if not said:
        return ""

    whole = said if len(said) <= _MESSAGE else f"{said[:_MESSAGE]} …"
    told = f"[{index + 1}] {whole}"
    chronicle = tree.root.context.chronicle
    before = next((answer for answer in reversed(chronicle.answers) if answer.heard == index), None)
    if before is None or origin.strange(tree, before.labels):
        return told
    return f"(The assistant had said: {inline(before.text, _ANSWER)})\n{told}"


def read(heard: Sequence[Heard], since: int, until: int, answer: str) -> Iterator[Distilled]:
    """The statements of a model's answer about `heard[since:until]`, the root's messages.

    Earlier messages are not read again: what they say was remembered, and what they withdraw came before.
    """
    stated = [
        (index, clause, _words(clause.text))
        for index, message in enumerate(heard[since:], start=since)
        for clause in statements_in(message.own)
    ]
    known = [words for _, _, words in stated]
    withdrawn = [(index, words) for index, clause, words in stated if clause.withdraws]
    counts: dict[int, int] = {}
    for line in answer.splitlines():
        match = _LINE.match(line)
        index = int(match["message"]) - 1 if match is not None else -1
        if match is None or not since <= index < until or counts.get(index, 0) == _FROM_ONE:
            continue

        clause = _clause(match["kind"].lower(), match["clause"], heard[index])
        if clause is None:
            continue
        words = _words(clause.text)
        taken_back = any(at > index and _share(words, its) > _ABOUT for at, its in withdrawn)
        if taken_back or any(_share(words, its) >= _SAME for its in known):
            continue

        known.append(words)
        ordinal = counts[index] = counts.get(index, 0) + 1
        yield Distilled(heard[index], ordinal, clause)


def _clause(kind: str, text: str, message: Heard) -> Clause | None:
    """A line of the answer as a statement; None if the message does not say it, or it is none."""
    text = text.strip()
    if text.endswith("?") or len(text) > LONGEST_STATEMENT or is_bare_order(text):
        return None

    if kind == "decision" and not can_be_decision(text):
        return None

    said = _words(asserted(message.own))
    words = _words(text)
    if not words or _share(words, said) < _SAID:
        return None
    if kind == "withdrawn":
        return as_clause(text, "preference", withdraws=True)
    return as_clause(text, cast(StatementKind, kind))


def _words(text: str) -> frozenset[str]:
    """The beginnings of a text's words, for comparison; of a script without spaces, its pairs of characters."""
    words = set[str]()
    for word in _WORD.findall(text.casefold()):
        if word[0] >= _WITHOUT_SPACES:
            words.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= _SHORTEST:
            words.add(word[:_STEM])
    return frozenset(words)


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    """The share of these words that are among the others."""
    return len(words & others) / len(words) if words else 0.0
