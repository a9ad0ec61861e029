"""A journal in a store that several machines reach: its segments, and the fence of `core.journal.fence` carried out.

One segment contains one group of records, as in the file, after a line that names its writer. Joined, the groups are
the journal's file, byte for byte. A host keeps that file as well, so that everything that reads a journal can read it
as usual; but the store is authoritative, and the file is written after it.

For a session that was deleted for good (`core.journal.purge`), the first and the last segment are tombstones, and those
between are empty.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from iact.core.errors import JournalCorrupt, JournalUnwritable, SessionDeleted, StoreUnavailable, Superseded
from iact.core.journal.fence import Answer, Fence, Request, SegmentFound, Stamp
from iact.core.ports import ObjectStore

_HEAD: Final = re.compile(rb"iact 1 (\d{1,18}) ([0-9a-f]{32})\n")
TOMBSTONE: Final = b"iact 1 deleted\n"
"""Replaces a segment: the session was deleted for good."""
READERS: Final = 16
"""How many segments are requested at the same time."""
_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two attempts; the last value repeats."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One group of records of a journal."""

    number: int
    stamp: Stamp
    data: bytes
    """The group's bytes, as they are in the journal's file."""


def folder_of(session: str) -> str:
    """Return the prefix of the names of a session's objects."""
    return f"sessions/{session}/"


def journal_of(session: str) -> str:
    """Return the prefix of the names of a session's segments."""
    return f"{folder_of(session)}journal/"


def segment_name(session: str, number: int) -> str:
    """Return a segment's name in the store."""
    return f"{journal_of(session)}{number:010}"


