"""Other people's plans with drawn latencies: `python -m benchmarks.worfbench --data DIR [--seeds N] [--real N]`.

DIR contains `plans.jsonl`, with one checked plan of WorfBench (arXiv 2410.07869) per line. The source of each plan and
its steps with their dependencies are used. The duration of a step is DRAWN, because the data does not have it:
log-normal with a median of one second, half of them between 0.6 and 1.7. Each plan runs through the product's plan
engine in virtual time. With `--real`, N plans of each source also run through `iact plan run`, where each step is a
script in a container that sleeps for its duration.

The results are compared with the sum (one step after another, as in a dialogue), barriers (a level begins when the
level before has ended), and the ideal (the longest path through the graph). None of them includes time of models.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.parallel.__main__ import planned, shell
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import PlanNode, make_plan
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import ScriptedRunner, VirtualClock, run

SPREAD: Final = 0.8
"""The standard deviation of the logarithm of a latency."""
_PAYS: Final = 0.1
"""The share of the time from which a saving counts."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan of the data. `waits`: the steps that each step waits for, in an order in which they can run."""

    id: str
    source: str
    waits: Mapping[str, tuple[str, ...]]
    width: int


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of one plan with one draw, in each way."""

    plan: Checked
    one_by_one: float
    barriers: float
    ideal: float
    ours: float


def read(folder: Path) -> list[Checked]:
    """Read all plans.

    Raises:
        SystemExit: the file is missing or has another form.
    """
    file = folder / "plans.jsonl"
    try:
        return [
            _plan(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
    except OSError as error:
        raise SystemExit(
            f"benchmarks.worfbench: {file} is not there ({error.strerror}); --data DIR names the folder that has it."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"benchmarks.worfbench: {file} is not a file of checked plans ({error!r})."
        ) from None


def _plan(line: Mapping[str, object]) -> Checked:
    nodes, edges = line["nodes"], line["edges"]
    assert isinstance(nodes, dict)
    assert isinstance(edges, list)
    before = {
        str(one): [first for first, second in edges if second == one and first in nodes] for one in nodes
    }
    waits: dict[str, tuple[str, ...]] = {}
    while len(waits) < len(before):
        ready = [
            one for one, needed in before.items() if one not in waits and all(n in waits for n in needed)
        ]
        if not ready:
            raise ValueError(f"{line['id']}: its steps wait for each other")
        waits |= {one: tuple(dict.fromkeys(before[one])) for one in ready}
    return Checked(
        str(line["id"]),
        str(line["source"]),
        waits,
        max(map(len, levels(waits).values()), default=0),
    )


def levels(waits: Mapping[str, Sequence[str]]) -> dict[int, list[str]]:
    """The steps by level. A step is one level below the deepest step that it waits for."""
    deep: dict[str, int] = {}
    found: dict[int, list[str]] = {}
    for one, needed in waits.items():
        deep[one] = 1 + max((deep[other] for other in needed), default=0)
        found.setdefault(deep[one], []).append(one)
    return found


def drawn(plan: Checked, seed: int) -> dict[str, float]:
    """The seconds of each step, drawn at random."""
    draw = random.Random(f"{plan.source} {plan.id} {seed}")
    return {one: draw.lognormvariate(0.0, SPREAD) for one in plan.waits}


def ideal(waits: Mapping[str, Sequence[str]], seconds: Mapping[str, float]) -> float:
    """The longest path in seconds."""
    ended: dict[str, float] = {}
    for one, needed in waits.items():
        ended[one] = seconds[one] + max((ended[other] for other in needed), default=0.0)
    return max(ended.values(), default=0.0)


def engine(plan: Checked, seconds: Mapping[str, float]) -> float:
    """The seconds through the plan engine, in virtual time."""
    nodes = [
        PlanNode(f"s{one}", call="work", after=tuple(f"s{n}" for n in needed))
        for one, needed in plan.waits.items()
    ]
    runner = ScriptedRunner(seconds={f"s{one}": time for one, time in seconds.items()})
    result = run(
        PlanEngine(make_plan("p", nodes), runner=runner, clock=VirtualClock(), limits=PlanLimits()).run()
    )
    if result.status != "concluded":
        raise RuntimeError(f"{plan.id} did not run to its end: {result.status}")
    return max(at for _, at in runner.log)


def timed(plan: Checked, seed: int) -> Times:
    """Time one plan with one draw, in all four ways."""
    seconds = drawn(plan, seed)
    barriers = sum(max(seconds[one] for one in level) for level in levels(plan.waits).values())
    return Times(plan, sum(seconds.values()), barriers, ideal(plan.waits, seconds), engine(plan, seconds))


def _mean(times: Sequence[Times], what: str) -> float:
    return statistics.fmean(float(getattr(one, what)) for one in times)


def _row(name: str, times: Sequence[Times]) -> tuple[str, ...]:
    plans = len({(one.plan.source, one.plan.id) for one in times})
    wide = len({(one.plan.source, one.plan.id) for one in times if one.plan.width > 1})
    saved = [one.one_by_one - one.ours for one in times]
    return (
        name, f"{plans:,}", f"{wide:,}",
        *(f"{_mean(times, what):.2f}" for what in ("one_by_one", "barriers", "ideal", "ours")),
        f"{sum(one.ours for one in times) / sum(one.one_by_one for one in times):.2f}",
        f"{sum(one.ours for one in times) / sum(one.barriers for one in times):.3f}",
        f"{statistics.fmean(one > _PAYS * each.one_by_one for one, each in zip(saved, times, strict=True)):.0%}",
        f"{statistics.fmean(saved):.2f}",
    )  # fmt: skip


HEADS: Final = (
    "", "plans", "wider than 1", "one by one, s", "barriers, s", "ideal, s", "ours, s", "ours / one by one", "ours / barriers",
    "runs that save a tenth", "saved, s",
)  # fmt: skip


def show(times: Sequence[Times]) -> float:
    """Print the tables. Returns the largest distance from the ideal, as a share of it."""
    sources = sorted({one.plan.source for one in times})
    kept.table(HEADS, [_row(name, [one for one in times if one.plan.source == name]) for name in sources])
    widths = (("width 1", 1, 1), ("width 2", 2, 2), ("width 3", 3, 3), ("width 4 and more", 4, 10_000))
    groups = [(name, [one for one in times if low <= one.plan.width <= high]) for name, low, high in widths]
    kept.table(HEADS, [_row(name, some) for name, some in groups if some])
    return max(one.ours / one.ideal - 1 for one in times)


def real(plans: Sequence[Checked], each: int) -> None:
    """Run `each` plans of each source through the command line and containers, the widest first: they are hardest."""
    rows = []
    for source in sorted({one.source for one in plans}):
        some = sorted((one for one in plans if one.source == source), key=lambda one: (-one.width, one.id))[
            :each
        ]
        for plan in some:
            seconds = drawn(plan, 0)
            steps = [
                shell(f"s{one}", f"sleep {seconds[one]:.3f}", *(f"s{n}" for n in needed or ()), *(() if needed else ("warm",)))
                for one, needed in plan.waits.items()
            ]  # fmt: skip
            with tempfile.TemporaryDirectory(prefix="iact-worfbench-") as folder:
                found = planned(Path(folder), steps)
            took = max(end for _, end in found.values()) - found["warm"][1]
            best = ideal(plan.waits, seconds)
            barriers = sum(max(seconds[one] for one in level) for level in levels(plan.waits).values())
            rows.append((
                source, plan.id, str(len(plan.waits)), str(plan.width), f"{sum(seconds.values()):.2f}", f"{barriers:.2f}",
                f"{best:.2f}", f"{took:.2f}", f"{(took - best) / len(levels(plan.waits)):.3f}",
            ))  # fmt: skip
    kept.table(
        ("source", "plan", "steps", "width", "one by one, s", "barriers, s", "ideal, s", "ours, s", "above ideal for each level, s"),
        rows,
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Returns 1 if the engine takes longer than the longest path through a graph."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worfbench", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where plans.jsonl is")
    parser.add_argument("--seeds", type=int, default=5, help="draws for each plan")
    parser.add_argument(
        "--real", type=int, default=0, metavar="N", help="N plans of each source through containers"
    )
    chosen = parser.parse_args(arguments)
    plans = read(chosen.data)
    print(f"{len(plans):,} plans, {sum(len(one.waits) for one in plans):,} steps, {chosen.seeds} draws each")
    times = [timed(plan, seed) for plan in plans for seed in range(chosen.seeds)]
    over = show(times)
    print(f"\nAt most {over:.1%} above the ideal.")
    kept.numbers(
        {
            "plans": len(plans),
            "over": over,
            "ours": _mean(times, "ours"),
            "barriers": _mean(times, "barriers"),
        }
    )
    if chosen.real:
        real(plans, chosen.real)
    return 1 if over > 1e-6 and not math.isclose(over, 0, abs_tol=1e-6) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
