"""The cells of the table: which command ends how, at which moment, over which backend; and which of them can't be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeAlias

Command: TypeAlias = Literal["run", "serve", "mcp", "acp", "host"]
Ending: TypeAlias = Literal["INT", "TERM", "HUP", "KILL", "terminal closed", "timeout", "container stop"]
Moment: TypeAlias = Literal["start", "model writing", "call running", "job running", "approval pending"]
Backend: TypeAlias = Literal["docker", "bubblewrap", "off"]

COMMANDS: Final[Sequence[Command]] = ("run", "serve", "mcp", "acp", "host")
ENDINGS: Final[Sequence[Ending]] = (
    "INT", "TERM", "HUP", "KILL", "terminal closed", "timeout", "container stop",
)  # fmt: skip
MOMENTS: Final[Sequence[Moment]] = (
    "start", "model writing", "call running", "job running", "approval pending",
)  # fmt: skip
BACKENDS: Final[Sequence[Backend]] = ("docker", "bubblewrap", "off")

_NO_MODULES: Final = "with modules off, nothing is called, runs as a job, or asks"
_NO_NAMESPACES: Final = "in a container of its own a command gets no namespaces to make a sandbox of"


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to end."""

    command: Command
    ending: Ending
    moment: Moment
    backend: Backend

    @property
    def name(self) -> str:
        """All four, for people and for `--only`."""
        return f"{self.command} · {self.ending} · {self.moment} · {self.backend}"

    @property
    def why_not(self) -> str:
        """Why this can't be; "" if it can."""
        if self.backend == "off" and self.moment in ("call running", "job running", "approval pending"):
            return _NO_MODULES
        if self.backend == "bubblewrap" and self.ending == "container stop":
            return _NO_NAMESPACES
        return ""

    @property
    def in_order(self) -> bool:
        """Whether the command hears of its end, so that it leaves nothing at all."""
        return self.ending != "KILL"


CELLS: Final = tuple(
    Cell(command, ending, moment, backend)
    for backend, command, moment, ending in product(BACKENDS, COMMANDS, MOMENTS, ENDINGS)
)
POSSIBLE: Final = tuple(cell for cell in CELLS if not cell.why_not)


def a_fifth() -> list[Cell]:
    """Every fifth of the cells that can be: each command, ending, moment and backend is among them."""
    return list(POSSIBLE[2::5])
