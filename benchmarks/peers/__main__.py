"""iact compared with five frameworks in one run: `python -m benchmarks.peers [--short] [--only NAME …]`.

All of them talk to one scripted endpoint over HTTP, each in its own process and environment, and do the same
work in the way that their documentation recommends. Times are processor time of all threads of the
framework's process, so neither the endpoint nor other work on the machine counts. If a framework can't be
installed, or fails, its row says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.environments import Unavailable, interpreter
from benchmarks.peers.framework import AT, BRANCH_MS, LONGEST, control
from benchmarks.tree.measure import Numbers

ROOT: Final = Path(__file__).parents[2]
OURS: Final = "iact"
NAMES: Final[Mapping[str, str]] = {
    "ours": OURS,
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "pydantic-ai",
    "autogen": "AutoGen",
    "langgraph": "LangGraph",
    "smolagents": "smolagents",
    "floor": "plain loop, no framework",
    "shipped": "iact as shipped",
}
_INSIDE: Final = ("ours", "floor", "shipped")
"""Variants that run in our own environment."""

_SHIPPED: Final = ("steps", "stored", "resume")
"""The jobs for the whole product. The other jobs would start hundreds of containers for the same result."""

_PATIENCE: Final = 240
_ENOUGH: Final = 840
"""Seconds after which no more measurements are started."""

Job = tuple[str, int]


@dataclass
class Run:
    """The measurements by framework and job. A text gives the reason why there are none."""

    url: str
    names: Sequence[str]
    found: dict[str, dict[str, Numbers]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def one(self, name: str, what: str, count: int, folder: Path) -> Numbers:
        """Make one measurement in its own process. Returns {} if it failed."""
        if name == "shipped" and (what not in _SHIPPED or count > LONG_ENOUGH):
            return {}
        if time.monotonic() - self.began > _ENOUGH:
            self.failed[f"{name} {what} {count}"] = (
                f"The comparison begins nothing more after {_ENOUGH / 60:g} minutes."
            )
            return {}
        try:
            python = sys.executable if name in _INSIDE else str(interpreter(name))
        except Unavailable as error:
            self.failed[name] = str(error)
            return {}
        command = [
            python,
            "-W",
            "ignore",
            "-m",
            f"benchmarks.peers.{name}",
            what,
            str(count),
            f"{self.url}/v1",
            str(folder),
        ]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self.failed[f"{name} {what} {count}"] = f"It did not end within {_PATIENCE} s."
            return {}
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1].strip(" |")
            self.failed[f"{name} {what} {count}"] = last[:300]
            return {}
        numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return numbers

    def take(self, rounds: int, what: str, count: int, best: str, *, seen: bool = False) -> None:
        """Measure every framework in every round, and keep the round with the lowest `best`.

        `seen`: include the endpoint's statistics about the prompts.
        """
        for _ in range(rounds):
            for name in self.names:
                if name in self.failed:
                    continue
                control(self.url, "/count" if seen else "/ignore")
                with tempfile.TemporaryDirectory() as folder:
                    made = self.one(name, what, count, Path(folder))
                if made and seen:
                    made |= control(self.url, "/seen")
                self.keep(name, (what, count), made, best)

    def together(self, what: str, count: int) -> None:
        """Measure every framework once, two at a time, because processor time does not include the other's work."""
        control(self.url, "/ignore")
        names = [name for name in self.names if name not in self.failed]
        with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:

            def one(name: str) -> Numbers:
                folder = Path(place, name)
                folder.mkdir()
                return self.one(name, what, count, folder)

            for name, made in zip(names, pool.map(one, names), strict=True):
                self.keep(name, (what, count), made, "wall")

    def keep(self, name: str, job: Job, made: Numbers, best: str) -> None:
        """Keep a measurement if it is the best so far."""
        mine, key = self.found.setdefault(name, {}), f"{job[0]} {job[1]}"
        if made and (key not in mine or made[best] < mine[key][best]):
            mine[key] = made

    def get(self, name: str, what: str, count: int, which: str) -> float | None:
        """A measured number, or None if it could not be measured."""
        return self.found.get(name, {}).get(f"{what} {count}", {}).get(which)


