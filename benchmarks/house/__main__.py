"""The amount of source at two commits: files, lines, classes and functions of the product and of its tests.

    python -m benchmarks.house [--before REVISION] [--after REVISION]

Empty lines are not counted. Generated protobuf code, and the modules that examples were recorded with, are left out.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "c70af94^"
"""The last commit before the reorganization of the source."""

_TESTS: Final = ("tests/", "benchmarks/", "docs/")
_GENERATED: Final = ("protos/iact/", "examples/recording/modules/")


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


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def counted(revision: str, *, tests: bool) -> Source:
    """The counts of the source at a commit. `tests`: of tests, benchmarks and documentation instead of the product."""
    files: list[int] = []
    functions: list[int] = []
    classes = 0
    for name in _git("ls-tree", "-r", "--name-only", revision).splitlines():
        if not name.endswith(".py") or name.startswith(_GENERATED) or name.startswith(_TESTS) != tests:
            continue
        text = _git("show", f"{revision}:{name}")
        files.append(_lines(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(_lines(ast.get_source_segment(text, node) or ""))
    return Source(files, functions, classes)


def main() -> None:
    """Print two tables, before and after: the source of the product, and of tests, benchmarks and documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--after", default="HEAD")
    options = parser.parse_args()
    for title, tests in (("product", False), ("tests, benchmarks, documentation", True)):
        before, after = (counted(revision, tests=tests) for revision in (options.before, options.after))
        print(f"\n| {title} | before | after |\n|---|---|---|")
        for (name, then), (_, now) in zip(before.rows(), after.rows(), strict=True):
            print(f"| {name} | {then} | {now} |")


if __name__ == "__main__":
    main()
