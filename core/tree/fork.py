"""Forks a session: a new one that shares its records 1…n and goes its own way behind them.

The shared records are copied byte for byte, so their chain of digests stays whole, and one `fork`
record behind them says where they come from. What the original had begun and not ended at n is then
in the state in which a crash would have left it, and is treated as after one. Nothing of the original
is locked or changed; it may be running.

The new session is built in a hidden directory beside the others and renamed into place when all of it
is on disk: it is there whole or not at all. What a killed process left half-built, the next fork removes.

Files are copied as they are now. Modules write them, also during the copy, so nothing about them is
trusted: directories are walked by descriptor and no link is ever followed, sizes are those of the moment
of opening, and what is neither file, directory nor link is left out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from core.errors import JournalUnwritable, UsageError
from core.journal.file import FILE, sync_directory
from core.journal.reader import Reader
from core.journal.record import Record, blobs_of, encode, timestamp
from core.ports import JSON, Versions

Files = Literal["version", "current", "live", "none"]
"""Whose files a fork works on: the session's as they were at the last record shared, if versions are kept; a copy of the session's as they were when it was forked; a directory of the
user's, which both share; none, because none stood beside the journal."""

STORE: Final = "versions"
"""The name of the workspace's versions in a session's directory."""
_CHUNK: Final = 1 << 24
_DEPTH: Final = 100
_STALE: Final = 60.0
_UNREADABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG}
)


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that was made. `left_out`: how many files could not be copied."""

    session: str
    directory: Path
    source: str
    at: int
    workspace: Files
    left_out: int


def new_session(now: datetime) -> str:
    """A fresh id for a session that begins at `now`; ids sort by time."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def fork(
    sessions: Path,
    source: Path,
    at: int | None,
    *,
    session: str,
    now: datetime,
    versions: Versions | None = None,
) -> Fork:
    """Make session `session` in the directory `sessions` from records 1…`at` (default: all) of `source`.

    `versions`: reads the versions of its workspace, if it has any; without, its files are taken as they are now.
    `source`: a journal's file or its session's directory; it may stand anywhere, and be in use.

    Raises:
        UsageError: it has no record `at`.
        JournalCorrupt: one of these records is damaged (what stands behind them is not looked at).
        WorkspaceError: its files as they were at `at` can't be had.
        JournalUnwritable: the new session can't be stored; nothing of it is left.
    """
    shared = _read(source, at)
    try:
        with _workshop(sessions, session) as place:
            made = _build(shared, place, session, now, versions)
            place.rename(sessions / session)
            sync_directory(sessions)
    except OSError as error:
        raise JournalUnwritable(
            f"The fork can't be stored in {sessions} ({error.strerror}); nothing of it was kept, "
            "and the session that it comes from is as it was."
        ) from error
    return Fork(session, sessions / session, shared.session, shared.at, *made)


@dataclass(slots=True)
class _Shared:
    """The part of a journal that a fork takes over. `size` in bytes; `step`: the root's, at its end."""

    file: Path
    size: int = 0
    at: int = 0
    digest: str = ""
    session: str = ""
    workspace: str = ""
    step: int = 0
    blobs: set[str] = field(default_factory=set)
    version: str = ""
    unkept: bool = False
    """Whether something was written behind `version` of which none was kept."""

    def take(self, record: Record) -> None:
        self.at, self.digest = record.n, record.digest
        self.blobs |= blobs_of(record)
        if record.kind in ("result", "control"):
            self.version = record.text("version") or self.version
            self.unkept = record.fields.get("unkept") is True or (self.unkept and not record.text("version"))
        if record.agent == "/":
            self.step = record.step
        if record.kind in ("open", "fork"):
            self.session = record.text("session")
        if record.kind == "open":
            self.workspace = record.text("workspace") or "scratch"


def _read(source: Path, at: int | None) -> _Shared:
    reader = Reader(source)
    shared = _Shared(reader.file)
    if at is None or at > 0:
        for record in reader.read():
            shared.take(record)
            shared.size = reader.offset
            if record.n == at:
                break
    if (at is not None and shared.at != at) or not shared.at:
        have = f"it has 1 to {shared.at}" if shared.at else "count from 1"
        raise UsageError(f"There is no record {at} to fork {reader.file} at; {have}.")
    return shared


def _build(
    shared: _Shared, place: Path, session: str, now: datetime, versions: Versions | None
) -> tuple[Files, int]:
    """Write the whole session into `place`; which files it got, and how many were left out."""
    origin = shared.file.parent
    for folder in (place, place / "blobs", place / "workspace"):
        folder.mkdir(mode=0o700 if folder == place else 0o777)
    kept = (origin / STORE).is_dir() and not shared.unkept
    if versions is not None and shared.workspace == "scratch" and kept:
        files, left_out = _as_it_was(shared, origin / STORE, place, versions)
    else:
        files, left_out = _files(shared, origin / "workspace", place / "workspace")
    for digest in shared.blobs:
        _share(origin / "blobs" / digest, place / "blobs" / digest)
    sync_directory(place / "blobs")
    fields: dict[str, JSON] = {
        "from": shared.session,
        "after": shared.at,
        "session": session,
        "workspace": files,
    }
    if left_out:
        fields["left_out"] = left_out
    record = Record(
        shared.at + 1, timestamp(now), "fork", "/", shared.step + 1, "", fields, prev=shared.digest
    )
    _write_journal(shared, place / FILE, encode(record)[0])
    sync_directory(place)
    return files, left_out


