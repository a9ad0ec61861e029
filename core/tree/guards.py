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
    """The counts of one activation, from the message that woke an agent to its reply.

    `began`: when it began. `pauses`: when the agent itself was paused and resumed; the last end is "" during a pause.
    `turns`: the number of turns so far. `warned`: it was told that children are still at work. `repeats` and
    `incomplete`: calls that went wrong, for `core.tree.loops`; an incomplete call is forgotten with the next message
    that must be answered. `ended`: why its work must end now, if it must.
    """

    began: str = ""
    pauses: list[tuple[str, str]] = field(default_factory=list)
    turns: int = 0
    warned: bool = False
    asked: frozenset[str] = frozenset()
    """What it was asked or told about parts of its texts that were perhaps meant to be run."""
    wrote: tuple[str, int] = ("", 0)
    """The last text of this task that can be its answer, and the record of its turn."""
    repeats: Repeats = field(default_factory=dict)
    incomplete: dict[Call, int] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    ended: str = ""

    def begin(self, at: str) -> None:
        """Start counting: a message wakes the agent."""
        self.began, self.turns, self.warned, self.ended = at, 0, False, ""
        self.asked, self.wrote = frozenset(), ("", 0)
        self.repeats.clear()

    def pause(self, at: str) -> None:
        """Note that the agent is paused."""
        self.pauses.append((at, ""))

    def stood(self, since: str, until: str) -> None:
        """Note that its time stood still in this span. An open pause stays the last one."""
        self.pauses.insert(0, (since, until))

    def resume(self, at: str) -> None:
        """Note that the agent resumes."""
        self.pauses[-1] = (self.pauses[-1][0], at)