def is_deleted(store: ObjectStore, session: str) -> bool:
    """Whether a session was deleted for good, even if that has only begun.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    if store.get(segment_name(session, 1)) == TOMBSTONE:
        return True
    names = list(store.names(journal_of(session)))
    return bool(names) and store.get(names[-1]) == TOMBSTONE


def clear_beside(store: ObjectStore, session: str) -> None:
    """Remove everything next to the journal of a session that was deleted for good.

    Raises:
        StoreUnavailable: the store does not answer; a part may be left.
    """
    journal = journal_of(session)
    # All names first: the list of a store may not be changed while it is read.
    for name in list(store.names(folder_of(session))):
        if not name.startswith(journal):
            store.remove(name)


def read_segments(store: ObjectStore, session: str, after: int = 0) -> Iterator[Segment]:
    """Iterate over the segments after number `after`, in order, to the end.

    Raises:
        SessionDeleted: it was deleted for good.
        JournalCorrupt: one is damaged or missing.
        StoreUnavailable: the store does not answer.
    """
    last = segment_name(session, after) if after else ""
    names = store.names(journal_of(session), after=last)
    with ThreadPoolExecutor(READERS) as pool:
        objects = pool.map(lambda name: (name, store.get(name)), names)
        for number, (name, data) in enumerate(objects, after + 1):
            # A gap is not the end: taking it for the end would mean claiming a used number.
            is_next = name == segment_name(session, number)
            yield _segment(store, session, number, data if is_next else None)


def _segment(store: ObjectStore, session: str, number: int, data: bytes | None) -> Segment:
    """Read a segment, whose object holds `data`; None: there is no such object. Raises as `read_segments` does."""
    # A purge empties segments, and an empty one between others looks the same as one that was damaged.
    emptied = data == b"" and store.get(segment_name(session, 1)) == TOMBSTONE
    if emptied or data == TOMBSTONE:
        raise SessionDeleted(session)

    head = _HEAD.match(data or b"")
    if data is None or head is None:
        why = "missing" if data is None else "damaged"
        raise JournalCorrupt(
            f"Segment {number} of the journal of session {session} is {why} in the store.", n=0, offset=None
        )
    return Segment(number, Stamp(int(head[1]), head[2].decode()), data[head.end() :])


class SegmentWriter:
    """The only writer of a session's journal in a store. Every method blocks.

    The journal is written by one thread at a time; other threads may write what is next to it. `writer`: created for
    this opening, 32 hexadecimal digits. `patience`: for how many seconds a store that does not answer is asked again.
    `epoch`: how many epochs the journal has had that are not in the store.
    """

    def __init__(
        self,
        store: ObjectStore,
        session: str,
        writer: str,
        *,
        epoch: int = 0,
        patience: float = 60.0,
        troubled: Callable[[str], None] = lambda why: None,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session: Final = session
        self.blobs: Final[set[str]] = set()
        """Digests of blobs that are known to be in the store."""
        self.troubled = troubled
        """Called with the reason when the store does not answer, and with "" when it does again."""
        self._store = store
        self._fence = Fence(writer, epoch=epoch)
        self._patience = patience
        self._pause = pause
        self._now = now

    @property
    def epoch(self) -> int:
        """The owner's epoch; before it is claimed, the epoch that a claim would begin."""
        return self._fence.stamp.epoch

    def read(self) -> Iterator[Segment]:
        """Yield the existing segments that were not read yet. Claim when there are no more.

        Raises as `read_segments` does.
        """
        fence = self._fence
        for segment in read_segments(self._store, self.session, fence.segment - 1):
            fence = fence.answered(SegmentFound(segment.stamp))
            self._fence = fence
            yield segment

    def claim(self, data: bytes) -> Segment | None:
        """Make `data` the next segment and become the owner. None on success; else the segment of another writer.

        Raises:
            SessionDeleted: it was deleted for good.
            JournalUnwritable: the store does not answer.
        """
        if self._fence.phase == "reading":
            self._fence = self._fence.answered("absent")
        segment = self._fence.segment
        self._settle(data)
        if self._fence.phase == "deleted":
            raise SessionDeleted(self.session)
        if self._fence.owner:
            return None
        return self._get(segment)

    def append(self, data: bytes) -> None:
        """Store a group of records. When this returns, it is in the journal. The first group claims the journal.

        Raises:
            Superseded: another writer has continued, begun or deleted the journal; this one can do nothing more.
            SessionDeleted: it was deleted for good before this writer began it.
            JournalUnwritable: the store does not answer. Whether the group is stored is unknown: the journal must be
                opened again.
        """
        if self._fence.owner:
            if self._fence.phase == "holding":
                self._fence = self._fence.write()
                self._settle(data)
            self._check_held()
        elif self._fence.segment > 1 or self.claim(data) is not None:
            raise Superseded(self.session, 1)

    def _check_held(self) -> None:
        match self._fence.phase:
            case "superseded":
                raise Superseded(self.session, self._fence.segment)
            case "deleted":
                # What was stored for these records before this was known is removed.
                with suppress(StoreUnavailable):
                    clear_beside(self._store, self.session)
                raise Superseded(self.session, self._fence.segment, deleted=True)

    def put_blob(self, digest: str, content: bytes) -> None:
        """Store a blob that a record will name, under its digest.

        Raises:
            JournalUnwritable: the store does not answer.
        """
        name = f"{folder_of(self.session)}blobs/{digest}"
        self._patiently(lambda: self._store.create(name, content))
        self.blobs.add(digest)

    def blob(self, digest: str) -> bytes | None:
        """Return the blob that any host stored under a digest, or None.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        return self._store.get(f"{folder_of(self.session)}blobs/{digest}")

    def put_version(self, version: str, pack: bytes) -> None:
        """Store a workspace version that a record will name, as its difference to the versions already stored.

        Raises:
            JournalUnwritable: the store does not answer.
        """
        self._patiently(lambda: self._store.create(self._version(version), pack))

    def versions(self) -> list[str]:
        """Return the versions of the workspace that any host has stored.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        return [name.rpartition("/")[2] for name in self._store.names(self._version(""))]

    def version(self, version: str) -> bytes | None:
        """Return what was passed to `put_version`, or None.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        return self._store.get(self._version(version))

    def _version(self, version: str) -> str:
        return f"{folder_of(self.session)}versions/{version}"

    def _settle(self, data: bytes) -> None:
        """Send the fence's requests to the store until there are no more, or another writer's segment was found."""
        segment = self._fence.segment
        stamp = self._fence.stamp
        content = b"iact 1 %d %s\n" % (stamp.epoch, stamp.writer.encode()) + data

        deadline = self._now() + self._patience
        attempt = 0
        while (request := self._fence.request()) is not None and request.segment == segment:
            answer: Answer
            try:
                answer = self._asked(request, content)
            except SessionDeleted:
                answer = "deleted"
            except StoreUnavailable as error:
                # Whether it was carried out is not known; the fence asks again until it is.
                answer = "unknown"
                attempt = self._wait(error, attempt, deadline)
            else:
                attempt = self._over(attempt)
            self._fence = self._fence.answered(answer)

    def _asked(self, request: Request, content: bytes) -> Answer:
        """Send one request of the fence to the store. `content`: what a new segment would hold."""
        name = segment_name(self.session, request.segment)
        if request.operation == "create":
            return "created" if self._store.create(name, content) else "exists"

        segment = _segment(self._store, self.session, request.segment, self._store.get(name))
        return SegmentFound(segment.stamp)

    def _get(self, number: int) -> Segment:
        data = self._patiently(lambda: self._store.get(segment_name(self.session, number)))
        return _segment(self._store, self.session, number, data if isinstance(data, bytes) else None)

    def _patiently(self, ask: Callable[[], bytes | bool | None]) -> bytes | bool | None:
        """What `ask` returns, which is called until the store answers."""
        deadline = self._now() + self._patience
        attempt = 0
        while True:
            try:
                answer = ask()
            except StoreUnavailable as error:
                attempt = self._wait(error, attempt, deadline)
            else:
                self._over(attempt)
                return answer

    def _wait(self, error: StoreUnavailable, attempt: int, deadline: float) -> int:
        """Pause before the next attempt. Returns its number; raises once the patience is at its end."""
        pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
        if self._now() + pause > deadline:
            self._over(attempt)
            raise JournalUnwritable(
                f"The store of session {self.session} has not answered for {self._patience:g} seconds ({error}), so the "
                "session has stopped. Everything that was acknowledged is stored; open it again when the store answers."
            ) from error

        if attempt == 0:
            self.troubled(str(error))
        self._pause(pause)
        return attempt + 1

    def _over(self, attempt: int) -> int:
        """Note that the store answers. `attempt`: how often it had not. Returns 0, the number of the next attempt."""
        if attempt:
            self.troubled("")
        return 0
