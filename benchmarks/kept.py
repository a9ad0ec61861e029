"""What a benchmark hands over for the report, beside the Markdown that it prints: numbers, and charts of them.

A benchmark started by `python -m benchmarks` finds a file to write to in its environment; started by
itself it has none, and nothing is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

VARIABLE: Final = "IACT_BENCH_KEPT"


@dataclass(frozen=True, slots=True)
class Chart:
    """`lines`: each a name and its points (x, y). For bars, x is what stands below a group of them.

    `log`: both axes of a chart of lines, or the values of one of bars, are logarithmic.
    """

    title: str
    x: str
    y: str
    lines: Sequence[tuple[str, Sequence[tuple[float | str, float]]]]
    kind: Literal["lines", "bars"] = "lines"
    log: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A number, and what is wanted of it: not above `limit`, with `most`, else not below. None: it is only told."""

    name: str
    value: float
    limit: float | None
    unit: str = ""
    most: bool = True

    @property
    def met(self) -> bool:
        """Whether it is as wanted."""
        if self.limit is None:
            return True
        return self.value <= self.limit if self.most else self.value >= self.limit

    def line(self) -> str:
        """One row of the table of targets."""
        number = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.2f}"
        wanted = "–" if self.limit is None else f"{'≤' if self.most else '≥'} {self.limit:,g}"
        verdict = "–" if self.limit is None else "yes" if self.met else "**no**"
        return f"| {self.name} | {number} {self.unit}".rstrip() + f" | {wanted} | {verdict} |"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def targets(some: Sequence[Target]) -> None:
    """Print what was wanted and what came out."""
    table(("target", "measured", "wanted", "met"), [])
    print("\n".join(target.line() for target in some), flush=True)


def chart(made: Chart) -> None:
    """Hand over a chart."""
    _hand_over({"chart": asdict(made)})


def numbers(found: Mapping[str, object]) -> None:
    """Hand over what was measured."""
    _hand_over({"numbers": dict(found)})


def _hand_over(line: dict[str, object]) -> None:
    if place := os.environ.get(VARIABLE):
        with Path(place).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
