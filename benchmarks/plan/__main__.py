"""`python -m benchmarks.plan [--peers]`: scheduler overhead, makespan and fan-out, compared with a bare indegree loop.

Both run the same graphs in one process, alternating. The bare loop counts indegrees and starts a task per
node. It has no states, joins, contracts, trail, time limits or budgets, so it is the baseline. With `--peers`,
LangGraph runs the same graphs once, in its own environment. The last rows are about a plan that runs while it
is still being written. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kept
from benchmarks.environments import installed, interpreter
from iact.core.clock import SystemClock
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import PlanGraph, PlanNode, PlanVersion, make_plan
from iact.core.plan.protocol import Firing, Outcome, PlanQuestion, StepSuccess
from iact.core.plan.state import NodeChange
from tests.core.plan.engine import PlanEngine, Waiting

DONE = StepSuccess("ok")


@dataclass
class Sleeper:
    """Runs nodes whose work is to wait."""

    seconds: Mapping[str, float]

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        wait = self.seconds.get(firing.node.id, 0.0)
        if wait:
            await asyncio.sleep(wait)
        return DONE


class Lines:
    """An observer that writes every event as a line of JSON, as a journal would."""

    def __init__(self) -> None:
        self._file = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115

    def on_change(self, change: NodeChange) -> None:
        self._file.write(json.dumps(change.to_json()))

    def on_version(self, version: PlanVersion) -> None:
        self._file.write(str(version.version))

    def on_text(self, question: PlanQuestion, text: str) -> None:
        return None

    def on_notice(self, text: str) -> None:
        return None

    def close(self) -> None:
        self._file.close()


def layered(count: int, width: int, seed: int = 1) -> PlanGraph:
    """A DAG of `count` nodes in layers of `width`. Each node depends on three nodes of the layer before."""
    rng = random.Random(seed)
    nodes = []
    for i in range(count):
        layer = i // width
        before = range((layer - 1) * width, layer * width) if layer else ()
        after = tuple(f"n{one:05}" for one in sorted(rng.sample(before, 3))) if layer else ()
        nodes.append(PlanNode(f"n{i:05}", call="f", after=after))
    return make_plan("p", nodes)


def fan(count: int) -> PlanGraph:
    """`count` independent nodes."""
    return make_plan("p", [PlanNode(f"n{i:05}", call="f") for i in range(count)])


async def bare(plan: PlanGraph, seconds: Mapping[str, float]) -> None:
    """The baseline: indegree counters and a task per node."""
    missing = {one: len(node.dependencies) for one, node in plan.nodes.items()}
    serves: dict[str, list[str]] = {one: [] for one in plan.nodes}
    for one, node in plan.nodes.items():
        for other in node.dependencies:
            serves[other].append(one)
    async with asyncio.TaskGroup() as group:

        async def run(one: str) -> None:
            wait = seconds.get(one, 0.0)
            if wait:
                await asyncio.sleep(wait)
            for other in serves[one]:
                missing[other] -= 1
                if not missing[other]:
                    group.create_task(run(other))

        for one, count in missing.items():
            if not count:
                group.create_task(run(one))


async def ours(
    plan: PlanGraph, seconds: Mapping[str, float], *, limit: float | None = 120.0, lines: bool = False
) -> None:
    """The engine with its trail. `lines`: also write every event."""
    observer = Lines() if lines else None
    limits = PlanLimits(concurrency=100_000, nodes=100_000, node_timeout=limit)
    engine = PlanEngine(plan, runner=Sleeper(seconds), clock=SystemClock(), limits=limits, observer=observer)
    result = await engine.run()
    if observer is not None:
        observer.close()
    if result.status != "concluded":
        raise SystemExit(f"benchmarks.plan: the plan came back {result.status}")


def ideal(plan: PlanGraph, seconds: Mapping[str, float]) -> float:
    """The seconds of the critical path."""
    end: dict[str, float] = {}
    for one, node in plan.nodes.items():
        end[one] = seconds.get(one, 0.0) + max((end[other] for other in node.dependencies), default=0.0)
    return max(end.values())


Way = Callable[[PlanGraph, Mapping[str, float]], Awaitable[None]]


def timed(
    ways: Mapping[str, Way], plan: PlanGraph, seconds: Mapping[str, float], rounds: int
) -> dict[str, float]:
    """Median seconds of each way. The ways take turns."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            gc.collect()

            async def once(way: Way = way) -> None:
                await way(plan, seconds)

            begin = time.perf_counter()
            asyncio.run(once())
            took[name].append(time.perf_counter() - begin)
    return {name: statistics.median(some) for name, some in took.items()}


async def _ours_without_limit(plan: PlanGraph, seconds: Mapping[str, float]) -> None:
    await ours(plan, seconds, limit=None)


async def _ours_written(plan: PlanGraph, seconds: Mapping[str, float]) -> None:
    await ours(plan, seconds, lines=True)


WAYS: Mapping[str, Way] = {
    "bare loop": bare,
    "iact": ours,
    "iact, no time limits": _ours_without_limit,
    "iact, events as JSON": _ours_written,
}


