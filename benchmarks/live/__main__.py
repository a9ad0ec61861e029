"""The cost of the overlay of a live directory: `python -m benchmarks.live [--files N] [--rounds N]`, as root.

Uses a directory of many small files, on the file system of the data directory. The same run measures the plain
alternative, a copy of a part of the directory. Targets are for processor time, which other work on the machine changes
little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import kept
from benchmarks.kept import Target
from iact.sandbox.live import open_live
from iact.sandbox.live.overlay import Overlay

_MANY = 5_000
_LARGE = 200 << 20


Took = tuple[float, float]
"""Milliseconds of wall-clock time and of processor time."""


def timed(action: Callable[[], object]) -> Took:
    """The time of one run."""
    wall, processor = time.perf_counter_ns(), time.process_time_ns()
    action()
    return (time.perf_counter_ns() - wall) / 1e6, (time.process_time_ns() - processor) / 1e6


def middle(action: Callable[[], object], rounds: int) -> Took:
    """The median time of several runs."""
    return _median([timed(action) for _ in range(rounds)])


def _median(some: Sequence[Took]) -> Took:
    return statistics.median(wall for wall, _ in some), statistics.median(processor for _, processor in some)


def plant(directory: Path, files: int) -> None:
    """A directory of `files` small files, a hundred to a folder."""
    for number in range(files):
        folder = directory / f"{number // 10_000}" / f"{number // 100}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"{number}.txt").write_text(f"file {number}\n")


def paths(overlay: Overlay) -> list[str]:
    return [change.path for change in overlay.changes()]


def applied(overlay: Overlay, some: list[str]) -> None:
    outcomes = {each.outcome for each in overlay.apply(some)}
    if outcomes != {"applied"}:
        raise RuntimeError(f"not everything was applied: {outcomes}")


def one_write(overlay: Overlay, round_: int) -> Took:
    """The time of `changes` after one small write."""
    overlay.refresh()
    (overlay.folder / "0" / "7" / "712.txt").write_text(f"changed {round_}\n")
    took = timed(overlay.changes)
    applied(overlay, paths(overlay))
    return took


def walk(folder: Path) -> int:
    """Look at every file, as `find` and `git status` do."""
    return sum(
        1 for here, _, files in os.walk(folder) for name in files if os.lstat(os.path.join(here, name))
    )


def measure(place: Path, files: int, rounds: int) -> dict[str, Took]:
    """All measurements, in milliseconds."""
    directory, store = place / "directory", place / "store"
    plant(directory, files)
    found: dict[str, Took] = {}
    part = directory / "0"
    found["copy of 10,000 files of it"] = timed(lambda: shutil.copytree(part, place / "copy", symlinks=True))
    found["mount and unmount"] = middle(lambda: open_live(directory, store).close(), rounds)
    overlay = open_live(directory, store)
    try:
        found["walk, in the directory"] = middle(lambda: walk(directory), 3)
        found["walk, in the overlay"] = middle(lambda: walk(overlay.folder), 3)
        time.sleep(6)  # after five seconds, a process that belongs to no module is not checked again
        overlay.refresh()
        found["refresh"] = middle(overlay.refresh, 20 * rounds)
        walk(overlay.folder)
        found["refresh after a walk"] = timed(overlay.refresh)
        found["refresh with a job"] = held(overlay, rounds)
        found["changes, one write"] = _median([one_write(overlay, number) for number in range(rounds)])
        found |= many(overlay)
        found |= large(overlay)
    finally:
        overlay.close()
    return found


def held(overlay: Overlay, rounds: int) -> Took:
    """Measure with a process whose working directory is in the overlay, in its own namespace like a module's."""
    job = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            f"cd {overlay.folder}/0/7; echo ready; read line < 711.txt; read line",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert job.stdout is not None
        job.stdout.readline()
        return middle(overlay.refresh, 20 * rounds)
    finally:
        job.communicate(b"\n")  # which ends it


def many(overlay: Overlay) -> dict[str, Took]:
    """Measure after a session wrote thousands of files."""
    overlay.refresh()
    (overlay.folder / "new").mkdir()
    for number in range(_MANY):
        (overlay.folder / "new" / str(number)).write_text(f"{number}\n" * 50)
    first = timed(overlay.changes)
    time.sleep(0.1)  # digests of files written in the clock's last tick are not remembered
    overlay.changes()
    again = timed(overlay.changes)
    some = paths(overlay)
    return {
        "changes, 5,000 files": first,
        "changes, 5,000 files again": again,
        "apply, 5,000 files": timed(lambda: applied(overlay, some)),
        "refresh after it": timed(overlay.refresh),
    }


def large(overlay: Overlay) -> dict[str, Took]:
    """Measure after a session wrote 200 MB."""
    overlay.refresh()
    with (overlay.folder / "large").open("wb") as stream:
        for _ in range(_LARGE >> 20):
            stream.write(os.urandom(1 << 20))
    first = timed(overlay.changes)
    some = paths(overlay)
    return {"changes, 200 MB": first, "apply, 200 MB": timed(lambda: applied(overlay, some))}


def main() -> int:
    """Measure and print. Returns 1 if a target is missed, and 2 if overlays are not possible here."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    if os.geteuid() != 0:
        print("Mounting needs root. Run this benchmark as root.", file=sys.stderr)
        return 2
    place = Path(tempfile.mkdtemp(prefix="iact-live-", dir=os.environ.get("IACT_BENCH_DISK")))
    try:
        found = measure(place, chosen.files, chosen.rounds)
    finally:
        shutil.rmtree(place)
    print(f"\nIn a directory of {chosen.files:,} files:")
    kept.table(
        ("what", "ms", "ms of the processor"),
        [(name, f"{wall:,.2f}", f"{processor:,.2f}") for name, (wall, processor) in found.items()],
    )
    targets = [
        Target("refresh before a call", found["refresh"][1], 2, "ms"),
        Target("changes after one small write", found["changes, one write"][1], 5, "ms"),
        Target("changes, 5,000 files", found["changes, 5,000 files"][1], 2_000, "ms"),
        Target("changes, 200 MB", found["changes, 200 MB"][1], 2_000, "ms"),
    ]
    kept.targets(targets)
    kept.numbers({name: round(processor, 2) for name, (_, processor) in found.items()})
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
