"""The stored sessions of a data directory, read from only the two ends of their journals."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from iact.core.errors import JournalError
from iact.core.journal.ends import JournalEnds, newest
from iact.core.journal.file import FILE
from iact.core.journal.seal import Sealer
from iact.core.records.control import SetModels, SetPolicy, SwitchMemory, UseOverlay
from iact.core.records.dialogue import Distill
from iact.core.records.session import Close, Epoch, Migrate, Module, Notice
from iact.core.stored.about import FILE as ABOUT
from iact.core.stored.about import read_about
from iact.core.views.status import SessionState, SessionStatus, left_at

_HOUSEKEEPING: Final = (
    Close, Distill, Epoch, Migrate, Module, Notice, SetModels, SetPolicy, SwitchMemory, UseOverlay,
)  # fmt: skip
"""Records that opening, closing or distilling a session, a new version or a changed catalogue adds. They are no news."""

_FAR: Final = (8_192, 131_072, 1 << 20)
"""How many bytes of a journal's end are read to find its last record that is news, if there are that many."""


_BEGINS: Final = 60.0
"""Seconds in which a session that is being made has its first record. Later, a journal without any has lost them."""

EMPTY: Final = "its journal is empty; the files that are left are in its folder"
MISSING: Final = "its journal is missing; the files that are left are in its folder"
"""Why sessions can't be read of which no record is left."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A stored session, as a list shows it. `title`: the name that a person gave it, or the user's first words.

    `changed`: when something last happened in it, which opening and closing it is not.

    A session that can't be read has a row, too: `state` "unreadable", `what` the reason, `created` when its
    file was last written.

    Times are ISO 8601, UTC. `foreign`: this installation did not write its last record, so it can only be read or
    adopted. `state`, `since`, `what`: see `core.views.status`. `source`, `at`: where a fork comes from.
    """

    id: str
    title: str
    created: str
    changed: str
    records: int
    open: bool
    foreign: bool = False
    state: SessionState = "idle"
    since: str = ""
    what: str = ""
    pinned: bool = False
    named: bool = False
    """Whether a person gave the session its title."""
    source: str = ""
    at: int = 0
    workspace: str = "scratch"
    """The directory of the user's that the session works in; "scratch": its own."""

    @property
    def readable(self) -> bool:
        return self.state != "unreadable"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What changes when a session's journal, or the information next to it, changes: sizes, and times in
    nanoseconds.

    A session whose journal can't be found has the `size` -1, and the time of its directory."""

    size: int
    mtime: int
    file: int
    about: int


@dataclass(frozen=True, slots=True)
class ToldRow:
    """What a host last published about a session, when it had this many `records`. `row`: None if it was deleted."""

    records: int
    row: SessionInfo | None


class Listed(Protocol):
    """What was found about sessions earlier. It may be empty; an entry with an outdated stamp does not count."""

    def read(self) -> Mapping[str, tuple[FileStamp, SessionInfo]]: ...

    def keep(self, found: Mapping[str, tuple[FileStamp, SessionInfo]], gone: Sequence[str]) -> None: ...


class KnowsNothing:
    """Knows nothing, so every session is read."""

    def read(self) -> Mapping[str, tuple[FileStamp, SessionInfo]]:
        return {}

    def keep(self, found: Mapping[str, tuple[FileStamp, SessionInfo]], gone: Sequence[str]) -> None:
        return None


NOTHING_KNOWN: Final = KnowsNothing()


def listed(
    sessions: Path,
    sealer: Sealer,
    running: Mapping[str, SessionStatus],
    known: Listed = NOTHING_KNOWN,
    elsewhere: Mapping[str, ToldRow] | None = None,
) -> list[SessionInfo]:
    """Every stored session, most recently changed first; one that can't be read with the reason.

    `running`: those open here, with their status. `known`: what need not be read again. `elsewhere`: what other hosts
    publish about theirs, which counts if the journal here has no more records than theirs.
    """
    before = known.read()
    fresh: dict[str, tuple[FileStamp, SessionInfo]] = {}
    rows: list[SessionInfo] = []
    there: set[str] = set()
    for name, stamp in stamps(sessions):
        there.add(name)
        kept_stamp, info = before.get(name, (None, None))
        if kept_stamp != stamp:
            info = _info(sessions / name / FILE, stamp, sealer)
            # What can't be read is looked at each time: neither a right that is granted nor a newer version of
            # this program, which can read it, changes a stamp.
            if info is not None and info.readable:
                fresh[name] = (stamp, info)
        if info is not None:
            rows.append(_now(info, running[name]) if name in running else info)

    gone = [name for name in before if name not in there]
    if fresh or gone:
        known.keep(fresh, gone)

    if elsewhere:
        rows = _joined(rows, running, elsewhere)
    return sorted(_numbered(rows), key=lambda info: info.changed, reverse=True)


def _joined(
    here: Sequence[SessionInfo], running: Mapping[str, SessionStatus], elsewhere: Mapping[str, ToldRow]
) -> list[SessionInfo]:
    counts = {name: told.row for name, told in elsewhere.items()}
    for one in here:
        told = elsewhere.get(one.id)
        if told is None or one.id in running or one.records > told.records:
            counts[one.id] = one
    return [one for one in counts.values() if one is not None]


