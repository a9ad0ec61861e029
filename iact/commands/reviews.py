"""Changes that wait to be applied to a directory of the user's: `workspace pending`, `diff`, `apply`, `drop`.

If a server is running, it carries out the command. Otherwise this process does, on the stored session.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from iact import signals
from iact.address import NoServer
from iact.commands import remote
from iact.commands.agreement import agreed
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.session.effects import SeenChanges, SessionEffects
from iact.core.stored.store import SessionStore
from iact.core.views import consent
from iact.core.views.review import PendingRow, counts
from iact.sandbox.live import open_live
from iact.settings import Settings
from iact.terminal import print_exactly
from iact.web.records import Fields

Row: TypeAlias = Mapping[str, object]
"""A waiting change, as the server or this process reports it: see `core.views.review.PendingRow`."""

_Result = TypeVar("_Result")

_PAGE: Final = 1000
_SIGN: Final = {"add": "+", "modify": "~", "delete": "-"}
_SENT: Final = 300
"""The maximum number of paths in one message; the server accepts no long messages."""


def is_live(settings: Settings, session: str) -> bool:
    """Whether a session works in a directory of the user's.

    Raises:
        UsageError: there is no such session.
    """
    return SessionStore(settings.data).read(session).view.workspace != "scratch"


def pending(settings: Settings, session: str, *, everything: bool = False, as_json: bool) -> int:
    """List the waiting changes, each with its reason. `everything`: noise is not folded.

    Raises:
        UsageError: there is no such session.
    """
    found = _rows(settings, session)
    if as_json:
        listed = {"session": session, "digest": digest(found), "pending": [dict(row) for row in found]}
        print(json.dumps(listed, ensure_ascii=False))
        return 0
    told, folded = (found, "") if everything else fold(found)
    lines = [*listing(told), *([f"{folded}; --all lists them."] if folded else [])]
    print("\n".join(lines) or "No changes are waiting.")
    if found:
        print(how(session), file=sys.stderr)
        print(f"digest {digest(found)}", file=sys.stderr)
    return 0


def diff(settings: Settings, session: str, paths: Sequence[str]) -> int:
    """Print the waiting changes as a unified diff, for `paths` or for everything, and their digest on stderr.

    Raises:
        UsageError: there is no such session, or no change waits at a path.
        JournalLocked: a process other than the server has the session open.
    """
    shown = _show(settings, session, paths)
    if shown:
        print(f"digest {digest(shown)}", file=sys.stderr)
    return 0


def _show(settings: Settings, session: str, paths: Sequence[str]) -> list[Row]:
    """Print the diffs of waiting changes, and return the changes that they show.

    Raises:
        Changed: one of them changed while they were printed.
    """
    try:
        chosen = _chosen(_served(settings, session), paths)
        for row in chosen:
            answer = remote.ask_session(settings, session, {"type": "patch", "path": str(row["path"])})
            print_exactly(str(answer["text"]))
            consent.check(str(row["digest"]), str(answer["digest"]))
        return chosen
    except NoServer:

        async def work(effects: SessionEffects) -> list[Row]:
            chosen = _chosen(await effects.rows(), paths)
            for row in chosen:
                print_exactly(await effects.patch(str(row["path"])))
            return chosen

        return _at_rest(settings, session, work)


def digest(found: Iterable[Row]) -> str:
    """The digest of some waiting changes, which a yes to them names."""
    return consent.together(str(row["digest"]) for row in found)


def apply(
    settings: Settings, session: str, paths: Sequence[str], *, seen: str, force: bool, as_json: bool
) -> int:
    """Apply changes. Returns 1 if some could not be applied.

    `seen`: the digest of the changes as the person saw them; without it they are shown, and the person is asked.

    Raises:
        UsageError: there is no such session, no change waits at a path, or there is nobody to ask.
        Changed: they are not what the person saw.
        JournalLocked: a process other than the server has the session open.
    """
    if seen:
        chosen = _chosen(_rows(settings, session), paths)
        consent.check(seen, digest(chosen))
    else:
        chosen = _show(settings, session, paths)
        count = "this change" if len(chosen) == 1 else f"these {len(chosen)} changes"
        if chosen and not agreed(f"Apply {count}?", digest(chosen)):
            print("Nothing was applied.", file=sys.stderr)
            return 1

    whole = "" if paths else digest(chosen)
    each = {str(row["path"]): str(row["digest"]) for row in chosen} if paths else {}

    async def work(effects: SessionEffects) -> Fields:
        said = SeenChanges(whole=whole, each=each)
        return (await effects.apply(list(each) or None, force=force, seen=said)).to_json()

    message: Fields = {"type": "apply", "force": force, **({"digest": whole} if whole else {})}
    return _tell("applied", session, _do(settings, session, message, each, work), as_json=as_json)


def drop(settings: Settings, session: str, paths: Sequence[str], *, as_json: bool) -> int:
    """Drop changes. Raises as `apply`."""

    async def work(effects: SessionEffects) -> Fields:
        return (await effects.drop(list(paths) or None)).to_json()

    each: dict[str, str] = dict.fromkeys(paths, "")
    return _tell("dropped", session, _do(settings, session, {"type": "drop"}, each, work), as_json=as_json)


def listing(found: Iterable[Row], lines: Mapping[str, tuple[int, int] | None] | None = None) -> list[str]:
    """The waiting changes, one line per path. `lines`: how many lines each adds and removes, where known."""
    shown: list[str] = []
    for row in found:
        path = str(row["path"])
        about = (
            f"  (renamed from {row['from']})"
            if "from" in row
            else f"  (renamed to {row['to']})"
            if "to" in row
            else ""
        )
        count = (lines or {}).get(path)
        numbers = f"  +{count[0]} -{count[1]}" if count else ""
        conflict = (
            "  CONFLICT: the file changed in the directory in the meantime" if row.get("conflict") else ""
        )
        why = f"  {row['why']}" if row.get("impact") == 2 else ""
        shown.append(f"{_SIGN[str(row['kind'])]} {path}{numbers}{about}{conflict}{why}")
    return shown


_NOISE: Final = {
    "ignored": ("1 file that .gitignore names", "{count} files that .gitignore names"),
    "git": ("1 raw object of git", "{count} raw objects of git"),
    "cache": ("1 file in a cache", "{count} files in caches"),
}


def fold(found: Sequence[Row]) -> tuple[Sequence[Row], str]:
    """The changes that are to be read, and a line for what is only noise, or ""."""
    numbers: dict[str, int] = {}
    for row in found:
        if kind := str(row.get("noise", "")):
            numbers[kind] = numbers.get(kind, 0) + 1

    words = [_NOISE[kind][count > 1].format(count=count) for kind, count in numbers.items() if kind in _NOISE]
    return [row for row in found if not row.get("noise")], ", ".join(words)


def how(session: str) -> str:
    """The hint that says how to handle waiting changes."""
    return (
        f"None of this is in the directory yet. To see it: iact workspace diff --session {session}. To apply it: "
        f"iact workspace apply --session {session} [PATH…]; to discard it, use drop instead of apply."
    )


async def count_all(effects: SessionEffects, paths: Iterable[str]) -> dict[str, tuple[int, int] | None]:
    """Count the lines that each change adds and removes."""
    return {path: counts(await effects.patch(path)) for path in paths}


def _rows(settings: Settings, session: str) -> Sequence[Row]:
    """The waiting changes according to the server or, if none runs, to the journal."""
    try:
        return _served(settings, session)
    except NoServer:
        found = SessionStore(settings.data).waiting(session)
        if found is not None:
            return found

        async def work(effects: SessionEffects) -> list[PendingRow]:
            return await effects.rows()

        return _at_rest(settings, session, work)  # this first finishes what was interrupted


def _served(settings: Settings, session: str) -> list[Row]:
    """The waiting changes according to the server, which opens the session if necessary.

    Raises:
        NoServer: no server runs.
    """
    SessionStore(settings.data).path_of(session)
    found: list[Row] = []
    while True:
        message: Fields = {"type": "pending", "start": len(found), "count": _PAGE}
        page = remote.ask_session(settings, session, message)
        some = page.get("list")
        found += [row for row in some if isinstance(row, dict)] if isinstance(some, list) else []
        if not some or len(found) >= int(str(page.get("total"))):
            return found


def _chosen(waiting: Sequence[Row], paths: Sequence[str]) -> list[Row]:
    """The changes at these paths and below them, in the order in which they wait; all of them if no path is named."""
    if not paths:
        return list(waiting)

    names = [str(row["path"]) for row in waiting]
    meant: set[str] = set()
    for path in (one.rstrip("/") for one in paths):
        below = [name for name in names if name == path or name.startswith(f"{path}/")]
        if not below:
            raise UsageError(f"No change is waiting at {path!r}; see iact workspace pending.")
        meant.update(below)

    return [row for row in waiting if str(row["path"]) in meant]


def _do(
    settings: Settings,
    session: str,
    message: Fields,
    each: Mapping[str, str],
    work: Callable[[SessionEffects], Awaitable[Fields]],
) -> Fields:
    """Let the server do the work, some paths at a time. Without a server, do it here.

    `each`: the paths, each with the digest of its change; none: everything that waits.
    """
    SessionStore(settings.data).path_of(session)
    paths = list(each)
    pieces: list[Fields] = []
    for at in range(0, len(paths), _SENT):
        piece = paths[at : at + _SENT]
        digests: dict[str, JSON] = {path: each[path][:32] for path in piece if each[path]}
        pieces.append({"paths": list[JSON](piece), **({"digests": digests} if digests else {})})

    try:
        answers = [
            remote.ask_session(settings, session, {**message, **piece})
            for piece in pieces or [{"paths": None}]
        ]
    except NoServer:
        return _at_rest(settings, session, work)
    return {
        "n": answers[-1]["n"],
        "done": sum(int(str(one["done"])) for one in answers),
        "left": [each for one in answers for each in _list(one, "left")],
        "notes": [each for one in answers for each in _list(one, "notes")],
    }


def _list(answer: Mapping[str, JSON], name: str) -> list[JSON]:
    found = answer.get(name)
    return found if isinstance(found, list) else []


def _tell(done: str, session: str, answer: Fields, *, as_json: bool) -> int:
    left = [one for one in _list(answer, "left") if isinstance(one, dict)]
    if as_json:
        print(json.dumps({"session": session, **answer}, ensure_ascii=False))
        return 1 if left else 0
    print(f"{answer['done']} {done}")
    for one in _list(answer, "notes"):
        if isinstance(one, dict):
            print(f"{one['path']}: {one['why']}")
    for one in left:
        print(f"{one['path']}: {one['why']}", file=sys.stderr)
    if any(one.get("outcome") == "conflict" for one in left):
        print(
            "note: --force overwrites files that changed in the directory in the meantime.", file=sys.stderr
        )
    return 1 if left else 0


def _at_rest(
    settings: Settings, session: str, work: Callable[[SessionEffects], Awaitable[_Result]]
) -> _Result:
    async def run() -> _Result:
        from iact.core.session.stored_effects import effects_at_rest
        from iact.wiring import open_store

        async with effects_at_rest(open_store(settings), session, open_live) as effects:
            return await work(effects)

    return signals.run(run())
