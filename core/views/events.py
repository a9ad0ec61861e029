"""What a watcher of a session sees: journal records, live text, and the shape of the tree.

Records are the truth and carry numbers. The other events are transient: a watcher that misses some loses nothing that a
record will not report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iact.core.records.record import Record
from iact.core.views.view import NodeView


@dataclass(frozen=True, slots=True)
class RecordAppended:
    """A record is durable in the journal."""

    record: Record


@dataclass(frozen=True, slots=True)
class Delta:
    """A model is writing: `text` is the next piece of agent `agent`'s reply. `restart`: everything before it is void.

    `thought`: it is a piece of the model's reasoning before the reply.
    """

    agent: str
    text: str
    restart: bool = False
    thought: bool = False


ActivityState = Literal[
    "", "asking", "reasoning", "writing", "limited", "retrying", "stalled", "slot", "loading"
]
"""What a model is doing while it is asked, or why it waits; empty if it is no longer being asked."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What the model of an agent is doing, and since when. `until`: when a wait ends. Times are ISO 8601, UTC.

    `attempt`: the number of the next attempt, of at most `of`. `why`: what failed, for people.
    """

    agent: str
    state: ActivityState
    since: str
    until: str = ""
    attempt: int = 0
    of: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class OutputEvent:
    """A running tool printed something. `call`: number of its `call` record."""

    agent: str
    call: int
    text: str


@dataclass(frozen=True, slots=True)
class TreeChanged:
    """The tree's shape or a node's state changed. `nodes`: in order of creation, the root first."""

    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Something that a person should know at once ("building the base image: 3 of 5")."""

    text: str


Event = RecordAppended | Delta | Activity | OutputEvent | TreeChanged | NoticeEvent
