"""A journal as a file, no matter which session owns it: where it is, whether it is intact, and what is appended to it.

Nothing is locked and nothing is rebuilt, so this works on a journal that another process is writing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.errors import BlobLost, JournalCorrupt, JournalError
from iact.core.journal.file import FILE, last_number, open_journal, read_blob, read_journal
from iact.core.journal.reader import Reader
from iact.core.records.record import Record, blobs_of
from iact.core.records.session import Close

JOURNAL: Final = FILE
"""The name of a journal in its session's directory."""

_LOOK: Final = 0.1
"""Seconds between two checks of a journal that is followed."""


def journal_file(path: Path) -> Path | None:
    """The journal at `path`, which is its file or its session's directory; None if there is none."""
    if path.is_file():
        return path
    return path / JOURNAL if (path / JOURNAL).is_file() else None


def names_journal(path: Path) -> bool:
    """Whether a path names a journal's file."""
    return path.name == JOURNAL


def read_records(path: Path) -> list[Record]:
    """All records of a journal.

    Raises:
        JournalError: it can't be read, or is damaged.
    """
    return read_journal(path).records


def last_record(path: Path) -> int:
    """The number of the last record of the session in a directory, read only from the end of its journal; 0 if that
    can't be read."""
    try:
        return last_number(path / JOURNAL)
    except (OSError, ValueError):
        return 0


def read_bytes(path: Path) -> bytes:
    """The content of a journal's file, up to its last complete record.

    Raises:
        JournalError: it can't be read, or is damaged.
    """
    file = journal_file(path) or path
    whole = read_journal(file).offset
    with open_journal(file) as stream:
        return stream.read(whole)


@dataclass(frozen=True, slots=True)
class LostBlob:
    """A blob that is missing or damaged."""

    digest: str
    """Its SHA-256."""
    record: int
    """The first record that names it."""
    why: str
    """In a sentence."""


@dataclass(frozen=True, slots=True)
class Integrity:
    """Whether a journal and its blobs are intact. `error`: what is wrong, or None.

    `records`: how many are intact; `blobs`: how many they name; `torn`: bytes of an unfinished append after them.
    `record`, `offset`: the first damaged record, and the byte where it begins, if a record is what is wrong. `lost`: the
    blobs that are missing or damaged.
    """

    journal: Path
    records: int
    blobs: int
    torn: int
    error: JournalError | None = None
    lost: tuple[LostBlob, ...] = ()

    @property
    def record(self) -> int | None:
        """The number of the first damaged record."""
        return self.error.n if isinstance(self.error, JournalCorrupt) else None

    @property
    def offset(self) -> int | None:
        """The byte where the first damaged record begins."""
        return self.error.offset if isinstance(self.error, JournalCorrupt) else None


def check_integrity(path: Path) -> Integrity:
    """Check a journal's form, its chain, and the blobs that it names."""
    reader = Reader(path)
    first = dict[str, int]()
    lost = list[LostBlob]()
    error: JournalError | None = None
    try:
        for record in reader.read():
            for digest in blobs_of(record):
                first.setdefault(digest, record.n)
        if not reader.last:
            error = JournalError(f"The journal {reader.file} holds no record.")

        for digest, n in sorted(first.items(), key=lambda named: named[1]):
            try:
                read_blob(reader.file.parent, digest)
            except BlobLost as gone:
                lost.append(LostBlob(digest, n, str(gone)))
    except JournalError as damage:
        error = damage
    if error is None and lost:
        error = _told_of(lost)
    return Integrity(reader.file, reader.last, len(first), reader.pending, error, tuple(lost))


def _told_of(lost: Sequence[LostBlob]) -> JournalError:
    """What is wrong with a session whose records are all there, and some of whose blobs are not."""
    which = "; ".join(f"record {blob.record}: {blob.why}" for blob in lost)
    return JournalError(
        f"The records are unbroken. Of what they name, {len(lost)} can't be read. {which} The session can be opened, and "
        "goes on without that; agents are told."
    )


class Tail:
    """The records that a journal holds, and with `follow` each new record.

    `last`: begin with at most this many of the existing records. Following ends when the session is closed.
    """

    def __init__(self, path: Path, *, follow: bool = False, last: int | None = None) -> None:
        self._reader = Reader(path)
        self._follow = follow
        self._last = last

    @property
    def torn(self) -> int:
        """Bytes of an unfinished append after the last existing record."""
        return self._reader.pending

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records; blocks while following.

        Raises:
            JournalError: it can't be read, or is damaged.
        """
        there: deque[Record] = deque(maxlen=self._last)
        ended = False
        for record in self._reader.read():
            there.append(record)
            ended = isinstance(record.content, Close) and not record.content.late
        yield from there
        while self._follow and not ended:
            time.sleep(_LOOK)
            for record in self._reader.read():
                yield record
                ended = isinstance(record.content, Close) and not record.content.late
