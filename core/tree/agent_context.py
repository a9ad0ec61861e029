"""What an agent's model has been shown so far, and what therefore need not be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

from iact.core.context.history import History
from iact.core.context.tail import Told


@dataclass(slots=True)
class AgentContext:
    """An agent's context up to its last turn. `fresh`: it has had no turn yet. `first`: its first message.

    `forked`: it began with its caller's history. `known`: functions whose documentation it has read. `offers`: the
    functions of state-machine modules that it was last shown, by module. `told`: what the history says about the state;
    None where the next tail must be complete. `full_told`: it was told that its context is filling up.
    """

    history: History
    fresh: bool = True
    first: str = ""
    forked: bool = False
    known: set[str] = field(default_factory=set)
    offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    told: Told | None = None
    full_told: bool = False
    shares: str = ""
    """The line of its first message about the files that it shares with others."""

    def fork(self) -> AgentContext:
        """Return the context of a child that begins with this history."""
        return AgentContext(self.history.copy(), forked=True, known=set(self.known))
