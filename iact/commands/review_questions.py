"""Waiting changes at the end of `iact run`: asked about at a terminal, otherwise reported on standard error."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from iact.commands.reviews import Row, count_all, digest, fold, how, listing
from iact.core.errors import Changed, IactError
from iact.core.session.effects import SeenChanges, SettledChanges
from iact.core.session.session import Session

_MOST: Final = 40
"""The number of paths that are listed; the rest are only counted."""
_QUESTION: Final = "[a]pply all, [d]iff, [c]hoose one by one, [x] drop all, or [L]eave them for later: "
_EACH: Final = "[y]es apply, [n]o leave it, [x] drop it, [q]uit: "


async def review(session: Session, *, asks: bool) -> list[str]:
    """Report the waiting changes and, if `asks`, let the person decide. Returns the paths that still wait."""
    found = await session.effects.rows()
    if found and asks:
        await _ask(session, found)
        found = await session.effects.rows()
    if found:
        some = "1 change is waiting" if len(found) == 1 else f"{len(found)} changes are waiting"
        print(f"{some} for you. {how(session.id)}", file=sys.stderr)
    return _paths(found)


def _paths(found: Sequence[Row]) -> list[str]:
    return [str(row["path"]) for row in found]


async def _ask(session: Session, found: Sequence[Row]) -> None:
    read, folded = fold(found)
    shown = read[:_MOST]
    lines = await count_all(session.effects, _paths(shown))
    since = session.view.record
    seen = SeenChanges(whole=digest(found))
    more = [f"… and {len(read) - _MOST} more"] if len(read) > _MOST else []
    more += [f"and {folded}"] if folded else []
    _say("\n".join([
        f"These changes are not in {session.workspace} yet:",
        *(f"  {line}" for line in [*listing(shown, lines), *more]),
        str(found[0]["reason"]),
    ]))  # fmt: skip
    while True:
        match await _line(_QUESTION):
            case "a" | "apply":
                return await _settle(session.effects.apply(None, since=since, seen=seen))
            case "x":
                return await _settle(session.effects.drop(None, since=since, seen=seen))
            case "d" | "diff":
                for path in _paths(read):
                    _say(await session.effects.patch(path))
                if folded:
                    _say(f"Not shown: {folded}.")
            case "c" | "choose" | "s":
                return await _choose(session, found, since)
            case _:
                return None


async def _settle(work: Awaitable[SettledChanges]) -> None:
    try:
        _told(await work)
    except Changed as error:
        _say(str(error))


async def _choose(session: Session, found: Sequence[Row], since: int) -> None:
    """Ask about each change that is to be read, and then about what is only noise, all at once."""
    read, folded = fold(found)
    for path in _paths(read):
        if path not in _paths(await session.effects.rows(fresh=False)):
            continue  # applied or dropped together with another path

        _say(await session.effects.patch(path))
        if not await _decide(session, [path], _below(found, path), since):
            return

    still = set(_paths(await session.effects.rows(fresh=False)))
    noise = {str(row["path"]): str(row["digest"]) for row in found if row.get("noise")}
    left = {path: seen for path, seen in noise.items() if path in still}
    if left:
        _say(f"And {folded}:")
        await _decide(session, list(left), left, since)


async def _decide(session: Session, paths: list[str], seen: dict[str, str], since: int) -> bool:
    """Ask about these changes, and do what the person says. Returns whether they want to be asked about others.

    `seen`: the digests of what is settled with them.
    """
    shown = SeenChanges(each=seen)
    try:
        match await _line(_EACH):
            case "y" | "yes":
                _told(await session.effects.apply(paths, since=since, seen=shown))
            case "x":
                _told(await session.effects.drop(paths, since=since, seen=shown))
            case "q" | "quit" | "":
                return False
    except IactError as error:
        _say(str(error))
        return False
    return True


def _below(found: Sequence[Row], path: str) -> dict[str, str]:
    """The digests of the change at a path and of those below it, which are settled with it."""
    return {
        str(row["path"]): str(row["digest"])
        for row in found
        if row["path"] == path or str(row["path"]).startswith(f"{path}/")
    }


def _told(settled: SettledChanges) -> None:
    for one in (*settled.notes, *settled.left):
        _say(f"{one.path}: {one.why}")


def _say(text: str) -> None:
    print(text.rstrip("\n"), file=sys.stderr, flush=True)


async def _line(prompt: str) -> str:
    """The line that the person types, or an empty string at the end of the input."""
    print(prompt, end="", file=sys.stderr, flush=True)
    return (await _when_readable(sys.stdin.readline)).strip().lower()


async def _when_readable(read: Callable[[], str]) -> str:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return read()