def _write_journal(shared: _Shared, target: Path, record: bytes) -> None:
    with shared.file.open("rb") as reading, target.open("xb") as writing:
        os.fchmod(writing.fileno(), 0o600)
        _transfer(reading.fileno(), writing.fileno(), shared.size)
        writing.seek(0, os.SEEK_END)
        writing.write(record)
        writing.flush()
        os.fsync(writing.fileno())


def _transfer(source: int, target: int, size: int) -> None:
    """Copy up to `size` bytes from the start of one open file to the start of another."""
    done = 0
    while done < size and (sent := os.sendfile(target, source, done, min(_CHUNK, size - done))):
        done += sent


def _share(source: Path, target: Path) -> None:
    """Give a blob a second name, or copy it where that can't be. A missing one is missing in the fork as well."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError:
        with source.open("rb") as reading, target.open("xb") as writing:
            _transfer(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()).st_size)
            os.fsync(writing.fileno())


@contextmanager
def _workshop(sessions: Path, session: str) -> Iterator[Path]:
    """A place to build in, where no list of sessions looks, locked as long as it is in use; gone at the end."""
    sessions.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = sessions / f".forking-{session}"
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _sweep(sessions, before=folder.stat().st_mtime - _STALE)
        yield folder / "session"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _sweep(sessions: Path, *, before: float) -> None:
    """Remove what killed processes left half-built: old enough to have been locked, and not locked."""
    for folder in sessions.glob(".forking-*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)


def _as_it_was(shared: _Shared, store: Path, place: Path, versions: Versions) -> tuple[Files, int]:
    """The files as they were at the last record shared; its versions come along, as second names."""
    shutil.copytree(store, place / STORE, copy_function=_second_name, symlinks=True)
    if shared.version:  # else nothing had been written by then
        versions.restore(place / "workspace", place / STORE, shared.version)
    return "version", 0


def _second_name(source: str, target: str) -> None:
    """Objects of the store never change once they are there; what does is small, and copied."""
    if "/objects/" in source:
        os.link(source, target, follow_symlinks=False)
    else:
        shutil.copyfile(source, target)


# --- files ----------------------------------------------------------------------------------------


def _files(shared: _Shared, source: Path, target: Path) -> tuple[Files, int]:
    if shared.workspace != "scratch":
        return "live", 0
    try:
        reading = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return "none", 0
    try:
        writing = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return "current", _copy_folder(reading, writing, 0)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_folder(source: int, target: int, depth: int) -> int:
    """Copy what is in one open directory into another; how much had to be left out."""
    left_out = 0
    with os.scandir(source) as entries:
        for entry in entries:
            try:
                left_out += _copy_entry(entry, source, target, depth)
            except OSError as error:
                if error.errno not in _UNREADABLE:
                    raise
                left_out += error.errno != errno.ENOENT  # gone meanwhile: as if it had never been
    _dress(target, os.fstat(source))
    os.fsync(target)
    return left_out


def _copy_entry(entry: os.DirEntry[str], source: int, target: int, depth: int) -> int:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(entry.name, dir_fd=source), entry.name, dir_fd=target)
        return 0
    if stat.S_ISREG(status.st_mode):
        return _copy_file(entry.name, source, target)
    if not stat.S_ISDIR(status.st_mode) or depth >= _DEPTH:
        return 1
    reading = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=source)
    try:
        os.mkdir(entry.name, 0o700, dir_fd=target)
        writing = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=target)
        try:
            return _copy_folder(reading, writing, depth + 1)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_file(name: str, source: int, target: int) -> int:
    # What was a file a moment ago may be a pipe now: NONBLOCK keeps it from holding us up.
    reading = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source)
    try:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode):
            return 1
        writing = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
        try:
            _transfer(reading, writing, status.st_size)
            _dress(writing, status)
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return 0


def _dress(descriptor: int, like: os.stat_result) -> None:
    """Owner, mode and times as the original has them; the owner can always read, and nothing is set-user-id."""
    if os.geteuid() == 0:
        os.fchown(descriptor, like.st_uid, like.st_gid)
    own = 0o700 if stat.S_ISDIR(like.st_mode) else 0o400
    os.fchmod(descriptor, like.st_mode & 0o777 | own)
    os.utime(descriptor, ns=(like.st_atime_ns, like.st_mtime_ns))
