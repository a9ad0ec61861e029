"""One context, ready to be sent. How it is built: `core.tree.contexts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iact.core.language.scanner import Scan
from iact.core.language.variables import Table
from iact.core.ports import ChatMessage, Part
from iact.core.records.dialogue import LastTurn
from iact.core.records.parts import Seen


@dataclass(frozen=True, slots=True)
class Composed:
    """What is new in a context, before it is known whether the turn is the agent's last, or its context too full.

    `parts`: the paragraphs of the input; `beside`: what is shown beside text; `newest`: the last message, as far as it is
    known. The rest as in `PreparedContext`.
    """

    parts: tuple[str, ...]
    tail: str
    beside: tuple[Part, ...]
    took: tuple[int, ...]
    notes: Mapping[str, int]
    seen: Seen
    table: Table
    newest: ChatMessage


@dataclass(frozen=True, slots=True)
class PreparedContext:
    """One context, ready to be sent: what is new in it, and the digest over all of it.

    `newest`: its last message, which is this turn's input with the tail. `table`: the agent's variables with those that the messages brought. `last`: why no turn follows, if so;
    `full`: the percentage that the agent was told, if so.
    """

    input: str
    tail: str
    parts: tuple[Part, ...]
    took: tuple[int, ...]
    notes: Mapping[str, int]
    seen: Seen
    table: Table
    last: LastTurn
    full: int
    digest: str
    newest: ChatMessage


Stamp = tuple[int, int]
"""The state of one agent and of what all agents share (`Tree.stamp`): until it changes, a context can't be another."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a reply answers and holds, as whoever had it written knows already. The tree finds the same in its record.

    `stamp`: the state that it was found in.
    """

    stamp: Stamp
    prepared: PreparedContext
    scanned: Scan


def newest_message(text: str, end: str, parts: tuple[Part, ...]) -> ChatMessage:
    """The last message of a context: a turn's input with the tail, and what it shows beside text."""
    return ChatMessage("user", f"{text}\n\n{end}" if end else text, parts)
