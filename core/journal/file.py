"""The journal on disk: one writer that groups appends into one fsync, and a reader.

`append` numbers, encodes and queues a record at once and never blocks; `durable` waits until it is on disk. While one
group is being written in a thread, the next one collects. Effects wait for `durable`, and readers of the session
receive records only then, so nothing that anyone saw is ever lost. Values that are too large or too binary for the log
are stored next to it as blobs, written before the record that names them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, Final

from iact.core.errors import (
    BlobLost,
    ForeignSession,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalTooNew,
    JournalUnwritable,
)
from iact.core.journal.parser import Parser
from iact.core.journal.record import encode
from iact.core.journal.seal import Sealer
from iact.core.journal.segments import SegmentWriter
from iact.core.records.content import Content
from iact.core.records.kinds import FORMAT, is_too_new, major_of
from iact.core.records.record import GENESIS, Record, blobs_of

_CHUNK: Final = 1 << 20
"""The bytes that are read at once."""
_PAUSE: Final = 0.005
"""Seconds between two groups of records if nothing waits for the second. Each group costs a thread switch and a
sync."""
FILE: Final = "journal.md"
"""The journal's file in its session's directory."""
VERSIONS: Final = "versions"
"""The folder, in a session's directory, in which versions of its workspace are kept."""
LARGEST_BLOB: Final = 512 << 20
"""The most bytes of a blob that is read. Nothing that we store comes near it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a journal."""

    records: list[Record]
    offset: int
    """The byte behind the last record."""
    torn: int
    """The bytes of an unfinished append behind it."""
    foreign: str = ""
    """Why it is not a session of the reader's installation, in words; empty if it is, or if no key was given."""


