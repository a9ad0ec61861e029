"""A read-only, a writing and a first call, and a session's memory, compared with an earlier commit.

    python -m benchmarks.beside [--before REVISION] [--rounds N] [--calls N] [--backend docker|bubblewrap] [--thinks SECONDS]

Both commits run `session.py` in turns. Each round is a new session in a new process, so that a change in the speed of
the machine affects both alike. The ratio of the medians counts. The model answers at once, or after a delay
(`--thinks`). The earlier commit is checked out into a temporary folder, and runs in this checkout's environment.
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
"""The last commit at which one instance of a module served both read-only and writing calls."""
_SESSION: Final = Path(__file__).with_name("session.py")
_WHAT: Final = ("first look", "first write", "look", "write")

Found = dict[str, dict[str, dict[str, float]]]


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Check out the files of a commit into a temporary folder."""
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
    """Medians of milliseconds and of megabytes, by kind of workspace and then by commit."""
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
    """Run one session of the checkout at `place`."""
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
