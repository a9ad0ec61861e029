"""A session of a shared store is deleted for good: nobody writes it any more, nobody opens it, and nothing of it is left.

To delete is to be the journal's last writer, so it is fenced as every writer is (`core.journal.fence`): the next
segment's number is taken by a *tombstone*, which says that the session is deleted. An owner who wants to write meets it
and stops, and whoever reads the journal to open it finds it at the end. Only then are segments emptied.

They are emptied, and not removed, because a number must never be free again. Some host may have been frozen for a week
with any of these numbers in mind: its request would succeed, and it would take a journal for its own that is not there
any more. So each number goes on being taken, by nothing: what is left of a session is that row of empty names, the first
and the last of which say why. All that stood beside the journal is removed.

Whoever asks again goes on where the last one was cut off, on whichever host, and two may do it at once: all that can
happen is that something is emptied twice. That it was begun is noted before, so that it can be found.

`Purge` decides, and is pure; `purge` carries it out. `tests/core/journal/test_purge.py` walks through every interleaving
of hosts that open and write a journal with others that delete it.
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
"""`segment` to `absent`: to `get`. `created`, `exists`: to `create`. `emptied`: to `empty`. `unknown`: no answer came."""


@dataclass(frozen=True, slots=True)
class Purge:
    """How far one purge of a journal is. `segment`: the next number; `full`: those that still hold something; `buried`: a
    tombstone is there."""

    segment: int = 1
    step: Step = "reading"
    full: tuple[int, ...] = ()
    buried: bool = False

    def request(self) -> Request | None:
        """What is to be asked of the store now; None: nothing, all is done."""
        match self.step:
            case "reading":
                return Request("get", self.segment)
            case "burying":
                return Request("create", self.segment)
            case "emptying":
                # The first one goes first: from then on the journal's beginning says that it is deleted.
                return Request("empty", self.full[0]) if self.full else None
            case _ as never:
                assert_never(never)

    def answered(self, found: Found) -> Purge:
        """The store's answer to `request`."""
        match self.step, found:
            case _, "unknown":
                return self  # and asks again
            case "reading", "segment":
                return replace(self, segment=self.segment + 1, full=(*self.full, self.segment))
            case "reading", ("empty" | "tombstone"):
                buried = self.buried or found == "tombstone"
                return replace(self, segment=self.segment + 1, buried=buried)
            case "reading", "absent":
                # Nobody writes behind a tombstone, so what was read is all there is.
                return replace(self, step="emptying" if self.buried else "burying")
            case "burying", "created":
                return replace(self, step="emptying", buried=True)
            case "burying", "exists":  # somebody wrote on, or buried it; or it was our own attempt
                return replace(self, step="reading")
            case "emptying", "emptied":
                return replace(self, full=self.full[1:])
        raise ValueError(f"{found!r} is no answer to a purge that is {self.step}")


def purge(store: ObjectStore, session: str) -> None:
    """Delete a session of the store for good, or go on with that. It blocks. Call `purged` when all else is done, too.

    Raises:
        StoreUnavailable: the store does not answer. It may have been begun, and goes on when this is called again.
    """
    store.create(f"{_NOTES}{session}", b"")
    state = Purge()
    with ThreadPoolExecutor(READERS) as pool:
        while state.step != "emptying":
            state = _read(store, session, state, pool)
            if state.step == "burying":
                made = store.create(segment_name(session, state.segment), TOMBSTONE)
                state = state.answered("created" if made else "exists")
        if (first := state.request()) is not None:
            _empty(store, session, first.segment)
            deque(pool.map(partial(_empty, store, session), state.full[1:]), maxlen=0)
    clear_beside(store, session)


def purged(store: ObjectStore, session: str) -> None:
    """Nothing of a session is left anywhere.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    store.remove(f"{_NOTES}{session}")


def unfinished(store: ObjectStore) -> list[str]:
    """The sessions whose purge was cut off, once it could not be taken back any more.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    begun = [name.removeprefix(_NOTES) for name in store.names(_NOTES)]
    return [session for session in begun if is_deleted(store, session)]


def _read(store: ObjectStore, session: str, state: Purge, pool: ThreadPoolExecutor) -> Purge:
    """The journal from where it was read to, to its end."""
    before = segment_name(session, state.segment - 1) if state.segment > 1 else ""
    for data in pool.map(store.get, store.names(journal_of(session), after=before)):
        found: Found = "tombstone" if data == TOMBSTONE else "segment" if data else "empty"
        state = state.answered(found)
    return state.answered("absent")


def _empty(store: ObjectStore, session: str, number: int) -> None:
    store.overwrite(segment_name(session, number), TOMBSTONE if number == 1 else b"")
