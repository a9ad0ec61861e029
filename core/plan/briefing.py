"""What whoever thinks about a plan is told beside its goal: the day, the caller's constraints, what is known, who there is.

It is fixed when a plan begins, so that equal plans ask equal questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SHORT: Final = 300
"""Characters of a value that is told in full; a longer one is known by its name."""


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that the caller handed over. `about`: "$hosts (text/plain, 40 B)". `text`: all of it, where it is short."""

    about: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Briefing:
    """`date`: the day on which the plan began. `models`: roles that a step of its may name."""

    date: str = ""
    constraints: Sequence[str] = ()
    known: Sequence[KnownValue] = ()
    models: Sequence[str] = ()

    def ruled(self) -> str:
        """The constraints, as everybody is told them who thinks about the plan or works for it; empty without any."""
        if not self.constraints:
            return ""
        return "\n".join(["What the caller demands of it:", *(f"- {one}" for one in self.constraints)])

    def told(self) -> str:
        """All of it, as a planner is told; ends with a blank line if there is anything."""
        parts = [self.ruled()]
        if self.known:
            lines = [
                f"- {one.about}" + (f": {one.text}" if one.text is not None else "") for one in self.known
            ]
            head = "What is known already; `$name` in a parameter, or in the task of an agent, hands the whole value on:"
            parts.append("\n".join([head, *lines]))
        if self.date:
            parts.append(f"Today is {self.date}.")
        return "".join(f"{one}\n\n" for one in parts if one)


NOTHING: Final = Briefing()
