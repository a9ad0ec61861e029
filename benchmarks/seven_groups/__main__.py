"""`python -m benchmarks.seven_groups`: G0 to G6 on fifty tasks with ten seeds each, and the gain of each step.

Without `--endpoint`, THE MODEL IS SIMULATED (see `model`): this measures how the seven ways of scheduling cope
with the same mistakes, not how good any model is. Time is virtual, so 3,500 runs take seconds. With
`--endpoint`, the model in OPENAI_BASE_URL, OPENAI_API_KEY and IACT_MODEL works on the same tasks in real time.
Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence

from benchmarks import kept
from benchmarks.seven_groups.endpoint import Real
from benchmarks.seven_groups.groups import GROUPS, Ran, run_group
from benchmarks.seven_groups.model import Rates, Simulated
from benchmarks.seven_groups.world import World
from iact.core.clock import SystemClock
from iact.core.ports import JSON
from iact.evaluation.graph_tasks import tasks
from tests.core.plan.fakes import VirtualClock, run

GAINS: Sequence[tuple[str, str, str]] = (
    ("loop's care", "G1", "G0"),
    ("plan", "G1", "G2"),
    ("scaffold", "G2", "G3"),
    ("graph", "G3", "G4"),
    ("patch", "G4", "G5"),
    ("replan", "G5", "G6"),
    ("total over G1", "G1", "G6"),
    ("total over G0", "G0", "G6"),
)
"""Each gain, with the two groups that it compares (paper, 8.2)."""


def simulate(rates: Rates, seeds: int) -> list[Ran]:
    """Run every group on every task with every seed, in virtual time."""
    ran = []
    for group in GROUPS:
        for task in tasks():
            for seed in range(seeds):
                world = World(task)
                mind = Simulated(world, rates, random.Random(f"{task.id} {seed}"))
                ran.append(run(run_group(group, world, mind, VirtualClock(), seed)))
    return ran


async def try_endpoint(count: int) -> list[Ran]:
    """Run every group once on the first `count` tasks of each tier, with a real model."""
    chosen = [
        task
        for tier in ("simple", "medium", "complex")
        for task in [one for one in tasks() if one.tier == tier][:count]
    ]
    ran = []
    for group in GROUPS:
        for task in chosen:
            async with Real.open() as mind:
                ran.append(await run_group(group, World(task), mind, SystemClock(), 0))
                print(f"{group} {task.id}: {'done' if ran[-1].success else 'not done'}", file=sys.stderr)
    return ran


def gain(
    ran: Sequence[Ran], first: str, second: str, measure: Callable[[Ran], float]
) -> tuple[float, float, float]:
    """The mean difference second − first over tasks, with its 95 % interval by bootstrap over tasks."""
    by_task: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in ran:
        by_task[one.task][one.group].append(measure(one))
    differences = [
        statistics.fmean(groups[second]) - statistics.fmean(groups[first]) for groups in by_task.values()
    ]
    rng = random.Random(1)
    means = sorted(statistics.fmean(rng.choices(differences, k=len(differences))) for _ in range(2000))
    return statistics.fmean(differences), means[49], means[1949]


def summary(ran: Sequence[Ran]) -> dict[str, JSON]:
    """Rows by group, and the gains."""
    rows: dict[str, JSON] = {}
    for group in GROUPS:
        mine = [one for one in ran if one.group == group]
        tiers = {
            tier: statistics.fmean(one.success for one in mine if one.tier == tier)
            for tier in ("simple", "medium", "complex")
        }
        means = {
            name: statistics.fmean(float(getattr(one, name)) for one in mine)
            for name in ("success", "seconds", "tokens", "model_calls", "calls", "repeated",
                         "retries", "patches", "replans", "versions")
        }  # fmt: skip
        rows[group] = {**tiers, **means}
    measures: dict[str, Callable[[Ran], float]] = {
        "success": lambda one: float(one.success),
        "seconds": lambda one: one.seconds,
        "tokens": lambda one: float(one.tokens),
    }
    gains: dict[str, JSON] = {
        name: {what: list(gain(ran, first, second, measure)) for what, measure in measures.items()}
        for name, first, second in GAINS
    }
    return {"groups": rows, "gains": gains}


def show(found: dict[str, JSON]) -> None:
    """Print the tables."""
    groups, gains = found["groups"], found["gains"]
    assert isinstance(groups, dict)
    assert isinstance(gains, dict)
    columns = ("simple", "medium", "complex", "success", "seconds", "tokens", "model_calls", "calls",
               "repeated", "retries", "patches", "replans")  # fmt: skip
    print("group " + " ".join(f"{name:>11}" for name in columns))
    for group, row in groups.items():
        assert isinstance(row, dict)
        print(f"{group:<6}" + " ".join(f"{row[name]:11.2f}" for name in columns))
    print("\ngain: mean difference [95 % interval over tasks]")
    for name, row in gains.items():
        assert isinstance(row, dict)
        cells = []
        for what, digits in (("success", 3), ("seconds", 1), ("tokens", 0)):
            figures = row[what]
            assert isinstance(figures, list)
            mean, low, high = figures
            cells.append(f"{what} {mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]")
        print(f"{name:<14}" + "   ".join(cells))


def main(arguments: list[str]) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.seven_groups", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--mistakes", type=float, default=1.0, help="multiply the rates of all mistakes by this factor"
    )
    parser.add_argument("--endpoint", type=int, metavar="N", help="N tasks of each tier with a real model")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    ran = (
        asyncio.run(try_endpoint(options.endpoint))
        if options.endpoint
        else simulate(Rates().scaled(options.mistakes), options.seeds)
    )
    found = summary(ran)
    kept.numbers(found)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print("a real endpoint" if options.endpoint else "SIMULATION: the model and its mistakes are assumed")
    show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
