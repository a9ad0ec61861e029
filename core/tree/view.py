"""How people see the tree: one row for each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
