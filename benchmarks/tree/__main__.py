"""The cost of the tree and its journal, compared with AutoGen and LangGraph: tables, and JSON with `--json FILE`.

    python -m benchmarks.tree [--peers] [--short] [--rounds N] [--json FILE]

Every measurement runs in its own process, with a model that answers at once and, for iact, the real runtime
with a durable journal. With `--peers`, the same work is done by AutoGen, whose agents store nothing, and by
LangGraph, with and without its SQLite checkpointer. Both are installed into the user's cache once. The
products take turns, round after round, and the best round counts, because other work on the machine can only
make a round slower. Times are processor time of all threads; wall-clock time is in brackets. Exits with
status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.environments import PACKAGES, installed, interpreter
from benchmarks.kept import Target
from benchmarks.tree.measure import Numbers

ROOT: Final = Path(__file__).parents[2]
PEERS: Final = {
    "AutoGen, stores nothing": ("autogen", "reading"),
    "LangGraph, stores nothing": ("langgraph", "reading"),
    "LangGraph, SqliteSaver": ("langgraph", "storing"),
}
PEER_NAMES: Final = ("autogen", "langgraph")
_FLAT: Final = 1.3
_MOST_STORED: Final = 200
"""The most steps of a LangGraph run with its checkpointer. Its stored bytes grow with the square of the steps."""


@dataclass
class Bench:
    """One run: its rounds, all measurements, and the targets so far."""

    rounds: int
    peers: Sequence[str]
    short: bool
    found: dict[str, Numbers] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)

    def take(self, runs: Sequence[tuple[str, str, str, int]], best: Callable[[Numbers], float]) -> None:
        """Measure each (name, framework, what, count) in every round, and keep the round with the lowest `best`."""
        for _ in range(self.rounds):
            for name, framework, what, count in runs:
                made = _run(framework, what, count)
                key = f"{name} {count}"
                if key not in self.found or best(made) < best(self.found[key]):
                    self.found[key] = made

    def aim(self, name: str, value: float, limit: float | None, unit: str = "", *, most: bool = True) -> None:
        """Compare a number with its target."""
        self.targets.append(Target(name, value, limit, unit, most))


def _run(framework: str, what: str, count: int) -> Numbers:
    """Make one measurement in its own process."""
    python = sys.executable if framework == "ours" else str(interpreter(framework))
    module = "ours" if framework == "ours" else f"peer_{framework}"
    command = [python, "-m", f"benchmarks.tree.{module}", what, str(count)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    numbers = json.loads(done.stdout.splitlines()[-1])
    return {name: float(value) for name, value in numbers.items()}


def _cpu(numbers: Numbers) -> float:
    return numbers["cpu_ms"]


def steps(bench: Bench) -> None:
    """Measure milliseconds and bytes per step of one agent with a tool, by the length of its history."""
    counts = (50, 200) if bench.short else (50, 200, 1000)
    longest = 2000 if bench.short else 10_000
    ours = {"ours, durable": "reading", "ours, waiting for the disk at each call": "writing"}
    runs = [(name, "ours", what, count) for count in counts for name, what in ours.items()]
    runs += [("ours, durable", "ours", "reading", longest)]
    peers = {name: run for name, run in PEERS.items() if run[0] in bench.peers}
    for name, (framework, what) in peers.items():
        runs += [(name, framework, what, n) for n in counts if what != "storing" or n <= _MOST_STORED]
    runs.sort(key=lambda run: run[3])
    bench.take(runs, _cpu)
    found = bench.found

    def cell(name: str, count: int) -> str:
        one = found.get(f"{name} {count}")
        return f"{one['cpu_ms']:.2f} ({one['wall_ms']:.2f})" if one else ""

    heads = ["ms per step", *(f"{count:,} steps" for count in (*counts, longest)), "stored per step"]
    names = [*ours, *peers]
    rows = [
        [name, *(cell(name, count) for count in (*counts, longest)), _stored(bench, name)] for name in names
    ]
    kept.table(heads, rows)
    lines = [
        (name, [(count, found[f"{name} {count}"]["cpu_ms"]) for count in (*counts, longest) if f"{name} {count}" in found])
        for name in names
    ]  # fmt: skip
    kept.chart(kept.Chart("A step of a run", "steps of the run", "ms of processor time", lines, log=True))
    last, end = found[f"ours, durable {counts[-1]}"], found[f"ours, durable {longest}"]
    flat = end["cpu_ms"] / found["ours, durable 50"]["cpu_ms"]
    bench.aim(f"a step of a run of {longest:,}, as a multiple of one of 50", flat, _FLAT)
    bench.aim("bytes per turn beside the content", end["beside_last"], 2000, "B")
    bench.aim("… at the end, as a multiple of the 10th", last["beside_last"] / last["beside_10"], 1.1)
    for name in peers:
        for count in counts:
            if f"{name} {count}" in found:
                share = found[f"ours, durable {count}"]["cpu_ms"] / found[f"{name} {count}"]["cpu_ms"]
                bench.aim(f"our step, as a multiple of {name}, {count:,} steps", share, 1)


def _stored(bench: Bench, name: str) -> str:
    sizes = [made["file"] for key, made in bench.found.items() if key.startswith(name) and made.get("file")]
    return f"{sizes[-1] / 1000:,.1f} kB" if sizes else "–"


def children(bench: Bench) -> None:
    """Measure processor time per child agent, and memory per agent."""
    count, many = 200, 300 if bench.short else 1000
    frameworks = ["ours", *bench.peers]
    bench.take([(f"{one} children", one, "children", count) for one in frameworks], _cpu)
    bench.take([(f"{one} agents", one, "agents", many) for one in frameworks], lambda made: made["thinking"])
    rows = []
    for one in frameworks:
        child, agent = bench.found[f"{one} children {count}"], bench.found[f"{one} agents {many}"]
        idle = f"{agent['idle'] / 1000:.1f} kB" if "idle" in agent else "–"
        rows.append(
            [
                one, f"{child['cpu_ms']:.2f} ({child['wall_ms']:.2f})", f"{agent['thinking'] / 1000:.1f} kB",
                idle, f"{agent['process'] / 1e6:.0f} MB",
            ]
        )  # fmt: skip
    heads = ("", "ms per child", "memory per agent at work", "… at rest", f"process, {many:,} at once")
    kept.table(heads, rows)
    agent = bench.found[f"ours agents {many}"]
    cost = bench.found[f"ours children {count}"]["cpu_ms"]
    bench.aim("a child agent", cost, 0.5, "ms")
    bench.aim("an agent at rest", agent["idle"] / 1000, 20, "kB")
    bench.aim(f"{many:,} agents at once in one process", agent["process"] / 1e6, 300, "MB")
    for one in frameworks[1:]:
        share = cost / bench.found[f"{one} children {count}"]["cpu_ms"]
        bench.aim(f"a child agent, as a multiple of {one}", share, 1 if one == "langgraph" else None)


def journal(bench: Bench) -> None:
    """Measure durable appends per second by 1, 16 and 64 writers, and verifying and resuming a long journal."""
    writers = (1, 16, 64)
    bench.take([("appends", "ours", "appends", one) for one in writers], lambda made: -made["per_second"])
    rows = [bench.found[f"appends {one}"] for one in writers]
    kept.table(
        ("durable records/s", *(f"{one} writers" for one in writers)),
        [
            ["on the wall", *(f"{row['per_second']:,.0f}" for row in rows)],
            ["per second of processor time", *(f"{row['per_cpu_second']:,.0f}" for row in rows)],
        ],
    )
    bench.aim("durable records/s with 64 writers", rows[-1]["per_second"], 30_000, most=False)
    records = 10_000 if bench.short else 100_000
    bench.take([("reopening", "ours", "reopening", records)], lambda made: -made["verify_cpu"])
    found = bench.found[f"reopening {records}"]
    heads = (f"{found['records']:,.0f} records, {found['bytes'] / 1e6:.0f} MB", "verify", "resume")
    kept.table(
        heads,
        [
            ["records/s on the wall", f"{found['verify']:,.0f}", f"{found['resume']:,.0f}"],
            ["per second of processor time", f"{found['verify_cpu']:,.0f}", f"{found['resume_cpu']:,.0f}"],
        ],
    )
    for what in ("verify", "resume"):
        bench.aim(f"{what}: records per processor second", found[f"{what}_cpu"], 20_000, most=False)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tree", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also measure AutoGen and LangGraph")
    parser.add_argument("--short", action="store_true", help="one round, small sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    peers = installed(*PEER_NAMES) if chosen.peers else []
    bench = Bench(1 if chosen.short else chosen.rounds, peers, chosen.short)
    load = os.getloadavg()[0]
    for part in (steps, children, journal):
        part(bench)
    kept.targets(bench.targets)
    kept.numbers(bench.found)
    after = os.getloadavg()[0]
    print(f"\nLoad of the machine before and after, on {os.cpu_count()} processors: {load:.1f}, {after:.1f}.")
    if chosen.json:
        about = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "machine": platform.platform(),
            "processors": os.cpu_count(),
            "load": [load, after],
            "peers": {name: list(PACKAGES[name]) for name in peers},
        }
        targets = [{**asdict(target), "met": target.met} for target in bench.targets]
        result = {"about": about, "found": bench.found, "targets": targets}
        chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(target.met for target in bench.targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
