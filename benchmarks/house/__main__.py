"""The amount of source at two commits, and how densely it is written, room by room.

    python -m benchmarks.house [--before REVISION] [--after REVISION] [--anchors | --functions ROOM [--seed N]]

Files, lines, classes and functions of the product and of its tests (empty lines are not counted), then the table of
`breathing` for each room of the product. `--anchors` adds well-known packages, counted by the same rules; pip downloads
them. `--functions` prints ten functions of a room instead, chosen by a seed, as they were and as they are. Generated
protobuf code, and the modules that examples were recorded with, are left out.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.house.breathing import Breathing, breathing
from benchmarks.house.functions import SEED, chosen, source_of

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "c70af94^"
"""The last commit before the reorganization of the source."""

_SPLIT: Final = {"core/session": ("core/stored", "core/views")}
"""The rooms into which files of a room have moved since."""

_TESTS: Final = ("tests/", "benchmarks/", "docs/")
_GENERATED: Final = ("protos/iact/", "examples/recording/modules/")
_ANCHORS: Final = (
    "websockets",
    "anyio",
    "trio",
    "httpx",
    "eventsourcing",
    "temporalio",
    "langgraph",
    "pydantic-ai-slim",
)


@dataclass(frozen=True, slots=True)
class Source:
    """The counts of some files: the lines of each file and function, and the number of classes."""

    files: list[int]
    functions: list[int]
    classes: int

    def rows(self) -> Iterator[tuple[str, str]]:
        """Each count with its name."""
        within = statistics.quantiles(self.functions, n=20)[-1]
        yield "files", f"{len(self.files):,}"
        yield "lines", f"{sum(self.files):,}"
        yield "classes", f"{self.classes:,}"
        yield "functions", f"{len(self.functions):,}"
        yield (
            "lines of a function: median, 95 % within",
            f"{statistics.median(self.functions):.0f}, {within:.0f}",
        )
        yield "lines of a file: median, longest", f"{statistics.median(self.files):.0f}, {max(self.files)}"


@functools.cache
def _sources(revision: str) -> dict[str, str]:
    """The Python files at a commit that somebody wrote, by name."""
    command = ["git", "archive", revision, "*.py"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            member.name: contents.read().decode()
            for member in archive
            if not member.name.startswith(_GENERATED)
            and (contents := archive.extractfile(member)) is not None
        }


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def counted(revision: str, *, tests: bool) -> Source:
    """The counts of the source at a commit. `tests`: of tests, benchmarks and documentation instead of the product."""
    files: list[int] = []
    functions: list[int] = []
    classes = 0
    for name, text in _sources(revision).items():
        if name.startswith(_TESTS) != tests:
            continue
        files.append(_lines(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(_lines(ast.get_source_segment(text, node) or ""))
    return Source(files, functions, classes)


def rooms(revision: str) -> dict[str, dict[str, str]]:
    """The files of the product at a commit, as texts by name, by room: a folder of `core`, or one at the top."""
    by_room: dict[str, dict[str, str]] = {}
    for name, text in _sources(revision).items():
        if name.startswith(_TESTS):
            continue
        folders = name.split("/")[:-1]
        depth = 2 if folders[:1] == ["core"] else 1
        room = "/".join(folders[:depth])
        by_room.setdefault(room, {})[name] = text
    return by_room


def anchor(package: str) -> Breathing:
    """The counts of a package's newest wheel, without its tests."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        subprocess.run(command, check=True, capture_output=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".py") and "/_tests/" not in name]
            return breathing([wheel.read(name).decode() for name in names])


def _print_rooms(before: str, after: str) -> None:
    then, now = rooms(before), rooms(after)
    print(f"\n| room | | {Breathing.HEADER.removeprefix('| ')}\n|---|---|---|---|---|---|---|---|")
    for room in sorted(then.keys() | now.keys()):
        for side, files in (("before", then.get(room)), ("now", now.get(room))):
            if files:
                print(f"| {room} | {side} | {breathing(files.values()).cells()} |")


def _followed(then: Mapping[str, str], now: Mapping[str, dict[str, str]], room: str) -> dict[str, str]:
    """The files of a room now, by the names that they had. One that has left it is in a room of `_SPLIT`."""
    files = now.get(room, {})
    missing = {Path(name).name: name for name in then if name not in files}
    moved = {
        missing[Path(name).name]: text
        for beside, texts in now.items()
        if beside in _SPLIT.get(room, ())
        for name, text in texts.items()
        if Path(name).name in missing
    }
    return {**files, **moved}


def _print_functions(before: str, after: str, room: str, seed: int) -> None:
    then = rooms(before).get(room, {})
    now = _followed(then, rooms(after), room)
    for number, place in enumerate(chosen(then, seed), 1):
        print(f"\n## {number}. `{place.name}` in {place.file}\n")
        for side, files in (("Before", then), ("Now", now)):
            source = source_of(files, place)
            print(
                f"{side}:\n\n```python\n{source}\n```\n"
                if source
                else f"{side}: there is none of that name.\n"
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--after", default="HEAD")
    parser.add_argument("--anchors", action="store_true", help="also count well-known packages")
    parser.add_argument("--functions", metavar="ROOM", help="print functions of a room: core/tree")
    parser.add_argument("--seed", type=int, default=SEED, help="which functions")
    options = parser.parse_args()
    if options.functions:
        _print_functions(options.before, options.after, options.functions, options.seed)
        return

    for title, tests in (("product", False), ("tests, benchmarks, documentation", True)):
        before, after = (counted(revision, tests=tests) for revision in (options.before, options.after))
        print(f"\n| {title} | before | after |\n|---|---|---|")
        for (name, then), (_, now) in zip(before.rows(), after.rows(), strict=True):
            print(f"| {name} | {then} | {now} |")

    _print_rooms(options.before, options.after)
    for package in _ANCHORS if options.anchors else ():
        print(f"| {package} | | {anchor(package).cells()} |")


if __name__ == "__main__":
    main()
