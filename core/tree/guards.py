"""What bounds an agent's work: how long it has worked, how often it repeated itself, and why it must end."""

from __future__ import annotations

from dataclasses import dataclass, field

Call = tuple[str, str]
"""A function, and what tells its calls apart: the digest of the call's kind."""

Seen = tuple[str, str, str]
"""A call, and the digest of its outcome."""


@dataclass(slots=True)
class Guards:
    """The counts of one activation, from the message that woke an agent to its reply."""

    began: str = ""
    """When it began."""
    pauses: list[tuple[str, str]] = field(default_factory=list)
    """When the agent itself was paused and resumed; the last end is "" during a pause."""
    turns: int = 0
    """The number of turns so far."""
    warned: bool = False
    """Whether it was told that children are still at work."""
    asked: frozenset[str] = frozenset()
    """What it was asked or told about parts of its texts that were perhaps meant to be run."""
    misnamed: set[str] = field(default_factory=set)
    """Names in its messages of which it was told that they name no variable."""
    wrote: tuple[str, int] = ("", 0)
    """The last text of this task that can be its answer, and the record of its turn."""
    only_thought: bool = False
    """Whether its last reply was nothing but reasoning, and it was asked for an answer."""
    repeats: dict[Call, tuple[str, int]] = field(default_factory=dict)
    """Calls that failed: the digest of the last outcome, and how often in a row it came (`core.tree.loops`)."""
    again: dict[Seen, tuple[int, int]] = field(default_factory=dict)
    """How often calls that went well were made with nothing new in between, and in which turn last."""
    seen: dict[Seen, None] = field(default_factory=dict)
    """The outcomes so far, the oldest first."""
    incomplete: dict[Call, int] = field(default_factory=dict)
    """Calls that did not complete: how often they were made and, after that, written. Forgotten with the next message
    that must be answered."""
    sent: dict[str, str] = field(default_factory=dict)
    """What the last CALL_ASYNC to each child said, by digest, until its reply is read."""
    ended: str = ""
    """Why its work must end now, if it must."""

    def begin(self, at: str) -> None:
        """Start counting: a message wakes the agent."""
        self.began = at
        self.turns = 0
        self.warned = False
        self.only_thought = False
        self.ended = ""
        self.asked = frozenset()
        self.wrote = ("", 0)
        self.misnamed.clear()
        self.repeats.clear()
        self.again.clear()
        self.seen.clear()

    def hear(self) -> None:
        """Note that a message came that must be answered: what did not help before may help now."""
        self.incomplete.clear()
        self.again.clear()

    def pause(self, at: str) -> None:
        """Note that the agent is paused."""
        self.pauses.append((at, ""))

    def stood(self, since: str, until: str) -> None:
        """Note that its time stood still in this span. An open pause stays the last one."""
        self.pauses.insert(0, (since, until))

    def resume(self, at: str) -> None:
        """Note that the agent resumes."""
        self.pauses[-1] = (self.pauses[-1][0], at)
