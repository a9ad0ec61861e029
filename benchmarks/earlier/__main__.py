"""The cost of the runtime, compared with an earlier commit in one run.

    python -m benchmarks.earlier [--before REVISION] [--rounds N] [--only NAME…]

Both commits do the same work in turns and in alternating order, each time in a new process, so that a change in the
speed of the machine affects both alike. The best of the rounds counts, because other work on the machine can only make
a round slower. Where a machine is never idle, the ratio of each round's pair says more: its median is reported, too.
Times are processor time of all threads. The number of called functions is reported as well; it is the same in every
run, however busy the machine is, but counting takes several times as long as the work. `--only` does the work of some
rows. Exits with status 1 if something costs over 3 % more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.beside.__main__ import checkout
from benchmarks.kept import Target

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "bd2f000"
"""The last commit at which an agent had 46 fields, and every record caused contexts to be built again."""
_MOST: Final = 1.03
_WORK: Final = Path(__file__).with_name("work.py")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `what`, `count`: arguments of `work.py`. `field`: which of its numbers. `rate`: higher is better."""

    name: str
    what: str
    count: int
    field: str
    unit: str
    rate: bool = False
    watch: int = 0
    """The number of the stopwatch in which calls are counted."""

    def cost(self, then: float, now: float) -> float:
        """The cost now, as a multiple of the earlier cost."""
        return then / now if self.rate else now / then


ROWS: Final = (
    Row("a step", "reading", 400, "cpu_ms", "ms"),
    Row("a step over HTTP", "over_http", 200, "cpu_ms", "ms"),
    Row("a step that waits for the disk", "writing", 200, "cpu_ms", "ms"),
    Row("a child, one after the other", "children", 200, "cpu_ms", "ms"),
    Row("a branch of 100 at the same time", "branches", 100, "cpu_ms", "ms"),
    Row("a branch of 1,000 at the same time", "branches", 1000, "cpu_ms", "ms"),
    Row("records verified", "reopening", 10_000, "verify_cpu", "/s", rate=True),
    Row("records resumed", "reopening", 10_000, "resume_cpu", "/s", rate=True, watch=1),
    Row("durable records of 64 writers", "appends", 64, "per_cpu_second", "/s", rate=True),
)

Found = dict[str, dict[str, list[float]]]
"""One number for each round, by side and then by the name of the figure."""


def measure(before: Path, rounds: int, chosen: Sequence[Row]) -> Found:
    """Do the work of these rows on both sides in every round."""
    sides = {"before": before, "now": ROOT}
    found: Found = {side: {row.name: [] for row in chosen} for side in sides}
    for number in range(rounds):
        for what, count in dict.fromkeys((row.what, row.count) for row in chosen):
            for side in sides if number % 2 else reversed(sides):
                numbers = _run(sides[side], what, count)
                for row in chosen:
                    if (row.what, row.count) == (what, count):
                        found[side][row.name].append(numbers[row.field])
    return found


def calls(before: Path, chosen: Sequence[Row]) -> dict[str, float]:
    """The number of functions called now, as a multiple of the earlier number, by the name of the figure."""
    found: dict[str, float] = {}
    for what, count in dict.fromkeys((row.what, row.count) for row in chosen):
        then, now = (_run(place, what, count, "calls") for place in (before, ROOT))
        for row in chosen:
            if (row.what, row.count) == (what, count):
                found[row.name] = now[f"calls {row.watch}"] / then[f"calls {row.watch}"]
    return found


def _run(place: Path, what: str, count: int, *more: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(_WORK), what, str(count), *more],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {name: float(value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.earlier", description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=[row.name for row in ROWS], metavar="NAME")
    options = parser.parse_args()
    chosen = [row for row in ROWS if not options.only or row.name in options.only]

    with checkout(options.before) as before:
        found, called = measure(before, options.rounds, chosen), calls(before, chosen)

    rows, targets, best = [], [], dict[str, dict[str, float]]()
    for row in chosen:
        pick = max if row.rate else min
        then, now = pick(found["before"][row.name]), pick(found["now"][row.name])
        cost = row.cost(then, now)
        rounds = zip(found["before"][row.name], found["now"][row.name], strict=True)
        paired = statistics.median(row.cost(one, other) for one, other in rounds)
        best[row.name] = {
            "before": then,
            "now": now,
            "cost": round(cost, 3),
            "paired": round(paired, 3),
            "calls": round(called[row.name], 3),
        }
        digits = ",.0f" if row.rate else ".3f"
        times = (f"{one:{digits}} {row.unit}" for one in (then, now))
        rows.append((row.name, *times, f"{cost:.2f}", f"{paired:.2f}", f"{called[row.name]:.2f}"))
        targets.append(Target(f"{row.name}: cost now, as a multiple of before", cost, _MOST))
    kept.table(
        ("", f"at {options.before}", "now", "cost now / before", "median of pairs", "calls now / before"),
        rows,
    )
    kept.targets(targets)
    kept.numbers(best)
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
