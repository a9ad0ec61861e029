"""Deleted sessions, until they are permanently removed.

    sessions/ID/…  ──delete──▶  sessions/.trash/ID/session/…  ──purge──▶  nothing
                   ◀──restore──

A session's whole directory is moved unchanged, so a restored session is byte for byte what it was. Next to it,
`deleted.json` says when it was deleted, and whether memory has forgotten it. Readers look for journals one level below
`sessions`, so they find none of these. The trash is in the same directory, and so on the same file system.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from iact.core.errors import JournalLocked, JournalUnwritable, UsageError
from iact.core.journal.file import FILE, sync_directory

FOLDER: Final = ".trash"
_NOTE: Final = "deleted.json"
_SESSION: Final = "session"


@dataclass(frozen=True, slots=True)
class Deleted:
    """A session in the trash. `at`: when it was deleted, ISO 8601, UTC. `forgotten`: memory has forgotten it."""

    id: str
    at: str
    forgotten: bool
    directory: Path
    """Where its files are now."""


class Trash:
    """The deleted sessions of the directory `sessions`. All methods block."""

    def __init__(self, sessions: Path) -> None:
        self._sessions: Final = sessions
        self._folder: Final = sessions / FOLDER

    def all(self) -> list[Deleted]:
        """The deleted sessions, newest first."""
        found = [_read(path.parent.parent) for path in self._folder.glob(f"*/{_SESSION}/{FILE}")]
        return sorted(found, key=lambda one: (one.at, one.id), reverse=True)

    def find(self, session: str) -> Deleted | None:
        """The deleted session with this id; None if there is none."""
        place = self._folder / session
        if not session.strip(".") or place.parent != self._folder:
            return None
        return _read(place) if (place / _SESSION / FILE).is_file() else None

    def put(self, session: str, now: datetime) -> Deleted:
        """Move a session to the trash.

        Raises:
            UsageError: a session with this id is already in the trash.
            JournalLocked: it is open elsewhere.
            JournalUnwritable: it can't be moved, and stays where it was.
        """
        directory, place = self._sessions / session, self._folder / session
        if self.find(session) is not None:
            raise UsageError(
                f"A deleted session {session} is still in the trash. Delete that session for good "
                f"first: iact session delete --now {session}."
            )
        with _locked(directory), _moving(f"The session in {directory} can't be deleted"):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(place, now.isoformat(timespec="seconds"), forgotten=False)
            directory.rename(place / _SESSION)
            for changed in (place, self._folder, self._sessions):
                sync_directory(changed)
        return _read(place)

    def forgotten(self, session: str) -> None:
        """Note that memory has forgotten a session."""
        one = self.of(session)
        with _moving(f"The note on the deleted session {session} can't be written"):
            _write(one.directory.parent, one.at, forgotten=True)

    def take_back(self, session: str) -> Path:
        """Move a session back to where it was.

        Raises:
            UsageError: it is not in the trash, or another session has its id now.
            JournalUnwritable: it can't be moved.
        """
        one, target = self.of(session), self._sessions / session
        if target.exists():
            raise UsageError(f"There is a session {session} now, so the deleted one can't be restored.")
        with _moving(f"The session {session} can't be restored"):
            one.directory.rename(target)
            sync_directory(self._sessions)
            shutil.rmtree(one.directory.parent, ignore_errors=True)
        return target

    def purge(self, session: str) -> None:
        """Permanently remove a session.

        Raises:
            UsageError: it is not in the trash, or something is mounted in it.
            JournalUnwritable: a part of it can't be removed; the rest is gone.
        """
        one = self.of(session)
        mounted = _mounted_below(one.directory)
        if mounted:
            raise UsageError(
                f"The deleted session {session} still has {mounted[0]} mounted, so it is not removed. "
                "Start iact once; it unmounts such directories."
            )
        with _moving(f"The deleted session {session} can't be removed whole"):
            # The journal, by which the session is found, goes last, so an interrupted removal can be continued.
            for entry in [*one.directory.iterdir()]:
                if entry.name != FILE:
                    _remove(entry)
            shutil.rmtree(one.directory.parent, onerror=_make_writable)
            sync_directory(self._folder)

    def of(self, session: str) -> Deleted:
        """The deleted session with this id.

        Raises:
            UsageError: it is not in the trash.
        """
        found = self.find(session)
        if found is None:
            raise UsageError(f"There is no deleted session {session!r}.")
        return found


def _read(place: Path) -> Deleted:
    """A deleted session; without a readable note, its time of deletion is when its entry was made."""
    at, forgotten = "", False
    with suppress(OSError, ValueError, TypeError, KeyError):
        said = json.loads((place / _NOTE).read_text(encoding="utf-8"))
        at, forgotten = (
            datetime.fromisoformat(str(said["at"])).isoformat(timespec="seconds"),
            said["forgotten"] is True,
        )
    if not at:
        at = datetime.fromtimestamp(place.stat().st_mtime).astimezone().isoformat(timespec="seconds")
    return Deleted(place.name, at, forgotten, place / _SESSION)


def _write(place: Path, at: str, *, forgotten: bool) -> None:
    draft = place / f".{_NOTE}"
    with draft.open("w", encoding="utf-8") as stream:
        json.dump({"at": at, "forgotten": forgotten}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(place / _NOTE)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the session's lock, so that nothing else can open it."""
    try:
        descriptor = os.open(directory / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"There is no session at {directory}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise JournalLocked(
            f"The session {directory.name} is open in another process, so it can't be deleted. End that process first."
        ) from error
    finally:
        os.close(descriptor)


@contextmanager
def _moving(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalUnwritable(f"{what}: {error.strerror or error}.") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_make_writable)
    else:
        path.unlink()


def _make_writable(remove: Callable[[str], object], path: str, error: object) -> None:
    """Make directories writable for their owner and try again: agents make directories that are not."""
    parent = os.path.dirname(path)
    for place in (parent, path):
        with suppress(OSError):
            if stat.S_ISDIR(os.lstat(place).st_mode):
                os.chmod(place, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _mounted_below(path: Path) -> list[str]:
    """The mount points in a directory; removing its content would remove something else."""
    inside = f"{path.resolve()}/"
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    places = [line.split()[4].encode().decode("unicode_escape") for line in lines if line.count(" ") > 4]
    return [place for place in places if place.startswith(inside)]