def stamps(sessions: Path) -> Iterator[tuple[str, FileStamp]]:
    """The names of all directories with a journal, each with the stamp that shows whether it changed."""
    try:
        entries = os.scandir(sessions)
    except OSError:
        return

    with entries:
        for entry in entries:
            try:
                journal = os.stat(f"{entry.path}/{FILE}")
            except OSError as error:
                if _was_a_session(entry, error):
                    written = entry.stat(follow_symlinks=False).st_mtime_ns
                    yield entry.name, FileStamp(-1, written, 0, 0)
                continue

            try:
                about = os.stat(f"{entry.path}/{ABOUT}").st_mtime_ns
            except OSError:
                about = 0
            yield entry.name, FileStamp(journal.st_size, journal.st_mtime_ns, journal.st_ino, about)


def _was_a_session(entry: os.DirEntry[str], error: OSError) -> bool:
    """Whether a directory in which no journal can be found is one of a session, and not one that is being made."""
    if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
        return False
    if not isinstance(error, FileNotFoundError):
        return True
    has_files = any(os.path.isdir(f"{entry.path}/{part}") for part in ("blobs", "workspace"))
    return has_files and not _is_new(entry.stat(follow_symlinks=False).st_mtime)


def _is_new(written: float) -> bool:
    return time.time() - written < _BEGINS


def info_of(directory: Path, session: str, sealer: Sealer) -> SessionInfo:
    """One session in `directory`; without a title if it can't be read."""
    try:
        status = os.stat(directory / FILE)
        stamp = FileStamp(status.st_size, status.st_mtime_ns, status.st_ino, 0)
        found = _info(directory / FILE, stamp, sealer)
    except OSError:
        found = None
    if found is not None and not found.readable:
        found = None
    return replace(found, id=session) if found else SessionInfo(session, "", "", "", 0, open=False)


def _now(info: SessionInfo, standing: SessionStatus) -> SessionInfo:
    return replace(info, open=True, state=standing.state, since=standing.since, what=standing.what)


def _info(path: Path, stamp: FileStamp, sealer: Sealer) -> SessionInfo | None:
    try:
        ends = JournalEnds.of(path, sealer)
        left = left_at(newest(path))
        changed = _last_news(path, stamp.size)
    except FileNotFoundError:
        return _unreadable(path, stamp, MISSING)
    except OSError as error:
        return _unreadable(path, stamp, error.strerror or str(error))
    except (ValueError, JournalError) as error:
        return _unreadable(path, stamp, str(error))

    if not ends.first:
        is_being_made = _is_new(stamp.mtime / 1e9)
        return None if is_being_made else _unreadable(path, stamp, EMPTY)

    about = read_about(path.parent)
    written = _written(stamp)
    return SessionInfo(
        id=path.parent.name,
        title=about.title or short_title(ends.title),
        created=ends.first[0].at,
        changed=changed or written,
        records=ends.last,
        open=False,
        foreign=not ends.sealed,
        state=left.state,
        since=left.since,
        what=left.what,
        pinned=about.pinned,
        named=bool(about.title),
        source=about.source,
        at=about.at,
        workspace=ends.first[0].text("workspace") or "scratch",
    )


def _unreadable(path: Path, stamp: FileStamp, why: str) -> SessionInfo:
    """The row of a session whose journal can't be read: nothing of a person's work leaves the list in silence."""
    about = read_about(path.parent)
    written = _written(stamp)
    return SessionInfo(
        id=path.parent.name,
        title=about.title,
        created=written,
        changed=written,
        records=0,
        open=False,
        state="unreadable",
        what=why,
        pinned=about.pinned,
        named=bool(about.title),
        source=about.source,
        at=about.at,
    )


def _written(stamp: FileStamp) -> str:
    return datetime.fromtimestamp(stamp.mtime / 1e9, UTC).isoformat(timespec="seconds")


def _last_news(path: Path, size: int) -> str:
    """When something last happened in a session; empty if its last records do not say so."""
    for far in _FAR:
        for record in reversed(newest(path, far)):
            if not isinstance(record.content, _HOUSEKEEPING):
                at = datetime.fromisoformat(record.at).astimezone(UTC)
                return at.isoformat(timespec="seconds")
        if far >= size:
            break
    return ""


def _numbered(rows: Sequence[SessionInfo]) -> list[SessionInfo]:
    """Name the forks that have no name of their own after their source, with a number."""
    forks = sorted((info for info in rows if info.source), key=lambda info: info.id)
    if not forks:
        return list(rows)

    by_id = {info.id: info for info in rows}
    counts: Counter[str] = Counter()
    titles: dict[str, str] = {}
    for info in forks:
        first = _first(info, by_id)
        counts[first.id] += 1
        if not info.named:
            titles[info.id] = f"{first.title} (fork {counts[first.id]})"
    return [replace(info, title=titles[info.id]) if info.id in titles else info for info in rows]


def _first(fork: SessionInfo, by_id: Mapping[str, SessionInfo]) -> SessionInfo:
    """The session that a fork comes from, through other forks; the fork itself if that session no longer exists."""
    seen = {fork.id}
    while fork.source in by_id and fork.source not in seen:
        seen.add(fork.source)
        fork = by_id[fork.source]
    return fork


def short_title(text: str, limit: int = 80) -> str:
    """The title of a session without a name that began with `text`."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
