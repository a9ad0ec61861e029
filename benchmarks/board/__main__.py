"""Play 20 tasks on the model on board through the whole product, and compare with the last figures.

Prints how many it solved, with turns, seconds and misread replies, beside the figures in
`docs/measurements/on-board.json`. Exit status 1: more ended wrong than may, so a change of a prompt, a label or a rule has
broken a real model; or the model is not to be had. `--keep` writes the new figures there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from benchmarks.board.play import Played, Task, open_stages, play, tasks
from iact.core.errors import ModelError

KEPT: Final = Path(__file__).parents[2] / "docs" / "measurements" / "on-board.json"
"""The last figures that somebody kept, and how many tasks may end wrong."""

MOST_SECONDS: Final = 720.0
"""After so long, no further task is begun, so that a slow machine costs a build minutes and not an hour."""

_SHOWN: Final = 160
"""The most characters of a wrong answer that are printed."""

_ENDPOINT: Final = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "IACT_MODEL")
"""Variables that would let another model answer."""


class BoardFigures(BaseModel):
    """The figures of all tasks together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    may_fail: int
    """How many tasks may end wrong. Well above what is measured: other processors and other times change answers."""
    solved: int
    turns: int
    misread: int
    """Replies of which an action was not run for its form."""
    seconds: float
    """How long the tasks took, one after another, without starting the product."""
    load: float
    """The mean of the machine's load at their start and end, without which the seconds say nothing."""
    unsolved: tuple[str, ...]
    """What was asked in the tasks that were not solved."""


def last_figures() -> BoardFigures:
    """The figures that were kept last."""
    return BoardFigures.model_validate_json(KEPT.read_text(encoding="utf-8"))


def figures(played: Sequence[Played], *, may_fail: int, load: float) -> BoardFigures:
    """Add up how tasks ended."""
    return BoardFigures(
        may_fail=may_fail,
        solved=sum(not outcome.wrong for outcome in played),
        turns=sum(outcome.turns for outcome in played),
        misread=sum(outcome.misread for outcome in played),
        seconds=round(sum(outcome.seconds for outcome in played), 1),
        load=round(load, 1),
        unsolved=tuple(outcome.task.name for outcome in played if outcome.wrong),
    )


def report(now: BoardFigures, last: BoardFigures, *, count: int, skipped: int) -> str:
    """The figures beside the last ones, in Markdown, and what they mean.

    `count`: how many tasks there are. `skipped`: how many of them were not begun in time.
    """
    lines = [
        "| | now | last |",
        "|---|---|---|",
        f"| solved, of {count} | {now.solved} | {last.solved} |",
        f"| turns | {now.turns} | {last.turns} |",
        f"| replies misread | {now.misread} | {last.misread} |",
        f"| seconds | {now.seconds:.0f} | {last.seconds:.0f} |",
        f"| load of the machine | {now.load:.1f} | {last.load:.1f} |",
    ]
    broken = [name for name in now.unsolved if name not in last.unsolved]
    if broken:
        lines += [
            "",
            "Not solved now, and not among the unsolved of last time:",
            *(f"- {name}" for name in broken),
        ]
    if skipped:
        lines += [
            "",
            f"{skipped} were not begun: this machine took {MOST_SECONDS:.0f} seconds for the others.",
        ]
    if is_broken(now):
        lines += [
            "",
            f"{len(now.unsolved)} ended wrong, and {now.may_fail} may: what this model reads, or how it is read, has "
            "changed.",
        ]
    return "\n".join(lines)


def is_broken(now: BoardFigures) -> bool:
    """Whether more tasks ended wrong than may, or none at all is solved."""
    return len(now.unsolved) > now.may_fail or now.solved == 0


async def _play_all(chosen: Sequence[Task], folder: Path) -> list[Played]:
    environment = {**os.environ, "IACT_EMBEDDED": "1.5b"}
    for name in _ENDPOINT:
        environment.pop(name, None)

    played: list[Played] = []
    async with open_stages(folder, environment) as stages:
        end = time.monotonic() + MOST_SECONDS
        for task in chosen:
            if time.monotonic() > end:
                break
            outcome = await play(stages, task)
            played.append(outcome)
            print(_line(outcome), flush=True)
    return played


def _line(outcome: Played) -> str:
    spent = f"({outcome.turns} turns, {outcome.seconds:.0f} s)"
    asked = f"{outcome.task.kind}: {outcome.task.name!r}"
    if not outcome.wrong:
        return f"{asked} solved {spent}"
    return f"{asked} NOT SOLVED: {outcome.wrong} {spent}\n    {outcome.answer[:_SHOWN]!r}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", help="only tasks of this kind; nothing is compared then")
    parser.add_argument("--keep", action="store_true", help="keep the figures for the next comparison")
    options = parser.parse_args(arguments)

    chosen = [task for task in tasks() if options.kind in (None, task.kind)]
    load_before = os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory() as folder:
            played = asyncio.run(_play_all(chosen, Path(folder)))
    except ModelError as error:
        print(f"The model on board is not to be had: {error}", file=sys.stderr)
        return 1
    if options.kind is not None:
        return int(any(outcome.wrong for outcome in played))

    last = last_figures()
    load = (load_before + os.getloadavg()[0]) / 2
    now = figures(played, may_fail=last.may_fail, load=load)
    print(f"\n{report(now, last, count=len(chosen), skipped=len(chosen) - len(played))}", flush=True)
    if options.keep and len(played) == len(chosen):
        KEPT.write_text(now.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return int(is_broken(now))


if __name__ == "__main__":
    sys.exit(main())
