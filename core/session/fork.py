"""Forks a session: a new one that shares its records 1…n and goes its own way behind them.

The shared records are copied byte for byte, so their chain of digests stays whole, and one `fork`
record behind them says where they come from. What the original had begun and not ended at n is not
carried out in the fork, and that is recorded when it is opened: who forks before a call mostly does so
to prevent it. If it is wanted (`run`), it is treated as after a crash. Nothing of the original is
locked or changed; it may be running.

The new session is built in a hidden directory beside the others and renamed into place when all of it
is on disk: it is there whole or not at all. What a killed process left half-built, the next fork removes.

Files are copied as they are now (`core.session.folder_copy`).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import ForeignSession, JournalUnwritable, UsageError
from iact.core.journal.file import FILE, VERSIONS, open_journal, open_regular, sync_directory
from iact.core.journal.reader import Reader
from iact.core.journal.record import encode
from iact.core.journal.seal import Sealer
from iact.core.ports import Versions
from iact.core.records.calls import Result
from iact.core.records.control import Restore
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record, blobs_of, timestamp
from iact.core.records.session import Adopt, Open
from iact.core.records.session import Fork as ForkContent
from iact.core.session.folder_copy import CopyBudget, copy_tree, transfer

Files = Literal["version", "current", "live", "none"]
"""Whose files a fork works on: the session's as they were at the last record shared, if versions are kept; a copy of the session's as they were when it was forked; a directory of the
user's, which both share; none, because none stood beside the journal."""

STORE: Final = VERSIONS
"""The name of the workspace's versions in a session's directory."""
_STALE: Final = 60.0


@dataclass(frozen=True, slots=True)
class MadeFork:
    """A session that was made. `left_out`: how many files could not be copied."""

    session: str
    directory: Path
    source: str
    at: int
    workspace: Files
    left_out: int

    @property
    def journal(self) -> Path:
        """Its journal's file."""
        return self.directory / FILE


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
    run: bool = False,
    versions: Versions | None = None,
    sealer: Sealer,
) -> MadeFork:
    """Make session `session` in the directory `sessions` from records 1…`at` (default: all) of `source`.

    `run`: carry on with what was under way at `at`; without, it is dropped, and the root rests until somebody speaks.
    `versions`: reads the versions of its workspace, if it has any; without, its files are taken as they are now.
    `source`: a journal's file or its session's directory; it may stand anywhere, and be in use. `sealer`: whose it
    must be.

    Raises:
        ForeignSession: these records are not the sealer's.
        UsageError: it has no record `at`.
        JournalCorrupt: one of these records is damaged (what stands behind them is not looked at).
        WorkspaceError: its files as they were at `at` can't be had.
        JournalUnwritable: the new session can't be stored; nothing of it is left.
    """
    shared = _read(source, at, sealer)
    try:
        with workshop(sessions, session) as place:
            made = _build(shared, place, session, now, versions, sealer, run=run)
            place.rename(sessions / session)
            sync_directory(sessions)
    except OSError as error:
        raise JournalUnwritable(
            f"The fork can't be stored in {sessions} ({error.strerror}); nothing of it was kept, "
            "and the session that it comes from is as it was."
        ) from error
    return MadeFork(session, sessions / session, shared.session, shared.at, *made)


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
        if record.agent == "/":
            self.step = record.step
        match record.content:
            case Result(copied=True):
                pass  # a version of a copy is none of the workspace's
            case Result() | Restore() | TakeOver() as said if said.version:
                self.version, self.unkept = said.version, False
            case Result(unkept=True):
                self.unkept = True
            case Open() as opened:
                self.session, self.workspace = opened.session, opened.workspace
            case ForkContent() as forked:
                self.session = forked.session
            case Adopt() as adopted:  # its files are those that came along, which no version holds yet
                self.session = adopted.session
                self.workspace, self.version, self.unkept = "scratch", "", True


def _read(source: Path, at: int | None, sealer: Sealer) -> _Shared:
    reader = Reader(source, sealer)
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
    if why := reader.seals.why_foreign(reader.file):
        raise ForeignSession(reader.file.parent.name, why, place=str(source))
    return shared


def _build(
    shared: _Shared,
    place: Path,
    session: str,
    now: datetime,
    versions: Versions | None,
    sealer: Sealer,
    *,
    run: bool,
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
    content = ForkContent(
        from_=shared.session,
        after=shared.at,
        session=session,
        workspace=files,
        left_out=left_out,
        drops=not run,
    )
    record = Record(shared.at + 1, timestamp(now), "/", shared.step + 1, content, prev=shared.digest)
    _write_journal(shared, place / FILE, encode(record, sealer)[0])
    sync_directory(place)
    return files, left_out


def _write_journal(shared: _Shared, target: Path, record: bytes) -> None:
    with open_journal(shared.file) as reading, target.open("xb") as writing:
        os.fchmod(writing.fileno(), 0o600)
        transfer(reading.fileno(), writing.fileno(), shared.size)
        writing.seek(0, os.SEEK_END)
        writing.write(record)
        writing.flush()
        os.fsync(writing.fileno())


def _share(source: Path, target: Path) -> None:
    """Give a blob a second name, or copy it where that can't be. A missing one is missing in the fork as well."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError:
        with open_regular(source) as reading, target.open("xb") as writing:
            transfer(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()).st_size)
            os.fsync(writing.fileno())


@contextmanager
def workshop(sessions: Path, session: str) -> Iterator[Path]:
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
    versions.share(store, place / STORE)
    if shared.version:  # else nothing had been written by then
        versions.restore(place / "workspace", place / STORE, shared.version)
    return "version", 0


# --- files ----------------------------------------------------------------------------------------


def _files(shared: _Shared, source: Path, target: Path) -> tuple[Files, int]:
    if shared.workspace != "scratch":
        return "live", 0
    try:
        return "current", copy_tree(source, target, CopyBudget())
    except FileNotFoundError:
        return "none", 0
