"""A look, a write, a first call and the memory of a session: this checkout beside an earlier commit, in one run.

    python -m benchmarks.beside [--before REVISION] [--rounds N] [--calls N] [--backend docker|bubblewrap] [--thinks SECONDS]

Both commits run `session.py` in turns, each round a new session in a process of its own, so that a machine whose speed
drifts slows both alike. What counts is the ratio of the medians. The model answers at once, unless it is told to think
(`--thinks`). The earlier commit is checked out beside this one, into a folder that is removed at the end, and runs
under this one's environment.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import kept

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "47293cf"
"""The last commit at which one instance of a module served looks and writes alike."""
_SESSION: Final = Path(__file__).with_name("session.py")
_WHAT: Final = ("first look", "first write", "look", "write")

Found = dict[str, dict[str, dict[str, float]]]


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of a commit, in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="iact-before-") as folder:
        place = Path(folder) / "checkout"
        _git("worktree", "add", "--quiet", "--detach", str(place), revision)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, stdout=subprocess.DEVNULL)


def measure(before: Path, *, rounds: int, calls: int, backend: str, thinks: float) -> Found:
    """By kind of workspace, then by commit: medians of milliseconds, and of megabytes."""
    found: Found = {}
    for where in ("scratch", "live"):
        taken: dict[str, dict[str, list[float]]] = {"before": {}, "now": {}}
        for _ in range(rounds):
            for name, place in (("before", before), ("now", ROOT)):
                for what, numbers in _run(place, calls, where, backend, thinks).items():
                    taken[name].setdefault(what, []).extend(numbers)
        found[where] = {
            name: {what: round(statistics.median(numbers), 1) for what, numbers in rows.items()}
            for name, rows in taken.items()
        }
    return found


def _run(place: Path, calls: int, where: str, backend: str, thinks: float) -> dict[str, list[float]]:
    """One session of the checkout at `place`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(_SESSION), str(calls), where, backend, str(thinks)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    return {
        **said["taken"],
        "memory": [said["memory_mb"]],
        "memory by PSS": [said["shared_mb"]],
        "modules": [said["modules"]],
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--backend", choices=("docker", "bubblewrap"), default="docker")
    parser.add_argument("--thinks", type=float, default=0.0, help="seconds that the model takes for a reply")
    options = parser.parse_args()
    with checkout(options.before) as before:
        found = measure(
            before, rounds=options.rounds, calls=options.calls, backend=options.backend, thinks=options.thinks
        )
    rows = []
    for where, sides in found.items():
        for what, unit in (
            *((one, "ms") for one in _WHAT),
            ("memory", "MB"),
            ("memory by PSS", "MB"),
            ("modules", ""),
        ):
            then, now = sides["before"][what], sides["now"][what]
            ratio = f"{now / then:.2f}" if then else "–"
            rows.append((f"{what}, {where}", f"{then:g} {unit}", f"{now:g} {unit}", ratio))
    kept.table(("", f"at {options.before}", "now", "now / before"), rows)
    kept.numbers(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
