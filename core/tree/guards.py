"""What bounds an agent's work: how long it has worked, how often it repeated itself, and why it must end."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field

Call = tuple[str, str]
"""A function and the digest of its arguments."""

Repeats = MutableMapping[Call, tuple[str, int]]
"""Call → (digest of its last outcome, how often in a row)."""


@dataclass(slots=True)
class Guards:
    """The counts of one activation: from the message that woke an agent to its reply.

    `began`: when it began; `pauses`: from when to when the agent itself was paused, the last one open ("") while it
    is. `turns`: how many it took. `warned`: it was told that children are still at work. `repeats` and `incomplete`:
    calls that went wrong, for `core.tree.loops`; a call that did not complete is forgotten with the next message that
    must be answered. `ended`: why its work must end now, if so.
    """

    began: str = ""
    pauses: list[tuple[str, str]] = field(default_factory=list)
    turns: int = 0
    warned: bool = False
    repeats: Repeats = field(default_factory=dict)
    incomplete: dict[Call, int] = field(default_factory=dict)
    ended: str = ""

    def begin(self, at: str) -> None:
        """A message wakes the agent."""
        self.began, self.turns, self.warned, self.ended = at, 0, False, ""
        self.repeats.clear()

    def pause(self, at: str) -> None:
        """The agent is paused."""
        self.pauses.append((at, ""))

    def stood(self, since: str, until: str) -> None:
        """Its time stood still. A pause that is open stays the last one."""
        self.pauses.insert(0, (since, until))

    def resume(self, at: str) -> None:
        """It goes on."""
        self.pauses[-1] = (self.pauses[-1][0], at)
