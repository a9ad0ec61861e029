"""`python -m benchmarks.latency [--peers]`: time and tokens by number of tool calls, for every way of working.

THE MODEL IS SIMULATED: it makes no mistakes, and takes the same known time per call and token in all variants
(see `work`). The variants differ in how often it is asked, in what its context contains, and in what runs at
the same time. Our dialogue is the whole runtime with its journal; our plans are the engine; LangGraph runs in
its own environment. Prints a table with the fitted exponents (n² = 2), or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import kept
from benchmarks.environments import installed, interpreter
from benchmarks.latency.dialogue import dialogue
from benchmarks.latency.plans import MODES, plan, routed
from benchmarks.latency.work import COUNTS, Measured

Rows = dict[str, list[Measured]]


async def ours() -> tuple[Rows, list[str]]:
    """Measure iact's ways of working, and what the router chose by count."""
    await dialogue(1, together=False)  # warm up
    rows: Rows = {
        "dialogue": [await dialogue(count, together=False) for count in COUNTS],
        "dialogue, a layer a turn": [await dialogue(count, together=True) for count in COUNTS],
    }
    for mode in MODES:
        rows[mode] = [await plan(count, mode) for count in COUNTS]
    chosen = [await routed(count) for count in COUNTS]
    rows["auto"] = [measured for measured, _ in chosen]
    return rows, [way for _, way in chosen]


def peer() -> Rows:
    """Measure LangGraph."""
    ran = subprocess.run(
        [interpreter("langgraph"), "-m", "benchmarks.latency.peer_langgraph"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, list[tuple[float, int, int]]] = json.loads(ran.stdout)
    return {name: [Measured(*row) for row in rows] for name, rows in found.items()}


def exponent(values: Sequence[float]) -> float:
    """The slope of log value over log n, from four calls on: the exponent of a power law."""
    points = [(math.log(n), math.log(value)) for n, value in zip(COUNTS, values, strict=True) if n >= 4]
    x, y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return float(sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points))


def show(rows: Mapping[str, Sequence[Measured]], chosen: Sequence[str]) -> None:
    """Print the tables."""
    for title, pick in (("seconds", lambda m: m.seconds), ("tokens", lambda m: float(m.tokens))):
        print(f"\n{title:<36}" + "".join(f"{f'n={n}':>9}" for n in COUNTS) + f"{'exponent':>10}")
        for name, row in rows.items():
            values = [pick(one) for one in row]
            cells = "".join(f"{value:9.1f}" if title == "seconds" else f"{value:9.0f}" for value in values)
            print(f"{name:<36}{cells}{exponent(values):10.2f}")
    print(f"\nauto chose: {', '.join(f'{n}: {way}' for n, way in zip(COUNTS, chosen, strict=True))}")
    ahead = [
        n for n, a, b in zip(COUNTS, rows["nreflect"], rows["dialogue"], strict=True) if a.seconds < b.seconds
    ]
    print(f"nreflect is ahead of the dialogue from n={ahead[0]} on" if ahead else "nreflect is never ahead")
    worst = max(
        a.seconds / b.seconds
        for a, b, way in zip(rows["auto"], rows["dialogue"], chosen, strict=True)
        if way == "plain"
    )
    print(f"auto on simple requests takes {worst:.3f} times the dialogue (aim 1.05)")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.latency", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also measure LangGraph")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows, chosen = asyncio.run(ours())
    if options.peers and installed("langgraph"):
        rows |= peer()
    kept.numbers({name: [[one.seconds, one.tokens, one.calls] for one in row] for name, row in rows.items()})
    lines = [
        (name, [(n, one.seconds) for n, one in zip(COUNTS, row, strict=True)]) for name, row in rows.items()
    ]
    kept.chart(kept.Chart("Seconds of a request", "calls of tools that it takes", "seconds", lines, log=True))
    if options.json:
        table = {name: [[one.seconds, one.tokens, one.calls] for one in row] for name, row in rows.items()}
        print(json.dumps({"counts": COUNTS, "rows": table, "auto": chosen}, indent=2))
        return 0
    print("SIMULATION: latencies are assumed, mistakes are not made")
    show(rows, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