@dataclass(frozen=True, slots=True)
class _Queued:
    """A record that is not on disk yet."""

    record: Record
    data: bytes
    """Its exact bytes."""
    blobs: Mapping[str, bytes]
    """What is stored before it, by SHA-256."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of a session's directory, which may come from anywhere. Follows no link and waits for no pipe.

    Raises:
        OSError: it does not exist, is not a plain file, or can't be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "it is not a plain file")
    return os.fdopen(descriptor, "rb")


def open_journal(file: Path) -> IO[bytes]:
    """Open a journal's file to read it.

    Raises:
        JournalError: it does not exist, is not a plain file, or can't be read.
    """
    try:
        return open_regular(file)
    except FileNotFoundError as error:
        raise JournalError(f"There is no journal at {file}.") from error
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise JournalError(f"The journal {file} can't be read: {why}.") from error


def read_journal(path: Path, sealer: Sealer | None = None) -> Contents:
    """Read a whole journal; `path` is the file or its session's directory. `sealer`: of the expected installation.

    Raises:
        JournalCorrupt: a record is invalid (by number and byte).
        JournalTooNew: written by a newer major version.
        JournalError: there is no such file, or it can't be read.
    """
    file = path / FILE if path.is_dir() else path
    parser = Parser(sealer=sealer)
    records = list[Record]()
    try:
        with open_journal(file) as stream:
            while chunk := stream.read(_CHUNK):
                for record in parser.feed(chunk):
                    if record.n == 1:
                        check_format(record)
                    records.append(record)
        foreign = ""
        if sealer is not None:
            foreign = parser.seals.why_foreign(file)
    except OSError as error:
        raise JournalError(f"The journal {file} can't be read: {error.strerror}.") from error

    if parser.pending and not parser.torn:
        n = len(records) + 1
        raise JournalCorrupt(
            f"Record {n} at byte {parser.offset} is damaged: its length is wrong.", n=n, offset=parser.offset
        )
    return Contents(records, parser.offset, parser.pending, foreign)


def check_format(first: Record) -> None:
    """Check that `first` begins a journal that is not too new for this program.

    Raises:
        JournalCorrupt: it does not begin a journal.
        JournalTooNew: its major version is newer.
    """
    format = first.fields.get("format") if first.kind == "open" else None
    if major_of(format) is None:
        raise JournalCorrupt("Record 1 at byte 0 is damaged: it does not open a session.", n=1, offset=0)
    if is_too_new(format):
        raise JournalTooNew(
            f"The journal has format {format}; this program reads up to {FORMAT}. Update the program."
        )


def last_number(path: Path) -> int:
    """Return the number of the last whole record of a journal file, from its last trailer; 0 if there is none.

    Raises:
        OSError: it can't be read.
    """
    with open_regular(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 65_536))
        tail = stream.read()

    numbers = re.findall(rb"\n<!-- /(\d+) [0-9a-f]{8} -->\n\n", tail)
    return int(numbers[-1]) if numbers else 0


class Journal:
    """A session's journal, open for appending by exactly one process.

    `sealer`: seals appended records; without it, they belong to no installation. `segments`: the journal is in a store
    that other hosts reach, too; the store is authoritative, and the file is a copy.
    """

    def __init__(
        self,
        directory: Path,
        descriptor: int,
        last: Record | None,
        offset: int,
        sealer: Sealer | None = None,
        segments: SegmentWriter | None = None,
    ) -> None:
        self.directory: Final = directory
        self._segments = segments
        self._sealer = sealer
        self._descriptor = descriptor
        self._n = last.n if last else 0
        """The number of the last record that was appended."""
        self._prev = last.digest if last else GENESIS
        """The digest of that record."""
        self._offset = offset
        """The byte behind the last record on disk."""

        self._queue: list[_Queued] = []
        self._unwritten: dict[str, bytes] = {}
        """The blobs of records that are not on disk yet."""
        self._flushing = False
        """Whether a group is being written."""
        self._next_group = 0.0
        """Until when a group that nothing waits for is put off."""
        self._due: asyncio.TimerHandle | None = None
        """Begins a group that was put off."""
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        """Who waits until a record is on disk, with its number."""
        self._failed: JournalUnwritable | None = None
        self._closed = False

        self.durable_n = self._n
        """The number of the last record on disk."""
        self.on_durable: Callable[[Sequence[Record]], None] = lambda records: None
        """Called in the event loop with the records of every group that reached the disk."""
        self.on_trouble: Callable[[str], None] = lambda why: None
        """Called with a reason when the store does not answer, and with "" when it does again."""
        self.moved = False
        """Another host had the session since it was last open here, or it was never here: the local files are not
        the session's."""

    @property
    def segments(self) -> SegmentWriter | None:
        """Its place in the store that other hosts reach; None if it is only in the data directory."""
        return self._segments

    @staticmethod
    def create(
        directory: Path, sealer: Sealer | None = None, segments: SegmentWriter | None = None
    ) -> Journal:
        """Start an empty journal in `directory`, which is created if needed.

        Raises:
            JournalUnwritable: the directory can't be created or written.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            (directory / "blobs").mkdir(exist_ok=True)
            (directory / "workspace").mkdir(exist_ok=True)
            descriptor = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            for folder in (directory, directory.parent):
                sync_directory(folder)
        except OSError as error:
            raise JournalUnwritable(f"No session can be stored in {directory}: {error.strerror}.") from error

        lock(descriptor, directory)
        return Journal(directory, descriptor, None, 0, sealer, segments)

    @staticmethod
    def open(directory: Path, sealer: Sealer | None = None) -> tuple[Journal, Contents]:
        """Open a stored journal for appending. A torn tail is cut off and reported in `Contents.torn`.

        `sealer`: of the installation that must own the session; a foreign session is not changed.

        Raises:
            ForeignSession: it is not the sealer's.
            JournalLocked: another process has it open.
            JournalError: as in `read_journal`.
        """
        try:
            descriptor = os.open(directory / FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise JournalError(f"There is no session at {directory}.") from error
        except OSError as error:
            raise JournalError(f"The journal in {directory} can't be opened: {error.strerror}.") from error

        # From here on nobody else writes, so what is read is all that there is.
        lock(descriptor, directory)
        try:
            contents = read_journal(directory, sealer)
            if contents.foreign:
                raise ForeignSession(directory.name, contents.foreign)

            if contents.torn:
                os.ftruncate(descriptor, contents.offset)
                os.fsync(descriptor)
            os.lseek(descriptor, contents.offset, os.SEEK_SET)
            (directory / "workspace").mkdir(exist_ok=True)
            (directory / "blobs").mkdir(exist_ok=True)
        except BaseException:
            os.close(descriptor)
            raise

        last = contents.records[-1] if contents.records else None
        return Journal(directory, descriptor, last, contents.offset, sealer), contents

    def append(
        self,
        content: Content,
        agent: str,
        step: int,
        at: str,
        body: str = "",
        blobs: Mapping[str, bytes] | None = None,
    ) -> Record:
        """Queue one record. It has its number now and is on disk when `durable(n)` returns.

        `blobs`: content by SHA-256, stored before the record.

        Raises:
            UsageError: a field can't be stored; nothing was appended.
            JournalUnwritable: an earlier append failed; the session must stop.
        """
        if self._failed is not None:
            raise self._failed
        if self._closed:
            raise JournalUnwritable("The session is closed.")

        n = self._n + 1
        prev = self._prev
        data, digest = encode(Record(n, at, agent, step, content, body, prev), self._sealer)
        record = Record(n, at, agent, step, content, body, prev, digest)

        self._n = n
        self._prev = digest
        self._queue.append(_Queued(record, data, blobs or {}))
        self._unwritten.update(blobs or {})
        self._begin_group()
        return record

    def hasten(self) -> None:
        """Write queued records without a pause, because they record an effect that would be unknown after a crash."""
        self._next_group = 0.0
        self._begin_group()

    async def durable(self, n: int) -> None:
        """Wait until record `n` is on disk.

        Raises:
            JournalUnwritable: it could not be written.
        """
        if n <= self.durable_n:
            return
        if self._failed is not None:
            raise self._failed

        future = asyncio.get_running_loop().create_future()
        self._waiters.append((n, future))
        self._begin_group()
        await future

    def blob(self, digest: str) -> bytes:
        """Return content by SHA-256, including content of a record that is not on disk yet.

        Raises:
            JournalError: as in `read_blob`.
        """
        unwritten = self._unwritten.get(digest)
        if unwritten is not None:
            return unwritten
        return read_blob(self.directory, digest)

    def holds(self, digest: str, size: int) -> bool:
        """Whether the content with this SHA-256 and number of bytes is there, as in `holds_blob`."""
        return digest in self._unwritten or holds_blob(self.directory, digest, size)

    def set_aside(self, digest: str) -> None:
        """Rename content that is damaged, so that it is known to be lost without reading it."""
        place = self.directory / "blobs" / digest
        with contextlib.suppress(OSError):
            place.rename(place.with_name(f"{digest}.damaged"))

    @property
    def failed(self) -> JournalUnwritable | None:
        """Why nothing can be appended any more, or None."""
        return self._failed

    async def close(self) -> None:
        """Wait for queued records, then release the file and the lock."""
        if self._closed:
            return
        with contextlib.suppress(JournalUnwritable):
            await self.durable(self._n)
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def abandon(self) -> None:
        """Release the file and the lock of a journal to which nothing was appended."""
        self._closed = True
        os.close(self._descriptor)

    def _begin_group(self) -> None:
        """Write queued records in the next iteration of the loop, with everything appended until then.

        If nothing waits for it, a group that would immediately follow another starts a little later, and is larger.
        """
        if not self._queue or self._flushing:
            return

        loop = asyncio.get_running_loop()
        is_time = bool(self._waiters) or loop.time() >= self._next_group
        if is_time:
            if self._due is not None:
                self._due.cancel()
                self._due = None
            self._flushing = True
            loop.call_soon(self._flush)
        elif self._due is None:
            self._due = loop.call_at(self._next_group, self._overdue)

    def _overdue(self) -> None:
        """Begin a group that nothing waited for, now that its pause is over."""
        self._due = None
        self._next_group = 0.0
        self._begin_group()

    def _flush(self) -> None:
        """Write all queued records as one group, in a thread."""
        group = self._queue
        self._queue = []

        loop = asyncio.get_running_loop()
        if self._segments is not None:
            self._segments.troubled = partial(self._troubled, loop)
        future = loop.run_in_executor(None, self._write, group)
        future.add_done_callback(lambda done: self._flushed(group, done))

    def _write(self, group: Sequence[_Queued]) -> tuple[int, OSError | None]:
        """Store a group. Returns how many of its records are on disk, and why not all of them: what fits is kept."""
        # A record may only name what is already there.
        for queued in group:
            for digest, content in queued.blobs.items():
                write_blob(self.directory, digest, content)
            if self._segments is not None:
                self._share_blobs(self._segments, queued.record, queued.blobs)

        data = b"".join(queued.data for queued in group)
        if self._segments is not None:
            # The store is authoritative: once the group is there, a file that can't be written is a failure.
            self._segments.append(data)
            write_at(self._descriptor, data, self._offset)
            self._offset += len(data)
            return len(group), None

        stored = len(group)
        cut = None
        end = self._offset + len(data)
        try:
            write_at(self._descriptor, data, self._offset)
        except OSError as error:
            cut = error
            ends = list(accumulate((len(queued.data) for queued in group), initial=self._offset))
            stored = bisect_right(ends, os.fstat(self._descriptor).st_size) - 1
            end = ends[stored]
            os.ftruncate(self._descriptor, end)

        os.fdatasync(self._descriptor)
        self._offset = end
        return stored, cut

    def _troubled(self, loop: asyncio.AbstractEventLoop, why: str) -> None:
        """Called in the thread that writes."""
        loop.call_soon_threadsafe(self.on_trouble, why)

    def _share_blobs(self, segments: SegmentWriter, record: Record, blobs: Mapping[str, bytes]) -> None:
        """Put everything that a record names into the store before it, including artifacts from a spool."""
        for digest in (blobs_of(record) | blobs.keys()) - segments.blobs:
            content = blobs.get(digest)
            if content is None:
                try:
                    content = read_blob(self.directory, digest)
                except JournalError:
                    # Content that is lost here can't be found elsewhere, either.
                    continue
            segments.put_blob(digest, content)

    def _flushed(self, group: Sequence[_Queued], written: asyncio.Future[tuple[int, OSError | None]]) -> None:
        """Tell who waits for records of a group, and begin the next one."""
        error = written.exception()
        if error is not None:
            self._fail(error)
            return

        stored, cut = written.result()
        on_disk = group[:stored]
        self.durable_n += stored
        for queued in on_disk:
            for digest in queued.blobs:
                self._unwritten.pop(digest, None)

        ready = [future for n, future in self._waiters if n <= self.durable_n]
        self._waiters = [(n, future) for n, future in self._waiters if n > self.durable_n]
        try:
            # Readers of the session have the records before any effect that waits for them.
            if on_disk:
                self.on_durable([queued.record for queued in on_disk])
        finally:
            for future in ready:
                if not future.done():
                    future.set_result(None)

            if cut is not None:
                self._fail(cut)
            else:
                self._flushing = False
                self._next_group = asyncio.get_running_loop().time() + _PAUSE
                self._begin_group()

    def _fail(self, error: BaseException) -> None:
        """Stop for good: nothing more is written, and who waits is told why."""
        if isinstance(error, JournalUnwritable):
            self._failed = error
        else:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._failed = JournalUnwritable(
                f"The journal in {self.directory} can't be written ({reason}), so the session has "
                f"stopped. Everything up to record {self.durable_n} is stored. Free some disk space, "
                "then open the session again."
            )

        self._queue = []
        # What is half written and can't be cut off is a torn tail for the next reader.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._offset)

        waiters = self._waiters
        self._waiters = []
        for _, future in waiters:
            if not future.done():
                future.set_exception(self._failed)
                # Who was cancelled while they waited does not need the error.
                future.exception()
        self.on_durable([])


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of `data` at a position of an open file.

    Raises:
        OSError: it can't be written.
    """
    view = memoryview(data)
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, view[written:], offset + written)


