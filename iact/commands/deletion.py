"""Commands that delete and restore sessions: `session delete | restore | tidy`.

Deleting a session also ends what runs for it and removes its memories. If a server runs on the data directory, the
server does that; otherwise the commands do it themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from iact import signals
from iact.accounts.people import AuditKind
from iact.commands.audit import tell
from iact.commands.remote import ask_server
from iact.core.clock import SystemClock
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.stored.deletion import Deletion, DeletionOutcome
from iact.core.stored.store import SessionStore
from iact.settings import Settings


def delete(settings: Settings, sessions: Sequence[str], *, now: bool, as_json: bool) -> int:
    """Move sessions to the trash. With `now`, delete them permanently, including sessions that are in the trash.

    Raises:
        UsageError: none of them could be deleted.
        MemoryUnavailable: memory can't forget the sessions to be deleted permanently; nothing was deleted.
    """
    if not now:
        done = _do(settings, "session.delete", "session.deleted", sessions, Deletion.delete)
        return _report(done, "deleted; to restore it: iact session restore ID", as_json)
    store = SessionStore(settings.data)
    there = [one for one in sessions if store.trash.find(one) is None]
    moved = (
        _do(settings, "session.delete", "session.deleted", there, Deletion.delete)
        if there
        else DeletionOutcome((), {})
    )
    gone = [one for one in sessions if one not in moved.refused]
    done = (
        _do(settings, "session.purge", "session.purged", gone, Deletion.purge)
        if gone
        else DeletionOutcome((), {})
    )
    return _report(
        DeletionOutcome(done.sessions, {**moved.refused, **done.refused}, done.note),
        "deleted for good",
        as_json,
    )


def restore(settings: Settings, sessions: Sequence[str], *, as_json: bool) -> int:
    """Restore sessions from the trash.

    Raises:
        UsageError: none of them could be restored.
    """
    return _report(
        _do(settings, "session.restore", "session.restored", sessions, Deletion.restore), "restored", as_json
    )


def tidy(settings: Settings) -> int:
    """Delete sessions past their retention time, and remove old ones from the trash."""
    done = signals.run(_deletion(settings).tidy())
    for session in done.sessions:
        print(session)
    _notes(done)
    return 0


def _do(
    settings: Settings,
    kind: str,
    told: AuditKind,
    sessions: Sequence[str],
    here: Callable[[Deletion, Sequence[str]], Awaitable[DeletionOutcome]],
) -> DeletionOutcome:
    answer = ask_server(settings, {"type": kind, "sessions": list(sessions)}, patience=None)
    if answer is not None:
        return _read(answer)

    async def do() -> DeletionOutcome:
        return await here(_deletion(settings), sessions)

    done = signals.run(do())
    for session in done.sessions:
        tell(settings, told, session=session)
    return done


def _deletion(settings: Settings) -> Deletion:
    from iact.memory import memory_at_rest
    from iact.wiring import open_store, retention_of

    store = open_store(settings, indexed=True)
    return Deletion(store, SystemClock(), partial(memory_at_rest, settings), retention_of(settings))


def _read(answer: Mapping[str, JSON]) -> DeletionOutcome:
    sessions, refused = answer.get("sessions"), answer.get("refused")
    return DeletionOutcome(
        tuple(str(one) for one in sessions) if isinstance(sessions, list) else (),
        {name: str(why) for name, why in refused.items()} if isinstance(refused, dict) else {},
        str(answer.get("note") or ""),
    )


def _report(done: DeletionOutcome, what: str, as_json: bool) -> int:
    if as_json:
        print(
            json.dumps(
                {"sessions": done.sessions, "refused": done.refused, "note": done.note}, ensure_ascii=False
            )
        )
    else:
        for session in done.sessions:
            print(f"{session} {what}")
        _notes(done)
    if done.refused and not done.sessions and not as_json:
        raise UsageError(next(iter(done.refused.values())))
    return 1 if done.refused else 0


def _notes(done: DeletionOutcome) -> None:
    if done.sessions:
        for session, why in done.refused.items():
            print(f"note: {session} was not changed: {why}", file=sys.stderr)
    if done.note:
        print(f"note: {done.note}", file=sys.stderr)
