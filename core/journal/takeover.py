"""A session in a store that several hosts reach: taken over by this host, or copied here to be read.

To take over means to read the whole journal, and then to write its next segment, which states the takeover. Until that
succeeds, nothing has happened: a slower host reads what the other wrote, and tries again after it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iact.core.errors import ForeignSession, JournalError, JournalUnwritable, SessionDeleted
from iact.core.journal.file import (
    FILE,
    Contents,
    Journal,
    last_number,
    lock,
    read_journal,
    sync_directory,
    write_at,
    write_blob,
)
from iact.core.journal.record import encode
from iact.core.journal.seal import Sealer
from iact.core.journal.segments import Segment, SegmentWriter, folder_of
from iact.core.ports import ObjectStore
from iact.core.records.record import Record
from iact.core.records.session import Epoch

_BLOBS: Final = "blobs/"


class _Copy:
    """The local file of a journal that is in the store: only differences are written.

    Anything that the file has and the store does not is first kept in another file: the session may have continued here
    without the store.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept = False
        self._new = not directory.exists()
        try:
            for folder in (directory, directory / "blobs", directory / "workspace"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self.descriptor = os.open(directory / FILE, flags, 0o600)
        except OSError as error:
            raise JournalUnwritable(
                f"The session can't be copied to {directory}: {error.strerror}."
            ) from error

        lock(self.descriptor, directory)
        self.size = 0
        """The bytes of the segments taken so far."""
        self._had = last_number(directory / FILE)
        """The last record that was here before."""

    def take(self, segment: Segment) -> None:
        """Add the next segment."""
        local = os.pread(self.descriptor, len(segment.data), self.size)
        if local != segment.data:
            is_only_shorter = segment.data.startswith(local)
            if not is_only_shorter:
                self._keep()
            write_at(self.descriptor, segment.data, self.size)
        self.size += len(segment.data)

    def end(self) -> None:
        """Note that there are no more segments."""
        if os.fstat(self.descriptor).st_size > self.size:
            self._keep()
            os.ftruncate(self.descriptor, self.size)

    def take_back(self) -> None:
        """Remove what was copied of a deleted session, if nothing of it was here before."""
        if self._new:
            shutil.rmtree(self._directory, ignore_errors=True)

    def moved(self, records: Sequence[Record]) -> bool:
        """Whether another host has continued the session since it was here, or it was never here."""
        if self._kept or not self._had:
            return True
        return any(isinstance(record.content, Epoch) for record in records[self._had :])

    def _keep(self) -> None:
        """Save the file's content in another file, once, before any of it is overwritten."""
        if self._kept:
            return

        number = 1
        while (target := self._directory / f"journal.kept-{number}.md").exists():
            number += 1
        shutil.copyfile(self._directory / FILE, target)
        sync_directory(self._directory)
        self._kept = True


def take_over(
    directory: Path, store: ObjectStore, segments: SegmentWriter, *, host: str, at: str, sealer: Sealer | None
) -> tuple[Journal, Contents]:
    """Continue a session of the store in `directory`, where a copy is created or updated. Blocks.

    `at`: the time. The last record of the contents states that this host continues.

    Raises:
        ForeignSession: it is not the sealer's.
        JournalLocked: another process of this machine has it open.
        SessionDeleted: it was deleted for good.
        JournalError: it is not in the store, is damaged, or one of both can't be reached.
    """
    copy = _Copy(directory)
    try:
        while True:
            for segment in segments.read():
                copy.take(segment)
            if not copy.size:
                raise JournalError(f"There is no session {segments.session} in the store.")
            copy.end()

            contents = read_journal(directory, sealer)
            if contents.foreign:
                raise ForeignSession(directory.name, contents.foreign)

            last = contents.records[-1]
            epoch = Epoch(epoch=segments.epoch, host=host)
            step = 1 + max(record.step for record in contents.records if record.agent == "/")
            data, digest = encode(Record(last.n + 1, at, "/", step, epoch, "", last.digest), sealer)

            # If another writer was faster, its segment is read, and the record is made again behind it.
            theirs = segments.claim(data)
            if theirs is None:
                break
            copy.take(theirs)

        _copy_blobs(directory, store, segments)
        write_at(copy.descriptor, data, copy.size)
    except OSError as error:
        os.close(copy.descriptor)
        raise JournalUnwritable(f"The session can't be copied to {directory}: {error.strerror}.") from error
    except BaseException as error:
        if isinstance(error, SessionDeleted):
            copy.take_back()
        os.close(copy.descriptor)
        raise

    begun = Record(last.n + 1, at, "/", step, epoch, "", last.digest, digest)
    records = [*contents.records, begun]
    size = copy.size + len(data)
    journal = Journal(directory, copy.descriptor, begun, size, sealer, segments)
    journal.moved = copy.moved(contents.records)
    return journal, Contents(records, size, 0)


def _copy_blobs(directory: Path, store: ObjectStore, segments: SegmentWriter) -> None:
    """Copy the blobs that are not here yet."""
    prefix = folder_of(segments.session) + _BLOBS
    for name in store.names(prefix):
        digest = name.removeprefix(prefix)
        segments.blobs.add(digest)
        if (directory / "blobs" / digest).exists():
            continue

        content = store.get(name)
        if content is not None:
            write_blob(directory, digest, content)