def lock(descriptor: int, directory: Path) -> None:
    """Lock an open journal for this process, or close it.

    Raises:
        JournalLocked: another process holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise JournalLocked(
            f"The session in {directory} is open in another process; use or end that process."
        ) from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_blob(directory: Path, digest: str, content: bytes) -> None:
    """Store `content` under its SHA-256, whole or not at all."""
    target = directory / "blobs" / digest
    if target.exists() and target.stat().st_size == len(content):
        return

    temporary = target.with_name(f".{digest}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.rename(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


_PASSES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE})
"""Errors that say nothing about a file: it may well be there at the next try."""


def read_blob(directory: Path, digest: str) -> bytes:
    """Return content by SHA-256.

    Raises:
        BlobLost: it is missing, or does not match its name.
        JournalError: it can't be read at the moment, or there can be no such blob.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise JournalError(f"{digest[:80]!r} is not the name of a blob.")

    try:
        with open_regular(directory / "blobs" / digest) as stream:
            if os.fstat(stream.fileno()).st_size > LARGEST_BLOB:
                most = f"{LARGEST_BLOB >> 20} MiB"
                raise BlobLost(f"The blob {digest[:12]}… in {directory} is larger than {most}.", digest)
            content = stream.read()
    except OSError as error:
        if error.errno in _PASSES:
            raise JournalError(f"The blobs in {directory} can't be read now: {error.strerror}.") from error
        what = "missing" if error.errno == errno.ENOENT else "not a readable file"
        raise BlobLost(
            f"The blob {digest[:12]}… next to the journal in {directory} is {what}.", digest
        ) from error

    if hashlib.sha256(content).hexdigest() != digest:
        raise BlobLost(f"The blob {digest[:12]}… in {directory} is damaged.", digest)
    return content


def holds_blob(directory: Path, digest: str, size: int) -> bool:
    """Whether there is content with this SHA-256, as far as its name and its `size` in bytes tell without reading it.

    Raises:
        JournalError: that can't be found out at the moment.
    """
    try:
        status = os.lstat(directory / "blobs" / digest)
    except OSError as error:
        if error.errno in _PASSES:
            raise JournalError(f"The blobs in {directory} can't be read now: {error.strerror}.") from error
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size
