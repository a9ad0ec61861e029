"""What is left of a command after each of its ends: `python -m benchmarks.ends [--only WORDS] [--fifth] [--write]`.

Each command that holds sessions, ended in each way, at each moment, over each backend: from the end on, what is still
there of it is counted for at most 15 seconds, by the kernel, the engine and the file system. Then the next start is made
in the same session, and what it says is noted; after it, nothing at all may be left. Cells that are known already are not
played again with `--go-on`. `--write` writes docs/measurements/ends.md from everything that is known.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.ends import report
from benchmarks.ends.cells import CELLS, POSSIBLE, Cell, a_fifth
from benchmarks.ends.played import Outcome, play

KEPT: Final = Path(__file__).parents[2] / "build" / "ends.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Play cells, print the table, and return 1 if anything was left that may not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ends", description=__doc__)
    parser.add_argument(
        "--only", default="", help="only cells whose name has all of these, with commas between them"
    )
    parser.add_argument("--fifth", action="store_true", help="only every fifth cell")
    parser.add_argument("--go-on", action="store_true", help="keep what an earlier, interrupted run found")
    parser.add_argument("--at-once", type=int, default=2, help="how many cells are played at a time")
    parser.add_argument("--write", action="store_true", help="write docs/measurements/ends.md")
    chosen = parser.parse_args(arguments)

    known = _read() if chosen.go_on or chosen.write else {}
    words = [word for word in chosen.only.split(",") if word]
    wanted = [
        cell for cell in (a_fifth() if chosen.fifth else POSSIBLE) if all(word in cell.name for word in words)
    ]
    if not chosen.go_on and not chosen.write:
        KEPT.unlink(missing_ok=True)
    _play([cell for cell in wanted if cell not in known], known, chosen.at_once)

    shown = CELLS if not words and not chosen.fifth else wanted
    text = report.table(shown, known)
    print(text)
    if chosen.write:
        report.write(text, known)
    wrong = [outcome for cell, outcome in known.items() if cell in wanted and outcome.wrong]
    for outcome in wrong:
        print(f"{outcome.cell.name}: {outcome.wrong}", file=sys.stderr)
    return 1 if wrong else 0


def _play(cells: Sequence[Cell], known: dict[Cell, Outcome], at_once: int) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    with ThreadPoolExecutor(at_once) as pool:
        for outcome in pool.map(_one, cells):
            known[outcome.cell] = outcome
            print(f"{outcome.cell.name}: {outcome.wrong or outcome.told()}", file=sys.stderr, flush=True)
            with KEPT.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(outcome)) + "\n")


def _one(cell: Cell) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="ends-"))
    outcome = play(cell, folder)
    if not outcome.wrong:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _read() -> dict[Cell, Outcome]:
    if not KEPT.exists():
        return {}
    found = [Outcome.read(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return {outcome.cell: outcome for outcome in found}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
