"""The numbers and charts that a benchmark passes to the report, in addition to the Markdown that it prints.

`python -m benchmarks` names a file for them in the environment of each benchmark. A benchmark that is started
on its own has no such file, and stores nothing.
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
    """`lines`: each a name and its points (x, y). For bars, x is the label below a group of bars.

    `log`: both axes of a line chart, or the values of a bar chart, are logarithmic.
    """

    title: str
    x: str
    y: str
    lines: Sequence[tuple[str, Sequence[tuple[float | str, float]]]]
    kind: Literal["lines", "bars"] = "lines"
    log: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A number and its target: at most `limit`, or at least `limit` if `most` is false. None: it is only reported."""

    name: str
    value: float
    limit: float | None
    unit: str = ""
    most: bool = True

    @property
    def met(self) -> bool:
        """Whether the number meets its target."""
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
    """Print the targets and the measured numbers."""
    table(("target", "measured", "wanted", "met"), [])
    print("\n".join(target.line() for target in some), flush=True)


def chart(made: Chart) -> None:
    """Pass a chart to the report."""
    _hand_over({"chart": asdict(made)})


def numbers(found: Mapping[str, object]) -> None:
    """Pass the measured numbers to the report."""
    _hand_over({"numbers": dict(found)})


def _hand_over(line: dict[str, object]) -> None:
    if place := os.environ.get(VARIABLE):
        with Path(place).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
