"""One context, ready to be sent. `core.tree.contexts` builds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.scanner import Block, Scan
from iact.core.language.variables import Table
from iact.core.ports import ChatMessage, Part
from iact.core.records.dialogue import Held, LastTurn
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


@dataclass(frozen=True, slots=True)
class ReadReply:
    """A reply as it is understood."""

    run: tuple[Block, ...]
    """Its blocks, without the actions that are not run."""
    remarks: tuple[str, ...]
    """What its agent is told about it, if it gets another turn."""
    held: Held
    """Why it is no reply yet although it holds no action that is run."""
    acts: bool
    """Whether it holds an action, or something that was meant as one, so that another turn follows."""
    answer: str = ""
    """The text that is the reply, if its actions are done beside it."""
    questions: tuple[str, ...] = ()
    """What is asked or said about parts that were perhaps meant to be run. Each is said once in a task."""


Stamp = tuple[int, int]
"""The state of one agent and of what all agents share (`Tree.stamp`). The agent's context only changes with it."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A reply's context, its blocks and what becomes of it, computed in advance by the code that requested it. The tree
    derives the same from the record.
    """

    stamp: Stamp
    """The state in which they were computed."""
    prepared: PreparedContext
    scanned: Scan
    read: ReadReply


def newest_message(text: str, end: str, parts: tuple[Part, ...]) -> ChatMessage:
    """The last message of a context: a turn's input with the tail, and what it shows besides text."""
    return ChatMessage("user", f"{text}\n\n{end}" if end else text, parts)