@contextmanager
def endpoint() -> Iterator[str]:
    """Run an endpoint in its own process. Yields its address."""
    command = [sys.executable, "-m", "benchmarks.peers.endpoint"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def storing(run: Run, count: int) -> None:
    """Measure steps with each framework's own persistence, the bytes on disk, and resuming from them."""
    for name in run.names:
        if name in run.failed:
            continue
        control(run.url, "/ignore")
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            made = run.one(name, "stored", count, folder)
            size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
            if made and size:
                run.keep(name, ("stored", count), {**made, "bytes": size / count}, "cpu_ms")
                run.keep(name, ("resume", count), run.one(name, "resume", count, folder), "cpu_ms")


LONG_ENOUGH: Final = 200
"""The steps for the whole product."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work is done in each job."""

    rounds: int = 2
    steps: int = 200
    long: int = 1000
    stored: int = 200
    fan: int = 100
    levels: tuple[int, ...] = (8, 32, 64)
    agents: int = 200
    prompts: int = 50
    family: int = 20


SHORT: Final = Sizes(1, 50, 100, 20, 20, (4, 8), 30, 20, 8)


def measure(run: Run, sizes: Sizes) -> None:
    """Measure everything."""
    run.take(1, "steps", sizes.steps, "wall")  # these are medians of many steps and need no rounds
    storing(run, sizes.stored)
    run.take(sizes.rounds, "fan", sizes.fan, "makespan")
    for count in sizes.levels:
        run.take(1, "down", count, "cpu_ms")
    run.take(sizes.rounds, "agents", sizes.agents, "thinking")
    run.take(1, "steps", sizes.prompts, "wall", seen=True)
    run.take(1, "fan", sizes.family, "makespan", seen=True)
    run.together("steps", sizes.long)  # takes longest


def _cell(value: float | None, digits: int = 1, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


Column = tuple[str, Callable[[str], str]]


def _table(run: Run, columns: Sequence[Column]) -> None:
    if all(pick(name) == "–" for name in run.names for _, pick in columns):
        print("\nThis was not measured.")
        return
    heads = ["", *(head for head, _ in columns)]
    rows = [
        [f"**{NAMES[n]}**" if n == "ours" else NAMES[n], *(pick(n) for _, pick in columns)] for n in run.names
    ]
    kept.table(heads, rows)


def _deepest(run: Run, sizes: Sizes, name: str) -> str:
    reached = [count for count in sizes.levels if run.get(name, "down", count, "cpu_ms") is not None]
    if not reached:
        return "–"
    return f"≥ {reached[-1]}" if reached[-1] == sizes.levels[-1] else f"{reached[-1]}"


def _share(run: Run, name: str, what: str, count: int, which: str) -> str:
    part, whole = run.get(name, what, count, which), run.get(name, what, count, "sent")
    return "–" if part is None or not whole else f"{part / whole:.1%}"


def _new(run: Run, name: str, count: int) -> str:
    sent, same = run.get(name, "steps", count, "sent"), run.get(name, "steps", count, "same")
    requests = run.get(name, "steps", count, "requests")
    return "–" if sent is None or same is None or not requests else f"{(sent - same) / requests:,.0f} B"


def show(run: Run, sizes: Sizes) -> None:
    """Print the tables."""

    def number(
        what: str, count: int, which: str, digits: int = 1, scale: float = 1, unit: str = ""
    ) -> Callable[[str], str]:
        def pick(name: str) -> str:
            value = run.get(name, what, count, which)
            return _cell(None if value is None else value / scale, digits, unit)

        return pick

    def longest(name: str) -> str:
        came = run.get(name, "steps", sizes.long, "came") or 0
        last = _cell(run.get(name, "steps", sizes.long, "last"))
        return last if came in (0, sizes.long) else f"{last} at step {came:,.0f}, then ended"

    def growth(name: str) -> str:
        first, last = (run.get(name, "steps", sizes.long, one) for one in (f"at_{AT[0]}", "last"))
        return "–" if first is None or last is None else f"{last / first:.1f} times"

    print(
        "\n**A step**: one reply of the model with one call of a tool, in ms of processor time, by the number of steps before it. "
        f"Runs of {sizes.long:,} steps were measured two frameworks at a time, and ended after {LONGEST} seconds:"
    )
    _table(run, [*((f"step {n:,}", number("steps", sizes.steps, f"at_{n}")) for n in AT if n <= sizes.steps),
                 (f"step {sizes.long:,}", longest), ("growth from step 50", growth),
                 ("most memory", number("steps", sizes.long, "peak", 0, 1e6, " MB"))])  # fmt: skip
    print(
        f"\n**Stored**, {sizes.stored} steps with each framework's own persistence, then a new process that continues:"
    )
    _table(run, [("ms per step", number("stored", sizes.stored, "cpu_ms")), ("bytes per step", number("stored", sizes.stored, "bytes", 0)),
                 ("what it is", lambda name: STORES[name] if run.get(name, "stored", sizes.stored, "bytes") else "–"),
                 ("resume and answer, ms", number("resume", sizes.stored, "cpu_ms", 0))])  # fmt: skip
    first = sizes.levels[0]
    print(
        f"\n**Child agents**: {sizes.fan} called in one reply whose model takes {BRANCH_MS} ms each; then chains, each agent calling the next:"
    )
    _table(run, [("makespan, ms", number("fan", sizes.fan, "makespan", 0)), ("ms per child", number("fan", sizes.fan, "cpu_ms")),
                 (f"ms per level, {first} deep", number("down", first, "cpu_ms")),
                 (f"… {sizes.levels[-1]} deep", number("down", sizes.levels[-1], "cpu_ms")),
                 ("deepest chain that ended well", lambda name: _deepest(run, sizes, name))])  # fmt: skip
    print(
        f"\n**Memory** per agent, {sizes.agents} that wait for the model at once, each on its own connection:"
    )
    _table(run, [("waiting", number("agents", sizes.agents, "thinking", 1, 1000, " kB")), ("when they have answered", number("agents", sizes.agents, "idle", 1, 1000, " kB")),
                 ("whole process", number("agents", sizes.agents, "process", 0, 1e6, " MB"))])  # fmt: skip
    print(
        f"\n**Prompts** of {sizes.prompts} steps, and of a root with {sizes.family} children: the share of bytes that were in the same place of an earlier request:"
    )
    _table(run, [("the request before, same dialogue", lambda name: _share(run, name, "steps", sizes.prompts, "same")), ("new bytes per request", lambda name: _new(run, name, sizes.prompts)),
                 ("root and children, any earlier request", lambda name: _share(run, name, "fan", sizes.family, "cached"))])  # fmt: skip


STORES: Final[Mapping[str, str]] = {
    "ours": "journal, at each record",
    "shipped": "journal, versions and memory",
    "openai_agents": "SQLiteSession, at each turn of the run",
    "pydantic_ai": "JSON of the messages, when the run has ended",
    "autogen": "`save_state`, when the run has ended",
    "langgraph": "SQLite saver, at each step",
    "smolagents": "its steps as JSON, when the run has ended; nothing reads them back",
}


def charts(run: Run, sizes: Sizes) -> None:
    """Pass the charts to the report."""
    lines = []
    for name in run.names:
        marks = [(at, run.get(name, "steps", sizes.long, f"at_{at}")) for at in AT]
        marks.append(
            (int(run.get(name, "steps", sizes.long, "came") or 0), run.get(name, "steps", sizes.long, "last"))
        )
        if points := sorted({at: value for at, value in marks if at and value}.items()):
            lines.append((NAMES[name], points))
    if lines:
        kept.chart(
            kept.Chart("What one more step costs", "steps before it", "ms of processor time", lines, log=True)
        )
    for what, count, which, title, unit, scale in (
        ("stored", sizes.stored, "bytes", "Stored per step", "kB", 1000),
        ("down", sizes.levels[0], "cpu_ms", "A level of nesting", "ms of processor time", 1),
        ("agents", sizes.agents, "thinking", "Memory of an agent that waits for the model", "kB", 1000),
    ):
        bars = [(NAMES[n], run.get(n, what, count, which)) for n in run.names]
        known = [(name, [("", value / scale)]) for name, value in bars if value]
        if known:
            kept.chart(kept.Chart(title, "", unit, known, kind="bars", log=what == "stored"))


def main(arguments: Sequence[str]) -> int:
    """Measure, print and store the numbers. Returns 1 if iact could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round, small sizes")
    parser.add_argument("--only", nargs="*", choices=list(NAMES), default=list(NAMES), metavar="NAME")
    chosen = parser.parse_args(arguments)
    sizes = SHORT if chosen.short else Sizes()
    with endpoint() as url:
        run = Run(url, chosen.only)
        measure(run, sizes)
    show(run, sizes)
    charts(run, sizes)
    for why in dict.fromkeys(run.failed.values()):
        print(f"\nNot measured: {', '.join(what for what, one in run.failed.items() if one == why)}. {why}")
    kept.numbers({"found": run.found, "failed": run.failed})
    return 0 if run.found.get("ours") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
