"""Measure what the model on board gets right: everyday requests in three languages, through the real product.

`requests.toml` holds them; it was written before the prompt was. `--set` chooses others: `held-out`, which were written
before the prompt's last change; `review`, the first messages that a review names; or `dialogues` of three messages.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from benchmarks.everyday.play import SETS, Dialogue, Outcome, Request, dialogues, lead, play, requests
from iact.core.session.runtime import Runtime
from iact.settings import load
from iact.wiring import open_runtime


async def _play_all(chosen: list[Request] | list[Dialogue], data: Path, *, show: bool) -> list[Outcome]:
    settings = load(data=str(data), environment={**os.environ, "IACT_MEMORY": "off"})
    outcomes = []
    async with open_runtime(settings, attended=False) as runtime:
        for one in chosen:
            async for outcome in _outcomes(runtime, one):
                outcomes.append(outcome)
                _print(outcome, show=show)
    return outcomes


async def _outcomes(runtime: Runtime, asked: Request | Dialogue) -> AsyncIterator[Outcome]:
    if isinstance(asked, Request):
        yield await play(runtime, asked)
        return
    for outcome in await lead(runtime, asked):
        yield outcome


def _print(outcome: Outcome, *, show: bool) -> None:
    request = outcome.request
    mark = f"WRONG: {outcome.wrong}" if outcome.wrong else "right"
    print(f"{request.language} {request.kind}: {request.text!r} {mark} ({outcome.seconds:.0f} s)", flush=True)
    if show:
        print(f"    {outcome.answer!r}", flush=True)


def _chosen(name: str, language: str | None, kind: str | None) -> list[Request] | list[Dialogue]:
    if name == "dialogues":
        return [dialogue for dialogue in dialogues() if language in (None, dialogue.language)]
    return [
        request
        for request in requests(name)
        if language in (None, request.language) and kind in (None, request.kind)
    ]


def _table(outcomes: list[Outcome], name: str, key_of: Callable[[Request], str]) -> None:
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
    parser.add_argument("--set", choices=(*SETS, "dialogues"), default=SETS[0], help="what is asked")
    parser.add_argument("--language", choices=("en", "de", "es"), help="only requests in this language")
    parser.add_argument("--kind", help="only requests of this kind")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth request")
    parser.add_argument("--show", action="store_true", help="print each answer")
    asked = parser.parse_args()
    chosen = _chosen(asked.set, asked.language, asked.kind)[:: asked.every]
    began, load_before = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = asyncio.run(_play_all(chosen, Path(folder), show=asked.show))
    used = resource.getrusage(resource.RUSAGE_SELF)

    right = sum(not outcome.wrong for outcome in outcomes)
    print(f"\n{right} of {len(outcomes)} answers are right.")
    _table(outcomes, "language", lambda request: request.language)
    _table(outcomes, "kind", lambda request: request.kind)
    read = sum(outcome.prompt_tokens - outcome.cached_tokens for outcome in outcomes)
    print(
        f"\n{sum(outcome.turns for outcome in outcomes)} turns, {sum(outcome.misread for outcome in outcomes)} replies "
        f"misread; {read:,} tokens read, {sum(outcome.written_tokens for outcome in outcomes):,} written, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time and {time.monotonic() - began:.0f} s of clock time "
        f"(load at the start: {load_before:.1f})."
    )


if __name__ == "__main__":
    main()
