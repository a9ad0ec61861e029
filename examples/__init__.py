"""Recorded sessions that show what the product does, for users who have no model yet.

Each is a folder with a journal, like any session. The model was scripted (`examples/recording/`). Everything else
was real: the server, the gate, the containers, every result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded session. `name`: the name of its folder. `about`: a description for people."""

    name: str
    title: str
    about: str

    @property
    def folder(self) -> Path:
        """The folder with its journal."""
        return HERE / self.name


EXAMPLES: Final = (
    Example(
        "research",
        "Research in parallel",
        "Three agents measure side by side, one has its work checked, one asks back; the root decides.",
    ),
    Example(
        "analysis",
        "Data with plots",
        "A file becomes a variable, a statistician looks into it, and charts pass between agents by name.",
    ),
    Example(
        "cleaned",
        "A data set, cleaned and reported",
        "SQL looks at a messy table, an interpreter that remembers cleans and draws it, and a report says what was changed.",
    ),
    Example(
        "bugfix",
        "A bug, found and fixed",
        "A failing test, a change in one place, a green run, and a reviewer who may look but not touch.",
    ),
    Example(
        "service",
        "A question becomes a small service",
        "A page with a data base is written, its tests find a hole, and the person who asked can open it.",
    ),
    Example(
        "plan",
        "A plan that needs your yes",
        "Steps run as a graph, in parallel where they can; what leaves the house waits for a person.",
    ),
    Example(
        "meeting",
        "A plan that you change while it runs",
        "A meeting is booked in steps that hand values on; you say something in between, and what has not begun is planned again.",
    ),
    Example(
        "harness",
        "Ten steps in six rounds",
        "Searches run side by side, two fixes race and either will do, then tests and documentation.",
    ),
    Example(
        "rounds",
        "Judged, and planned again",
        "A doubtful answer is looked into once more; a question that can't be answered is given up, with the reason.",
    ),
    Example(
        "profiled",
        "Three calls, whatever comes",
        "A profile with rules adapts without asking: a branch, a recovery, one repair, one report.",
    ),
    Example(
        "module",
        "An agent writes its own tool",
        "It deploys a module, reads the stack trace, fixes it, uses it, and a second agent finds it there.",
    ),
    Example(
        "correction",
        "Corrected in mid-flight",
        "You stop an agent two levels down in the middle of a sentence, tell it better, and it goes on.",
    ),
)


def find(name: str) -> Example | None:
    """The example with this name."""
    return next((one for one in EXAMPLES if one.name == name), None)