def langgraph(graphs: Mapping[str, tuple[PlanGraph, Mapping[str, float]]]) -> dict[str, float]:
    """LangGraph's seconds for each graph."""
    given = {
        title: {
            "after": {one: node.dependencies for one, node in plan.nodes.items()},
            "seconds": dict(seconds),
        }
        for title, (plan, seconds) in graphs.items()
    }
    ran = subprocess.run(
        [interpreter("langgraph"), "-m", "benchmarks.plan.peer_langgraph"],
        input=json.dumps(given), cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(ran.stdout)
    return found


async def streamed(count: int = 12, gap: float = 0.2, seconds: float = 0.5) -> dict[str, float]:
    """A planner writes a step every `gap` seconds, in two parallel lines. A step takes `seconds`.

    Returns, in ms, the longest wait from the moment in which a step could start (it is written in full, and
    the steps before it are done) to its start, and the makespan over the best possible one.
    """
    steps = [
        f"  - {{id: s{n:02}, call: f, after: [{f's{n - 2:02}' if n > 1 else ''}]}}\n" for n in range(count)
    ]
    sleeper = Sleeper({f"s{n:02}": seconds for n in range(count)})
    engine = PlanEngine(
        make_plan("p", ()), runner=sleeper, clock=SystemClock(), limits=PlanLimits(), asker=None, growing=True
    )
    run = asyncio.create_task(engine.run())
    await asyncio.sleep(0)
    begin = time.monotonic()
    engine.write("steps:\n")
    written: list[float] = []
    for step in steps:
        await asyncio.sleep(gap)
        engine.write(step)
        written.append(time.monotonic() - begin)
    engine.written()
    result = await run
    if result.status != "concluded":
        raise SystemExit(f"benchmarks.plan: the streamed plan came back {result.status}")
    # The trail's times count from the run's start, which is the moment before `begin`.
    began = [result.nodes[f"s{n:02}"].started or 0.0 for n in range(count)]
    ended = [result.nodes[f"s{n:02}"].ended or 0.0 for n in range(count)]
    could = [max(written[n], ended[n - 2] if n > 1 else 0.0) for n in range(count)]
    best: list[float] = []
    for n in range(count):
        best.append(max(written[n], best[n - 2] if n > 1 else 0.0) + seconds)
    return {
        "first start after its step, ms": (began[0] - written[0]) * 1e3,
        "longest wait of a step, ms": max(a - b for a, b in zip(began, could, strict=True)) * 1e3,
        "makespan over the best": max(ended) / max(best),
    }


def measure(rounds: int, peers: bool) -> dict[str, dict[str, float]]:
    """All rows: µs per node for zero-cost nodes; makespan and fan-out in ms."""
    big = layered(10_000, 100)
    small = layered(1_000, 50)
    rng = random.Random(7)
    waits = {one: rng.random() * 0.06 for one in small.nodes}
    both = {name: WAYS[name] for name in ("bare loop", "iact")}
    rows: dict[str, dict[str, float]] = {
        "10,000 zero-cost nodes, µs per node": {
            name: took / 10_000 * 1e6 for name, took in timed(WAYS, big, {}, rounds).items()
        },
        "1,000 nodes, random latencies, ms": {
            "ideal": ideal(small, waits) * 1e3,
            **{name: took * 1e3 for name, took in timed(both, small, waits, rounds).items()},
        },
    }
    for count in (100, 1_000):
        plan = fan(count)
        took = timed(both, plan, dict.fromkeys(plan.nodes, 0.05), rounds)
        rows[f"{count:,} branches of 50 ms, ms"] = {name: one * 1e3 for name, one in took.items()}
    if peers:
        none: dict[str, float] = {}
        graphs: dict[str, tuple[PlanGraph, Mapping[str, float]]] = {
            "zero": (small, none), "random": (small, waits),
            **{str(n): (fan(n), dict.fromkeys(fan(n).nodes, 0.05)) for n in (100, 1_000)},
        }  # fmt: skip
        took = langgraph(graphs)
        titles = list(rows)
        rows[titles[0]]["LangGraph (1,000 nodes)"] = took["zero"] / 1_000 * 1e6
        for title, name in zip(titles[1:], ("random", "100", "1000"), strict=True):
            rows[title]["LangGraph"] = took[name] * 1e3
    rows["a plan that is still being written"] = asyncio.run(streamed())
    return rows


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.plan", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="also measure LangGraph")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = measure(options.rounds, options.peers and bool(installed("langgraph")))
    kept.numbers(rows)
    fans = {title: row for title, row in rows.items() if "branches" in title}
    names = list(dict.fromkeys(name for row in fans.values() for name in row))
    bars = [
        (name, [(title.partition(" of")[0], row[name]) for title, row in fans.items() if name in row])
        for name in names
    ]
    kept.chart(kept.Chart("Fan-out of 50 ms branches", "", "makespan, ms", bars, kind="bars"))
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for title, row in rows.items():
        print(title)
        for name, value in row.items():
            print(f"  {name:<32} {value:10.{3 if 'over' in name else 1}f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
