"""What an agent's model has been shown so far, and what therefore need not be repeated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from iact.core.context.history import History
from iact.core.context.tail import Told
from iact.core.gate.provenance import NOTHING, Labels

_CALLS: Final = 200
"""The most calls, and the most replies, that a chronicle holds. Older ones are in the journal only."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of the caller or of a person that the agent has read."""

    source: str
    """Who wrote it, as the agent reads it."""

    text: str

    labels: Labels = NOTHING
    """The sources of its text."""

    first: bool = False
    """Whether it is in the agent's first message."""

    variable: str = ""
    """The variable that holds it, if it is long and its history has been cut."""

    own: str = ""
    """What a person wrote of it; empty if nobody did."""

    record: int = 0
    """The record of the message."""

    read: int = 0
    """The record with which the agent has read it."""

    at: str = ""
    """When it has read it: ISO 8601, UTC."""

    def kept_as(self, variable: str) -> Heard:
        """The same message, with the variable that holds it from now on."""
        return replace(self, variable=variable)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of the agent to its caller."""

    heard: int
    """How many messages it had heard by then."""
    text: str
    labels: Labels = NOTHING
    """The sources of all that it had read by then."""


@dataclass(slots=True)
class Chronicle:
    """What happened to an agent, for the time when its history is cut (`core.tree.chronicle`)."""

    heard: list[Heard] = field(default_factory=list)
    """The messages of its caller and of people, oldest first."""

    answers: deque[Answered] = field(default_factory=lambda: deque(maxlen=_CALLS))
    """Its answers to its caller, oldest first."""

    done: deque[str] = field(default_factory=lambda: deque(maxlen=_CALLS))
    """Its calls, a line each with the outcome, oldest first."""

    replies: deque[str] = field(default_factory=lambda: deque(maxlen=_CALLS))
    """The replies of its children, a line each."""

    files: dict[str, None] = field(default_factory=dict)
    """The files that it wrote, the newest last."""

    skills: dict[str, None] = field(default_factory=dict)
    """The skills that it has used, as modules, the newest last."""

    distilled: int = 0
    """How many of its messages have been distilled (`core.tree.distilling`)."""

    def skip_distilling(self) -> None:
        """Count all that it has read by now as distilled."""
        self.distilled = len(self.heard)

    def copy(self) -> Chronicle:
        """Return an independent copy."""
        return Chronicle(
            list(self.heard),
            self.answers.copy(),
            self.done.copy(),
            self.replies.copy(),
            dict(self.files),
            dict(self.skills),
            self.distilled,
        )


@dataclass(slots=True)
class AgentContext:
    """An agent's context up to its last turn."""

    history: History
    fresh: bool = True
    """It has had no turn yet."""
    first: str = ""
    """Its first message, which survives every cut."""
    forked: bool = False
    """It began with its caller's history."""
    known: set[str] = field(default_factory=set)
    """The functions whose documentation it has read, or which it has called."""
    at_first: set[str] = field(default_factory=set)
    """The functions whose documentation is in its first message."""
    used: dict[str, None] = field(default_factory=dict)
    """The functions that it called since its history was last cut, in the order of their first calls."""
    offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The functions of state-machine modules that it was last shown, by module."""
    opened: set[str] = field(default_factory=set)
    """The functions that states of their modules opened, and that it was told of since its history was last cut."""
    held: dict[str, None] = field(default_factory=dict)
    """The state-machine modules of which an instance has served it."""
    lost: dict[str, None] = field(default_factory=dict)
    """Those whose instance is gone since its last turn, because its session was left."""
    moved: dict[str, str] = field(default_factory=dict)
    """What its next state line says about the states of modules, by module."""
    remembered: tuple[str, ...] = ()
    """What memory recalled for its last turn, line by line."""
    told: Told | None = None
    """What the history says about the state; None where the next tail must be complete."""
    full_told: bool = False
    """It was told that its context is filling up."""
    reads_only: bool = False
    """It was told that it may look at things and change nothing."""
    chronicle: Chronicle = field(default_factory=Chronicle)
    """What happened, and survives a cut."""
    after_cut: int = 0
    """The tokens of the history after its last cut; 0 if it was never cut."""
    cut_note: str = ""
    """What the last cut put in the place of the history."""
    asked_again: bool = False
    """Whether a summary of its own was refused since the last cut, so that it was asked for another one."""
    shares: str = ""
    """The line of its first message about the files that it shares with others."""

    def use(self, function: str) -> None:
        """Note a call of a function. An agent that has called it knows it."""
        self.known.add(function)
        self.used[function] = None

    def begin(self, documented: Iterable[str]) -> None:
        """Note the functions whose documentation is in the first message, which the agent has read now."""
        self.at_first.update(documented)
        self.known |= self.at_first
        self.fresh = False

    def lose_instances(self) -> None:
        """Note that the modules that it used hold nothing of it any more, and are in their initial states."""
        self.lost |= self.held
        self.held.clear()
        self.moved.clear()
        self.offers.clear()

    def told_of_modules(self) -> None:
        """Note that its turn has read what became of modules."""
        if self.lost or self.moved:
            self.lost.clear()
            self.moved.clear()

    def change(self, functions: AbstractSet[str]) -> None:
        """Forget functions that changed: what it has read about them is out of date."""
        self.known -= functions
        self.at_first -= functions
        self.opened -= functions

    def forget(self) -> None:
        """Forget what it has read about functions."""
        self.known.clear()
        self.at_first.clear()
        self.used.clear()
        self.opened.clear()

    def cut(self) -> list[str]:
        """Note that the history was cut after the first message. Returns the functions that it used and forgets."""
        forgotten = [name for name in self.used if name not in self.at_first]
        self.used.clear()
        self.opened.clear()
        self.known = set(self.at_first)
        return forgotten

    def fork(self) -> AgentContext:
        """Return the context of a child that begins with this history."""
        return AgentContext(
            self.history.copy(), forked=True, known=set(self.known), chronicle=self.chronicle.copy()
        )
