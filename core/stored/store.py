"""The stored sessions of one data directory: lists, reads and copies them, and changes sessions at rest.

A runtime has one; commands that run nothing use one alone, because nothing here needs a model or a sandbox. Reading
creates nothing on disk, not even the key of the seals; the first write makes that key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from iact.core.clock import SystemClock
from iact.core.errors import (
    ForeignSession,
    IactError,
    JournalError,
    JournalLocked,
    ReplayMismatch,
    SessionDeleted,
    StoreUnavailable,
    UsageError,
)
from iact.core.journal.ends import JournalEnds, sealed_end
from iact.core.journal.file import FILE, Contents, Journal, read_blob, read_journal
from iact.core.journal.seal import NOBODY, Sealer, open_sealer, read_sealer
from iact.core.journal.stores import JournalStore, LocalJournals
from iact.core.ports import Clock, NewStatement, Versions
from iact.core.records.calls import Result
from iact.core.records.control import Restore
from iact.core.records.dialogue import Say
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record
from iact.core.stored.about import FILE as ABOUT
from iact.core.stored.about import About, read_about, title_of, write_about
from iact.core.stored.adopt import Adopted, Terms, adopt
from iact.core.stored.archive import Imported, export_session, import_session
from iact.core.stored.file_browser import FileBrowser
from iact.core.stored.fork import STORE, MadeFork, fork, new_session
from iact.core.stored.index import Index, SearchHit, TextHits
from iact.core.stored.journals import last_record
from iact.core.stored.listing import NOTHING_KNOWN, SessionInfo, info_of, listed, stamps
from iact.core.stored.replay import Replay, replay
from iact.core.stored.shared_list import SharedList
from iact.core.stored.trash import Deleted, Trash
from iact.core.stored.undistilled import UndistilledSessions
from iact.core.stored.workspace import find_version, restore_at_rest, versions_of
from iact.core.tree.memory_events import statements_in_journal
from iact.core.views.review import PendingRow, rows
from iact.core.views.status import SessionStatus

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version of a session's files. `n`: the first record after which the files were like this; `what`: the call that
    wrote.

    `calls`: the records of all calls that ran since the previous version, and may have contributed to it.
    """

    n: int
    at: str
    agent: str
    what: str
    version: str
    calls: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, with the newest match in each text. `behind`: how many sessions are not indexed yet."""

    rows: tuple[tuple[SessionInfo, SearchHit | None], ...]
    behind: int


NO_OVERLAY = (
    "This session does not work in a directory of yours through an overlay, so it has no waiting "
    "changes. List the versions of its own files with: iact workspace log --session ID."
)

_TIMED: Final = len("20260101-000000")
"""How many characters of a session's id say when it was begun."""

_LONG: Final = 2 << 20
"""The size in bytes from which a journal takes noticeable time to read."""

_END: Final = 512 << 10
"""How many bytes of its end contain what a person reads first."""

_SEARCHING: Final = 0.1
"""For how many seconds a search may index new text; the rest is indexed in the background."""


