"""What a watcher of a session sees: journal records, live text, and the shape of the tree.

Records are the truth and carry numbers; the other events are passing, and a watcher that misses
some loses nothing that a record will not tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.records.record import Record
from core.session.view import NodeView


@dataclass(frozen=True, slots=True)
class RecordAppended:
    """A record is durable in the journal."""

    record: Record


@dataclass(frozen=True, slots=True)
class Delta:
    """A model writes: `text` is the next piece of agent `agent`'s reply. `restart`: what came before is void."""

    agent: str
    text: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A running tool prints. `call`: number of its `call` record."""

    agent: str
    call: int
    text: str


@dataclass(frozen=True, slots=True)
class TreeChanged:
    """The tree's shape or a node's state changed; `nodes` in order of creation, the root first."""

    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know now ("building the base image: 3 of 5")."""

    text: str


Event = RecordAppended | Delta | Output | TreeChanged | Notice
