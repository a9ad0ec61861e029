"""What a watcher of a session sees: journal records, live text, and the shape of the tree.

Records are the truth and carry numbers; the other events are passing, and a watcher that misses
some loses nothing that a record will not tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.journal.record import Record

AgentState = Literal["idle", "thinking", "acting", "waiting", "paused", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of the tree, as a person sees it.

    `paused`: its own latch is closed; `state` is "paused" where this or an ancestor's latch is closed.
    `doing`: a few words ("shell.run", "waiting for /coder"). Token counts are this node's own.
    """

    path: str
    name: str
    caller: str
    kind: Literal["agent", "plan"]
    state: AgentState
    paused: bool
    doing: str
    turns: int
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    record: int
    """Number of the newest record of this node."""


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
