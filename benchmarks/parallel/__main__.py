"""Parallel steps through real modules and the command line: `python -m benchmarks.parallel [--rounds N]`.

Runs plans from a file, in which each step is a script in the shell's container; a first step, on which the others
depend, starts the container. Also runs a dialogue whose plan has eight agents, each with its own container. Times are
from the journal: from the end of the step that all others wait for to the end of the last step.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import kept
from benchmarks.kept import Target
from iact.core.journal import read_journal
from iact.core.records.plans import Node
from tests.acceptance.product import Product
from tests.endpoint import Endpoint, Request

Step = dict[str, object]
Spans = Mapping[str, tuple[float, float]]
"""When each step was dispatched and when it ended, in seconds since its plan's start."""


def shell(identity: str, command: str, *after: str) -> Step:
    return {"id": identity, "call": "shell.run", "params": {"command": command}, "after": list(after)}


def spans(journal: Path) -> Spans:
    """Read the spans from a journal."""
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for record in read_journal(journal).records:
        match record.content:
            case Node(node=node, to="running", t=at):
                began.setdefault(node, at)
            case Node(node=node, to="executed", t=at):
                ended[node] = at
            case Node(node=node, cause="lost_race"):
                began.pop(node, None)
    lost = sorted(began.keys() - ended.keys())
    if lost:
        raise RuntimeError(f"not every step was executed: {', '.join(lost)}; see {journal}")
    return {one: (began[one], ended[one]) for one in began}


def planned(folder: Path, steps: Sequence[Step]) -> Spans:
    """Run a plan whose first step is `warm`. Returns the spans of its steps."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    file = folder / "plan.json"
    file.write_text(json.dumps({"goal": "Work", "steps": [shell("warm", "true"), *steps]}))
    ran = Product.at(data).run("plan", "run", str(file), "--json")
    return spans(Path(json.loads(ran.stdout)["journal"]))


def makespan(found: Spans) -> float:
    """The seconds from the end of the first step to the end of the last one."""
    return max(end for _, end in found.values()) - found["warm"][1]


def sleeps(folder: Path, count: int) -> float:
    return makespan(planned(folder, [shell(f"s{n}", "sleep 1", "warm") for n in range(count)]))


def chain(folder: Path) -> float:
    """Eight scripts that depend on each other: what each step costs in addition to its own half second."""
    steps = [shell(f"s{n}", "sleep 0.5", f"s{n - 1}" if n else "warm") for n in range(8)]
    return (makespan(planned(folder, steps)) - 4) / 8


def one_file(folder: Path) -> float:
    """Two scripts that append to the same file for a second each. In parallel they would take one second together."""
    append = "echo a >> log; sleep 1; echo b >> log"
    found = planned(folder, [shell("s0", append, "warm"), shell("s1", append, "warm")])
    first, second = sorted((found["s0"], found["s1"]))
    if second[0] < first[1]:
        raise RuntimeError("two steps that write one file overlapped")
    return makespan(found)


def race(folder: Path) -> float:
    """Two steps that write the same file and race, each in a copy of the workspace with its own container.

    Measured from the end of the step that both wait for to the end of the winner, which sleeps for a second, including
    the time to take over its changes.
    """
    first = shell("s0", "echo a >> log; sleep 60; echo b >> log", "warm")
    second = shell("s1", "echo a >> log; sleep 1; echo b >> log", "warm")
    last: Step = {**shell("last", "cat log", "s0", "s1"), "join": "any_of"}
    found = planned(folder, [first, second, last])
    return found["s1"][1] - found["warm"][1]


def agents(folder: Path) -> float:
    """Eight agents, each of which runs a script of one second in its own container."""

    def answer(request: Request) -> str:
        if request.agent == "/":
            steps = "\n".join(f"  - {{id: s{n}, agent: a{n}, task: Sleep.}}" for n in range(8))
            return f"```PLAN p\ngoal: Sleep\nsteps:\n{steps}\n```" if request.turn == 0 else "Done."
        return "```shell.run\nsleep 1\n```" if request.turn == 0 else "Slept."

    endpoint = Endpoint(answer).start()
    try:
        data = folder / "data"
        data.mkdir(exist_ok=True)
        found = spans(Product.at(data, endpoint).ask("Sleep.").journal)
    finally:
        endpoint.stop()
    return max(end for _, end in found.values()) - min(begin for begin, _ in found.values())


WORK: Mapping[str, tuple[Callable[[Path], float], float | None]] = {
    "four sleeps of a second": (lambda folder: sleeps(folder, 4), 1.6),
    "sixteen sleeps of a second": (lambda folder: sleeps(folder, 16), 2.5),
    "a chain of eight, for each step": (chain, 0.25),
    "two that write one file, a second each": (one_file, None),
    "two that write one file and race, a second and a minute": (race, None),
    "eight agents, their containers included": (agents, None),
}
"""The measurements, and the most seconds that each may take."""


def main() -> int:
    """Measure and print. Returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    found: dict[str, float] = {}
    for name, (measure, _) in WORK.items():
        with tempfile.TemporaryDirectory(prefix="iact-parallel-") as folder:
            found[name] = statistics.median(measure(Path(folder)) for _ in range(rounds))
    targets = [Target(name, found[name], limit, "s") for name, (_, limit) in WORK.items()]
    kept.targets(targets)
    kept.numbers({name: round(seconds, 2) for name, seconds in found.items()})
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
