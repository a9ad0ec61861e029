"""What models that think about a plan are told besides its goal: the date, the caller's constraints, known values and
model roles.

It is fixed when a plan begins, so that equal plans ask equal questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that the caller handed over.

    `about`: "$hosts (text/plain, 40 B)". `text`: the whole value, if it is short.
    """

    about: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Briefing:
    """What models are told. `date`: the day on which the plan began. `models`: roles that its steps may name."""

    date: str = ""
    constraints: Sequence[str] = ()
    known: Sequence[KnownValue] = ()
    models: Sequence[str] = ()

    def ruled(self) -> str:
        """The constraints, as all models and agents that work on the plan are told them; empty if there are none."""
        if not self.constraints:
            return ""
        return "\n".join(["What the caller demands of it:", *(f"- {one}" for one in self.constraints)])

    def told(self) -> str:
        """The whole briefing, as a planner is told it. Ends with a blank line unless it is empty."""
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