class SessionStore:
    """All sessions of one data directory. `versions`: keeps versions of their files; None if nothing does.

    `indexed`: lists and searches use an index, which they keep in its own file. `others`: the list in which hosts
    publish their sessions.
    """

    def __init__(
        self,
        data: Path,
        *,
        clock: Clock | None = None,
        versions: Versions | None = None,
        indexed: bool = False,
        journals: JournalStore | None = None,
        others: SharedList | None = None,
    ) -> None:
        self.data: Final = data
        self.folder: Final = data / "sessions"
        self.trash: Final = Trash(self.folder)
        self._journals: Final = journals or LocalJournals()
        self.others: Final = others
        self._indexed = indexed
        self._index: Index | None = None
        self._clock: Clock = clock or SystemClock()
        self._versions = versions
        self._sealed: Sealer | None = None

    def sealer(self) -> Sealer:
        """The sealer of what sessions append here; its key is made the first time.

        Raises:
            JournalError: the key can't be made or read.
        """
        if self._sealed is None:
            self._sealed = open_sealer(self.data)
        return self._sealed

    def create(self, session_id: str) -> Journal:
        """Create the journal of a new session; raises as `JournalStore.create`."""
        return self._journals.create(self.folder / session_id, self.sealer())

    def open(self, session_id: str) -> tuple[Journal, Contents]:
        """Open the journal of a stored session to continue it; raises as `path_of` and `JournalStore.open`."""
        path = self.folder / session_id
        trashed = not path.exists() and self.trash.find(session_id) is not None
        if trashed and self._journals.is_deleted(session_id):
            raise SessionDeleted(session_id)
        elsewhere = (
            not (path.exists() or trashed) and path.parent == self.folder and self._journals.has(session_id)
        )
        return self._journals.open(path if elsewhere else self.path_of(session_id), self.sealer())

    def _reader(self) -> Sealer:
        """The sealer that recognizes our own sessions, without making a key."""
        return self._sealed or read_sealer(self.data) or NOBODY

    # --- reading --------------------------------------------------------------------------------

    @property
    def index(self) -> Index | None:
        """The index of all sessions; None if it is turned off, or if no session can be ours."""
        if self._index is None and self._indexed:
            sealer = self._reader()
            if sealer is not NOBODY:
                self._index = Index(self.data, sealer.seal(b"index"))
        return self._index

    def sessions(self, running: Mapping[str, SessionStatus] | None = None) -> list[SessionInfo]:
        """Every stored session, most recently changed first; one that can't be read with the reason.

        `running`: those open here, with their status.
        """
        elsewhere = self.others.read() if self.others is not None else None
        return listed(self.folder, self._reader(), running or {}, self.index or NOTHING_KNOWN, elsewhere)

    def tell(self, session_id: str, status: SessionStatus | None = None, *, gone: bool = False) -> bool:
        """Report the status of a session to other hosts, if there are any. `status`: of a session that is open here.

        Returns False if its journal can't be read now, for example while it is being written. A row that can't be
        stored is only logged, because the next change reports again.
        """
        if self.others is None:
            return True

        row = info_of(self.folder / session_id, session_id, self._reader())
        if status is not None:
            row = replace(row, state=status.state, since=status.since, what=status.what)
        could_be_read = bool(row.created)
        if not could_be_read and not gone:
            return False

        try:
            self.others.tell(row, gone=gone)
        except JournalError as error:
            _LOG.warning("Other hosts can't be told of session %s now: %s", session_id, error)
        return True

    def holds(self, session_id: str) -> bool:
        """Whether there is such a session, in the trash or not."""
        path = self.folder / session_id
        own = bool(session_id.strip(".")) and path.parent == self.folder
        return own and ((path / FILE).is_file() or self.trash.find(session_id) is not None)

    def path_of(self, session_id: str) -> Path:
        """A session's directory.

        Raises:
            UsageError: there is no such session.
        """
        path = self.folder / session_id
        is_a_name = bool(session_id.strip(".")) and path.parent == self.folder
        if is_a_name and (path / FILE).is_file():
            return path

        if self.trash.find(session_id) is not None:
            raise UsageError(
                f"The session {session_id} is deleted. Restore it with: iact session restore {session_id}."
            )
        if self.others is not None and self.others.has(session_id):
            raise UsageError(
                f"The session {session_id} was never open on this host. Open it here first, or do this where it is open."
            )
        raise UsageError(f"There is no session {session_id!r}. List the sessions with: iact session list.")

    def read(self, source: str | Path, *, at: int | None = None, verify: bool = False) -> Replay:
        """Read a session as it was after record `at` (None: the last), by its id or from a journal anywhere.

        Raises:
            ReplayMismatch: with `verify`, at the first record that differs from what the core computes.
            JournalError: the journal can't be read.
            UsageError: there is no such session or record.
        """
        return replay(self._place(source), at=at, verify=verify, sealer=self._reader())

    def end(self, session_id: str) -> list[Record]:
        """The newest records of a long session of ours, read only from the end of its journal, without checking or
        folding what comes before. Empty for any other session, because reading it whole is as fast, and for a session
        that is not here."""
        try:
            return sealed_end(self.path_of(session_id) / FILE, self._reader(), _LONG, _END)
        except (OSError, UsageError):
            return []

    def begun_with(self, once: str, who: str, since: datetime, until: datetime) -> str | None:
        """The session begun between two times with the message that `who` sent under the name `once`; None if there is none
        here."""
        first, last = new_session(since)[:_TIMED], new_session(until)[:_TIMED]
        names = [path.name for path in self.folder.glob("*") if first <= path.name[:_TIMED] <= last]

        # The oldest is the one: its forks begin with the same message.
        for name in sorted(names):
            with suppress(OSError, JournalError):
                begin = JournalEnds.of(self.folder / name / FILE, self._reader()).first
                said = begin[-1].content if begin else None
                if isinstance(said, Say) and said.once == once and said.who == who:
                    return name
        return None

    def last_record(self, session_id: str) -> int:
        """The number of a session's last record, read only from the end of its journal; 0 if that can't be read."""
        return last_record(self.folder / session_id)

    def statements(self, only: str | None = None) -> Iterator[NewStatement]:
        """The statements that every session brought, or only the session `only`. Unreadable ones are left out and
        logged."""
        sealer = self._reader()
        for path in sorted(self.folder.glob(f"{only or '*'}/{FILE}")):
            try:
                contents = read_journal(path, sealer)
                blobs = partial(read_blob, path.parent)
                statements = [*statements_in_journal(contents.records, blobs, foreign=bool(contents.foreign))]
            except (JournalError, ReplayMismatch, OSError) as error:
                _LOG.warning("not remembered: %s: %s", path, error)
                continue
            except Exception:  # one journal that we can't fold must not lose the memory of all others
                _LOG.exception("not remembered: %s", path)
                continue

            yield from statements

    def _place(self, source: str | Path) -> Path:
        return source if isinstance(source, Path) else self.path_of(source)

    # --- changes to a whole session --------------------------------------------------------------

    def rename(self, session_id: str, title: str) -> str:
        """Give a session a name, or remove it with an empty one; it is then listed by its first message. Returns the
        name.

        Raises:
            UsageError: there is no such session, or the name is too long.
            JournalUnwritable: it can't be stored.
        """
        directory, line = self.path_of(session_id), title_of(title)
        self._write_about(directory, replace(read_about(directory), title=line))
        return line

    def pin(self, session_id: str, pinned: bool) -> None:
        """Keep a session at the top of the list and exempt from retention, or no longer do so.

        Raises:
            UsageError: there is no such session.
            JournalUnwritable: it can't be stored.
        """
        directory = self.path_of(session_id)
        self._write_about(directory, replace(read_about(directory), pinned=pinned))

    def _write_about(self, directory: Path, about: About) -> None:
        write_about(directory, about)
        self._journals.keep_beside(directory, ABOUT)
        self.tell(directory.name)

    def delete(self, session_id: str) -> Deleted:
        """Move a session to the trash.

        Raises:
            UsageError: there is no such session.
            JournalLocked: it is open elsewhere.
            JournalUnwritable: it can't be moved.
        """
        self._make_up(session_id)
        directory = self.path_of(session_id)
        self.tell(directory.name, gone=True)
        done = self.trash.put(session_id, self._clock.now())
        if self.index is not None:
            self.index.forget([session_id])
        return done

    def _make_up(self, session_id: str) -> None:
        """Give a session whose journal is missing an empty one: with it, it can be deleted like any other."""
        stamp = dict(stamps(self.folder)).get(session_id)
        if stamp is not None and stamp.size < 0:
            with suppress(OSError):
                (self.folder / session_id / FILE).touch(mode=0o600, exist_ok=False)

    def deleted(self) -> list[tuple[Deleted, SessionInfo]]:
        """The sessions in the trash, newest first; unreadable ones are listed without a title."""
        sealer = self._reader()
        return [(one, info_of(one.directory, one.id, sealer)) for one in self.trash.all()]

    def take_back(self, session_id: str) -> Path:
        """Move a session back from the trash; it is byte for byte what it was.

        Raises:
            UsageError: it is not in the trash, or another session has its id.
            SessionDeleted: its permanent deletion has begun.
            JournalError: it can't be moved, or the store does not say whether it still has it.
        """
        if self._journals.is_deleted(session_id):
            raise SessionDeleted(session_id)
        directory = self.trash.take_back(session_id)
        self.tell(session_id)
        return directory

    def purge(self, session_id: str) -> None:
        """Permanently remove a session that is in the trash, here and in the shared store, with its words in the index.

        If it is cut off, calling it again continues.

        Raises:
            UsageError: it is not in the trash, or something is mounted in it.
            JournalError: a part of it can't be removed, here or elsewhere.
        """
        self._purge_elsewhere(session_id, self.trash.of(session_id).directory)
        self.trash.purge(session_id)
        UndistilledSessions(self.data).remove(session_id)
        if self.index is not None:
            self.index.forget([session_id], scrub=True)
        with suppress(StoreUnavailable):  # it is then checked once more
            self._journals.purged(session_id)

    def _purge_elsewhere(self, session: str, directory: Path) -> None:
        self._journals.purge(session, directory)
        if self.others is not None:
            self.others.purged(session)

    def left_over(self) -> list[str]:
        """The permanently deleted sessions that are still here: deleted by another host, or by this one but cut off.
        They are moved to the trash. Deletions that were cut off elsewhere in the store are finished.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        left = dict.fromkeys(self._journals.unfinished())
        for session in list(left):
            if not self.holds(session):
                self._purge_elsewhere(session, self.folder / session)
                self._journals.purged(session)
                del left[session]

        deleted_elsewhere = self.others.deleted() if self.others is not None else ()
        for session in deleted_elsewhere:
            # What a host tells is not enough to delete anything: the store of journals must say so, too.
            if (self.folder / session / FILE).is_file() and self._journals.is_deleted(session):
                left[session] = None
        return [session for session in left if self._is_in_trash(session)]

    def _is_in_trash(self, session: str) -> bool:
        """Whether a session that was deleted elsewhere is in the trash now; one that is open here is not moved yet."""
        if self.trash.find(session) is None:
            try:
                self.trash.put(session, self._clock.now())
            except JournalLocked:
                return False
        return True

    def export(self, session_id: str, out: BinaryIO) -> int:
        """Write a session, which may be running, as one archive. Returns how many of its files were left out.

        Raises:
            UsageError: there is no such session.
            JournalError: it can't be read, or the archive can't be written.
        """
        return export_session(self.path_of(session_id), out, self._versions)

    def import_session(self, source: Path, *, called: str = "") -> Imported:
        """Import a session from an archive, or from a session's directory elsewhere. `called`: how messages refer to
        the source.

        Raises:
            UsageError: it holds no session, or one that exists here already, or is in the trash.
            SessionDeleted: it was deleted for good from a store that several hosts share.
            JournalError: its journal can't be read, or the session can't be stored.
        """
        imported = import_session(
            self.folder, source, self.sealer(), self._versions, called=called or str(source)
        )

        try:
            self._journals.publish(self.folder / imported.session)
        except SessionDeleted:
            self.trash.put(imported.session, self._clock.now())
            self.trash.purge(imported.session)
            raise
        self.tell(imported.session)
        return imported

    # --- searching --------------------------------------------------------------------------------

    def texts(self, query: str, limit: int) -> TextHits:
        """Matches of all words of `query` in the texts of the sessions on this host."""
        if self.index is None:
            return TextHits()
        behind = self.index.update(self.folder, most=_SEARCHING)
        return TextHits(tuple(self.index.search(query, limit=limit)), behind)

    def search(
        self,
        query: str,
        limit: int,
        running: Mapping[str, SessionStatus] | None = None,
        elsewhere: Sequence[TextHits] = (),
    ) -> SearchResult:
        """Sessions with all words of `query` in their title or in one text, most recently changed first.

        Titles match any part of a word, texts only the beginnings of words. `running`: as for `sessions`. `elsewhere`:
        the matches of other hosts.
        """
        words = query.replace('"', " ").casefold().split()
        hosts = [self.texts(query, limit), *elsewhere]
        behind = sum(host.behind for host in hosts)

        # A host that ran a session earlier has an older copy of it, so the newest hit counts.
        oldest_first = sorted((hit for host in hosts for hit in host.hits), key=_newness)
        hits = {hit.session: hit for hit in oldest_first}

        rows: list[tuple[SessionInfo, SearchHit | None]] = []
        for info in self.sessions(running):
            title = f"{info.title} {info.id}".casefold()
            if info.id in hits or all(word in title for word in words):
                rows.append((info, hits.get(info.id)))
        return SearchResult(tuple(rows[:limit]), behind)

    # --- copies ---------------------------------------------------------------------------------

    def fork(self, source: str | Path, at: int | None = None, *, run: bool = False) -> MadeFork:
        """Make a session that shares records 1…`at` (None: all) of a stored one, which may be running. Blocks.

        Work without an outcome at `at` is not carried out, unless `run` is set: then it is treated as after a crash.
        `source`: a session's id, or a journal anywhere.

        Raises:
            UsageError: there is no such session or record.
            ForeignSession: this installation did not make it.
            JournalError: the session is damaged before `at`, or the new one can't be stored.
        """
        place = self._place(source)
        now = self._clock.now()
        forked = fork(
            self.folder,
            place,
            at,
            session=new_session(now),
            now=now,
            run=run,
            versions=self._versions,
            sealer=self.sealer(),
        )

        self._journals.publish(forked.directory)
        self._note_source(forked.directory, place, forked.at)
        self.tell(forked.directory.name)
        return forked

    def _note_source(self, made: Path, place: Path, at: int) -> None:
        """Note the source of a copy, if that is one of these sessions; lists show the copy below it."""
        origin = place if place.is_dir() else place.parent
        if origin.parent.resolve() == self.folder.resolve():
            self._write_about(made, _branch(origin, at))

    def adopt(self, source: str | Path, at: int | None, terms: Terms) -> Adopted:
        """Make our own session from records 1…`at` (None: all) of a session that another installation made. Blocks.

        `source`: a session's id, or a journal anywhere.

        Raises:
            UsageError: there is no such session or record.
            JournalError: the session is damaged before `at`, or the new one can't be stored.
        """
        place, now = self._place(source), self._clock.now()
        made = adopt(
            self.folder, place, at,
            session=new_session(now), now=now, terms=terms, versions=self._versions, sealer=self.sealer(),
        )  # fmt: skip
        self._journals.publish(made.directory)
        self.tell(made.directory.name)
        return made

    # --- versions of the files that agents work on ---------------------------------------------

    def versions_in(self, session_id: str) -> list[KeptVersion]:
        """The kept versions of a session's files, in order; a version that did not change is not repeated.

        Raises:
            UsageError: there is no such session.
            JournalError: its journal can't be read.
        """
        kept: list[KeptVersion] = []
        for record in versions_of(read_journal(self.path_of(session_id)).records):
            calls: tuple[int, ...]
            match record.content:
                case Result(function=what, version=version) as result:
                    calls = tuple(sorted({result.call, *result.beside}))
                case TakeOver(version=version) as taken:
                    what = f"the copy of {taken.node}"
                    calls = tuple(sorted({taken.call, *taken.beside}))
                case Restore(OP=what, version=version):
                    calls = ()
                case _:
                    continue

            if not kept or kept[-1].version != version:
                kept.append(KeptVersion(record.n, record.at, record.agent, what, version, calls))
        return kept

    def compare(self, session_id: str, old: str, new: str | None = None) -> str:
        """The difference between two versions of a session's files, as a unified diff; None: the newest.

        A version is given by the beginning of its id, or by a record's number.

        Raises:
            UsageError: there is no such session or version.
            ForeignSession: this installation did not make it.
            JournalError: its journal can't be read.
            WorkspaceError: the versions can't be read.
        """
        directory = self.path_of(session_id)
        read = read_journal(directory, self._reader())
        if read.foreign:
            raise ForeignSession(session_id, read.foreign)
        named = versions_of(read.records)
        last = new or (named[-1].text("version") if named else old)
        wanted = [find_version(read.records, one) for one in (old, last)]
        return self._kept().changes(directory / STORE, *wanted)

    def browser(
        self, directory: Path, workspace: str, *, overlay: Path | None = None, foreign: bool = False
    ) -> FileBrowser:
        """A browser for the files of the session in `directory`.

        `workspace`: as its journal says; `overlay`: what agents see instead, if that differs; `foreign`: the versions
        come from another installation and must not be read.
        """
        if workspace != "scratch":
            why = (
                f"This session works in {workspace}. No versions of that directory are kept, so only its "
                "current files can be shown. Changes by agents are under Review."
            )
            return FileBrowser(directory, overlay or Path(workspace), None, why)

        own = directory / "workspace"
        if foreign:
            why = (
                "Another installation made the versions of these files, so they are not read. Adopt "
                "the session to get its files."
            )
            return FileBrowser(directory, own, None, why)
        if self._versions is None:
            why = "Without git, no versions of its files are kept. Install git to keep versions from now on."
            return FileBrowser(directory, own, None, why)
        return FileBrowser(directory, own, self._versions)

    async def restore(self, session_id: str, version: str, path: str = "") -> Record:
        """Restore a session's files, or the one at `path`, to a version, and record it.

        Raises:
            UsageError: there is no such session or version, or it works in a directory of the user's.
            ForeignSession: this installation did not make it.
            JournalLocked: it is open elsewhere.
            WorkspaceError: it can't be restored.
        """
        found = find_version(read_journal(self.path_of(session_id)).records, version)
        versions = self._kept()
        return await restore_at_rest(*self.open(session_id), versions, found, self._clock.now(), path)

    def _kept(self) -> Versions:
        if self._versions is None:
            raise IactError("git is not installed, and with it no versions of workspaces are kept.")
        return self._versions

    # --- pending changes in a directory of the user's --------------------------------------------

    def waiting(self, session_id: str) -> list[PendingRow] | None:
        """The pending changes as the journal says; None while some are being applied or dropped.

        Raises:
            UsageError: there is no such session, or it has no overlay of a directory.
            JournalError: its journal can't be read.
        """
        tree = self.read(session_id).tree
        if not tree.live.overlay:
            raise UsageError(NO_OVERLAY)
        return rows(tree.pending, Path(tree.workspace)) if tree.live.intended is None else None


def _newness(hit: SearchHit) -> int:
    return hit.n


def _branch(origin: Path, at: int) -> About:
    """Where a copy branches off. A copy of a fork without new messages branches off that fork's source."""
    about = read_about(origin)
    if about.source and about.at < at:
        own = read_journal(origin).records[about.at : at]
        if not any(isinstance(record.content, Say) for record in own):
            return About(source=about.source, at=about.at)
    return About(source=origin.name, at=at)
