"""Measure what the model on board gets right: everyday requests in three languages, through the real product.

`requests.toml` holds them; it was written before the prompt was. `--set` chooses others: `held-out`, which were written
before the prompt's second version; `review`, the first messages of a newcomer; `made`, pages and pictures; `dialogues` of
three messages; or `all` of these.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from benchmarks.everyday.play import (
    DIALOGUES,
    SETS,
    Dialogue,
    Outcome,
    Request,
    dialogues,
    lead,
    play,
    requests,
)
from iact.core.session.runtime import Runtime
from iact.settings import load
from iact.wiring import open_runtime

_ALL: Final = "all"
"""The choice of all sets."""


class Played(BaseModel):
    """What was asked, and how it ended: one line of a file of outcomes."""

    model_config = ConfigDict(frozen=True)

    asked: Request | Dialogue
    outcomes: tuple[Outcome, ...]
    """One for each message."""


class Outcomes:
    """What has been played, in a file if there is one, so that a later run goes on where this one ends."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._played: list[Played] = []
        if path is not None and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            self._played = [Played.model_validate_json(line) for line in lines]

    def of(self, asked: Request | Dialogue) -> Played | None:
        """How this ended; None if it has not been played, or with another expectation."""
        for played in self._played:
            if played.asked == asked:
                return played
        return None

    def add(self, played: Played) -> None:
        """Keep how something ended."""
        self._played.append(played)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(played.model_dump_json() + "\n")


async def _play_all(
    chosen: Sequence[Request | Dialogue], outcomes: Outcomes, data: Path, *, show: bool
) -> None:
    """Play what has not been played yet."""
    settings = load(data=str(data), environment={**os.environ, "IACT_MEMORY": "off"})
    async with open_runtime(settings, attended=False) as runtime:
        for asked in chosen:
            if outcomes.of(asked) is not None:
                continue
            played = Played(asked=asked, outcomes=await _ended(runtime, asked))
            outcomes.add(played)
            for outcome in played.outcomes:
                _print(outcome, show=show)


async def _ended(runtime: Runtime, asked: Request | Dialogue) -> tuple[Outcome, ...]:
    if isinstance(asked, Request):
        return (await play(runtime, asked),)
    return tuple(await lead(runtime, asked))


def _print(outcome: Outcome, *, show: bool) -> None:
    request = outcome.request
    mark = f"WRONG: {outcome.wrong}" if outcome.wrong else "right"
    print(f"{request.language} {request.kind}: {request.text!r} {mark} ({outcome.seconds:.0f} s)", flush=True)
    if show:
        print(f"    {outcome.answer!r}", flush=True)


def _chosen(name: str, language: str | None, kind: str | None) -> list[Request | Dialogue]:
    names = (*SETS, DIALOGUES) if name == _ALL else (name,)
    chosen: list[Request | Dialogue] = []
    for one_set in names:
        if one_set != DIALOGUES:
            chosen += [request for request in requests(one_set) if kind in (None, request.kind)]
        elif kind is None:
            chosen += dialogues()
    return [asked for asked in chosen if language in (None, asked.language)]


def _table(outcomes: Sequence[Outcome], name: str, key_of: Callable[[Request], str]) -> None:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key_of(outcome.request), []).append(outcome)

    print(f"\n| {name} | right | asked | seconds | tokens read | written |\n|---|---|---|---|---|---|")
    for key, group in groups.items():
        right = sum(not outcome.wrong for outcome in group)
        seconds = sum(outcome.seconds for outcome in group)
        read = sum(outcome.prompt_tokens - outcome.cached_tokens for outcome in group)
        written = sum(outcome.written_tokens for outcome in group)
        print(f"| {key} | {right} | {len(group)} | {seconds:.0f} | {read:,} | {written:,} |")


def main() -> None:
    """Play, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=(*SETS, DIALOGUES, _ALL), default=SETS[0], help="what is asked")
    parser.add_argument("--language", choices=("en", "de", "es"), help="only requests in this language")
    parser.add_argument("--kind", help="only requests of this kind")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth request")
    parser.add_argument("--show", action="store_true", help="print each answer")
    parser.add_argument(
        "--outcomes",
        type=Path,
        metavar="FILE",
        help="keep how each ended, as lines of JSON; what is there is not asked again",
    )
    options = parser.parse_args()

    chosen = _chosen(options.set, options.language, options.kind)[:: options.every]
    outcomes = Outcomes(options.outcomes)
    began, load_before = time.monotonic(), os.getloadavg()[0]
    if any(outcomes.of(asked) is None for asked in chosen):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_play_all(chosen, outcomes, Path(folder), show=options.show))
    used = resource.getrusage(resource.RUSAGE_SELF)

    played = [outcomes.of(asked) for asked in chosen]
    ended = [outcome for one in played if one is not None for outcome in one.outcomes]
    right = sum(not outcome.wrong for outcome in ended)
    print(f"\n{right} of {len(ended)} answers are right.")
    _table(ended, "set", lambda request: request.among)
    _table(ended, "language", lambda request: request.language)
    _table(ended, "kind", lambda request: request.kind)
    read = sum(outcome.prompt_tokens - outcome.cached_tokens for outcome in ended)
    print(
        f"\n{sum(outcome.turns for outcome in ended)} turns, {sum(outcome.misread for outcome in ended)} replies "
        f"misread; {read:,} tokens read, {sum(outcome.written_tokens for outcome in ended):,} written, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time and {time.monotonic() - began:.0f} s of clock time "
        f"(load at the start: {load_before:.1f})."
    )


if __name__ == "__main__":
    main()
