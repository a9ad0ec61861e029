"""What models that think about a plan are told besides the plan itself: the person's words, what was said before, what is
known.

It is fixed when a plan begins, so that equal plans ask equal questions. What a person says while the plan runs is part of
the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that the caller handed over, or that it could hand over."""

    about: str
    """Its name, type and size: "$hosts (text/plain, 40 B)"."""
    text: str | None = None
    """The whole value, if it is short."""


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """A message of the conversation that led to the plan."""

    who: Literal["person", "agent"]
    text: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """What models are told."""

    date: str = ""
    """The day on which the plan began."""
    constraints: Sequence[str] = ()
    """What the plan's author demands."""
    known: Sequence[KnownValue] = ()
    """Values that its steps can use."""
    models: Sequence[str] = ()
    """Roles of models that its steps may name."""
    words: Sequence[str] = ()
    """What the person wrote that the plan is for, word for word, oldest first. Empty if a program asked for it."""
    summary: str = ""
    """What the older part of the conversation said, in fewer words."""
    conversation: Sequence[SaidBefore] = ()
    """The last messages before those words, oldest first."""
    files: Sequence[str] = ()
    """Files of the workspace when the plan began, each with its size."""
    more_files: int = 0
    """How many more there were."""
    memory: Sequence[str] = ()
    """What is known of the person and the project from earlier sessions, a line each."""

    def ruled(self) -> str:
        """The constraints, as all models and agents that work on the plan are told them; empty if there are none."""
        if not self.constraints:
            return ""
        return "\n".join(["What the caller demands of it:", *(f"- {one}" for one in self.constraints)])


NOTHING: Final = Briefing()
