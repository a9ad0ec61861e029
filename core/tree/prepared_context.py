"""One context, ready to be sent. `core.tree.contexts` builds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.scanner import Scan
from iact.core.language.variables import Table
from iact.core.ports import ChatMessage, Part
from iact.core.records.dialogue import LastTurn
from iact.core.records.parts import Seen


@dataclass(frozen=True, slots=True)
class Composed:
    """What is new in a context, before it is known whether the turn is the agent's last or its context too full.

    `parts`: the paragraphs of the input. `beside`: what is shown besides text. `newest`: the last message, as far as it
    is known. The other fields are as in `PreparedContext`.
    """

    parts: tuple[str, ...]
    tail: str
    beside: tuple[Part, ...]
    took: tuple[int, ...]
    notes: Mapping[str, int]
    seen: Seen
    table: Table
    newest: ChatMessage
    sources: Labels = NOTHING
    """The labels of the values whose content it shows."""


@dataclass(frozen=True, slots=True)
class PreparedContext:
    """One context, ready to be sent: what is new in it, and the digest over all of it.

    `newest`: its last message, which is this turn's input with the tail. `table`: the agent's variables, including
    those that the messages brought. `last`: why no turn follows; empty if one may. `full`: the percentage that the
    agent was told; 0 if none.
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
    sources: Labels = NOTHING
    """The labels of the values whose content it shows."""


Stamp = tuple[int, int]
"""The state of one agent and of what all agents share (`Tree.stamp`). The agent's context only changes with it."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A reply's context and blocks, computed in advance by the code that requested it. The tree derives the same from
    the record.

    `stamp`: the state in which they were computed.
    """

    stamp: Stamp
    prepared: PreparedContext
    scanned: Scan


def newest_message(text: str, end: str, parts: tuple[Part, ...]) -> ChatMessage:
    """The last message of a context: a turn's input with the tail, and what it shows besides text."""
    return ChatMessage("user", f"{text}\n\n{end}" if end else text, parts)
