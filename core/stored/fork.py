"""Forks a session: makes a new session that shares records 1…n and then goes its own way.

The shared records are copied byte for byte, so their chain of digests stays whole, and one `fork` record after them
says where they come from. What the original had begun and not ended at n is not carried out in the fork, and that is
recorded when the fork is opened: the usual reason to fork before a call is to prevent it. If it is wanted (`run`), it
is treated as after a crash. Nothing of the original is locked or changed; it may be running.

The new session is built in a hidden directory next to the others and renamed into place when all of it is on disk, so
it is either complete or missing. The next fork removes what a killed process left half-built.

Files are copied as they are now (`core.stored.folder_copy`).
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
from iact.core.stored.folder_copy import CopyBudget, copy_tree, transfer

Files = Literal["version", "current", "live", "none"]
"""Which files a fork works on. "version": the session's files at the last shared record, if versions are kept.
"current": a copy of the session's files at the time of the fork. "live": a directory of the user's, which both share.
"none": there were no files next to the journal."""

STORE: Final = VERSIONS
"""The name of the directory of the workspace's versions in a session's directory."""
_STALE: Final = 60.0


@dataclass(frozen=True, slots=True)
class MadeFork:
    """The new session. `left_out`: how many files could not be copied."""

    session: str
    directory: Path
    source: str
    at: int
    workspace: Files
    left_out: int

    @property
    def journal(self) -> Path:
        """The file of its journal."""
        return self.directory / FILE


def new_session(now: datetime) -> str:
    """A new id for a session that begins at `now`; ids sort by time."""
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

    `run`: go on with what was under way at `at`; without it, that work is dropped, and the root waits for a message.
    `versions`: reads the versions of the workspace, if there are any; without it, the files are copied as they are now.
    `source`: a journal's file or its session's directory; it may be anywhere, and in use. `sealer`: must have
    sealed the journal.

    Raises:
        ForeignSession: these records were not written by the sealer.
        UsageError: it has no record `at`.
        JournalCorrupt: one of these records is damaged (later records are not checked).
        WorkspaceError: the files as they were at `at` can't be restored.
        JournalUnwritable: the new session can't be stored; nothing is left behind.
    """
    shared = _read(source, at, sealer)
    try:
        with workshop(sessions, session) as place:
            files, left_out = _build(shared, place, session, now, versions, sealer, run=run)
            place.rename(sessions / session)
            sync_directory(sessions)
    except OSError as error:
        raise JournalUnwritable(
            f"The fork can't be stored in {sessions} ({error.strerror}). No part of it was kept, and "
            "the original session is unchanged."
        ) from error
    return MadeFork(session, sessions / session, shared.session, shared.at, files, left_out)


@dataclass(slots=True)
class _Shared:
    """The part of a journal that a fork takes over. `size`: in bytes; `step`: the root's, at its end."""

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
    """Whether something was written after `version` without a version being kept."""

    def take(self, record: Record) -> None:
        """Take in the next of the shared records."""
        self.at = record.n
        self.digest = record.digest
        self.blobs |= blobs_of(record)
        if record.agent == "/":
            self.step = record.step

        match record.content:
            case Result(copied=True):
                pass  # the version of a copy is not the workspace's
            case Result() | Restore() | TakeOver() as written if written.version:
                self.version = written.version
                self.unkept = False
            case Result(unkept=True):
                self.unkept = True
            case Open() as opened:
                self.session = opened.session
                self.workspace = opened.workspace
            case ForkContent() as forked:
                self.session = forked.session
            case Adopt() as adopted:  # its files are the adopted ones, which no version holds yet
                self.session = adopted.session
                self.workspace = "scratch"
                self.version = ""
                self.unkept = True


def _read(source: Path, at: int | None, sealer: Sealer) -> _Shared:
    """Read the records that a fork shares. Raises as `fork`."""
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
    why = reader.seals.why_foreign(reader.file)
    if why:
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
    """Write the whole session into `place`. Returns which files it got, and how many were left out."""
    origin = shared.file.parent
    for folder in (place, place / "blobs", place / "workspace"):
        folder.mkdir(mode=0o700 if folder == place else 0o777)

    has_version = (origin / STORE).is_dir() and not shared.unkept
    if versions is not None and shared.workspace == "scratch" and has_version:
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
    """Hard-link a blob, or copy it if that is impossible. A missing blob is missing in the fork as well."""
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
    """A directory to build in, hidden from lists of sessions and locked while in use; removed at the end."""
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
    """Remove what killed processes left half-built: directories old enough that their builder must have locked them,
    and unlocked."""
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
    """Make the files as they were at the last shared record; its versions are hard-linked."""
    versions.share(store, place / STORE)
    if shared.version:  # otherwise nothing had been written by then
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
