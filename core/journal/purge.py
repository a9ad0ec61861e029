"""Deletes a session of a shared store for good: it is no longer written or opened, and nothing of it is left.

To delete is to be the journal's last writer, so it is fenced like every writer (`core.journal.fence`): the next
segment's number is taken by a *tombstone*, which states that the session is deleted. An owner who wants to write finds
it and stops, and a host that reads the journal to open it finds it at the end. Only then are segments emptied.

They are emptied, and not removed, because a number must never be free again. A host may have been frozen for a week
while about to use one of these numbers: its request would succeed, and it would take a journal for its own that no
longer exists. So each number stays taken, by nothing: what is left of a session is that series of empty names, and the
first and last of them state why. Everything that was stored next to the journal is removed.

A repeated request continues where the last one was interrupted, on any host, and two may run at once: at worst,
something is emptied twice. The beginning of a purge is noted before it starts, so that it can be found.

`Purge` decides, and is pure; `purge` carries it out. `tests/core/journal/test_purge.py` walks through every
interleaving of hosts that open and write a journal with others that delete it.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias, assert_never

from iact.core.journal.fence import Request
from iact.core.journal.segments import (
    READERS,
    TOMBSTONE,
    clear_beside,
    is_deleted,
    journal_of,
    segment_name,
)
from iact.core.ports import ObjectStore

_NOTES: Final = "purging/"

Step: TypeAlias = Literal["reading", "burying", "emptying"]
Found: TypeAlias = Literal[
    "segment", "empty", "tombstone", "absent", "created", "exists", "emptied", "unknown"
]
"""`segment` to `absent`: to `get`. `created`, `exists`: to `create`. `emptied`: to `empty`. `unknown`: no answer
came."""


@dataclass(frozen=True, slots=True)
class Purge:
    """How far one purge of a journal is."""

    segment: int = 1
    """The number of the next segment."""
    step: Step = "reading"
    full: tuple[int, ...] = ()
    """The numbers of the segments that are not emptied yet."""
    buried: bool = False
    """Whether a tombstone exists."""

    def request(self) -> Request | None:
        """The next request to the store; None when everything is done."""
        match self.step:
            case "reading":
                return Request("get", self.segment)
            case "burying":
                return Request("create", self.segment)
            case "emptying" if self.full:
                # The first one is emptied first: from then on the journal's beginning shows that it is deleted.
                return Request("empty", self.full[0])
            case "emptying":
                return None
            case _ as never:
                assert_never(never)

    def answered(self, found: Found) -> Purge:
        """Take the store's answer to `request`."""
        match self.step, found:
            case _, "unknown":
                # The request is repeated.
                return self
            case "reading", "segment":
                return replace(self, segment=self.segment + 1, full=(*self.full, self.segment))
            case "reading", ("empty" | "tombstone"):
                buried = self.buried or found == "tombstone"
                return replace(self, segment=self.segment + 1, buried=buried)
            case "reading", "absent" if self.buried:
                # Nothing is written after a tombstone, so what was read is complete.
                return replace(self, step="emptying")
            case "reading", "absent":
                return replace(self, step="burying")
            case "burying", "created":
                return replace(self, step="emptying", buried=True)
            case "burying", "exists":
                # Another host wrote on, or buried it; or it was our own attempt.
                return replace(self, step="reading")
            case "emptying", "emptied":
                return replace(self, full=self.full[1:])
        raise ValueError(f"{found!r} is no answer to a purge that is {self.step}")


def purge(store: ObjectStore, session: str) -> None:
    """Delete a session of the store for good, or continue that. Blocks. Call `purged` once everything else is done.

    Raises:
        StoreUnavailable: the store does not answer. The purge may have begun, and continues when this is called again.
    """
    store.create(f"{_NOTES}{session}", b"")
    state = Purge()
    with ThreadPoolExecutor(READERS) as pool:
        while state.step != "emptying":
            state = _read(store, session, state, pool)
            if state.step == "burying":
                is_ours = store.create(segment_name(session, state.segment), TOMBSTONE)
                state = state.answered("created" if is_ours else "exists")

        # The first segment alone, before all others, which may go in any order.
        if (first := state.request()) is not None:
            _empty(store, session, first.segment)
            deque(pool.map(partial(_empty, store, session), state.full[1:]), maxlen=0)
    clear_beside(store, session)


def purged(store: ObjectStore, session: str) -> None:
    """Note that nothing of a session is left anywhere.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    store.remove(f"{_NOTES}{session}")


def unfinished(store: ObjectStore) -> list[str]:
    """Return the sessions whose purge was interrupted after the point of no return.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    begun = [name.removeprefix(_NOTES) for name in store.names(_NOTES)]
    return [session for session in begun if is_deleted(store, session)]


def _read(store: ObjectStore, session: str, state: Purge, pool: ThreadPoolExecutor) -> Purge:
    """Read the rest of the journal, from where the purge has read to."""
    after = segment_name(session, state.segment - 1) if state.segment > 1 else ""
    for data in pool.map(store.get, store.names(journal_of(session), after=after)):
        if data == TOMBSTONE:
            state = state.answered("tombstone")
        elif data:
            state = state.answered("segment")
        else:
            state = state.answered("empty")
    return state.answered("absent")


def _empty(store: ObjectStore, session: str, number: int) -> None:
    store.overwrite(segment_name(session, number), TOMBSTONE if number == 1 else b"")
