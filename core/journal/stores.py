"""Where journals are: in one directory of this machine, or also in a store that several hosts reach."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from iact.core.errors import ForeignSession, JournalCorrupt, JournalError, SessionDeleted
from iact.core.journal.documents import write_whole
from iact.core.journal.file import (
    FILE,
    VERSIONS,
    Contents,
    Journal,
    check_format,
    read_blob,
    read_journal,
)
from iact.core.journal.parser import Parser
from iact.core.journal.purge import purge, purged, unfinished
from iact.core.journal.seal import KEY, Sealer
from iact.core.journal.segments import (
    SegmentWriter,
    clear_beside,
    folder_of,
    is_deleted,
    journal_of,
    read_segments,
)
from iact.core.journal.takeover import take_over
from iact.core.ports import Clock, ObjectStore, Versions
from iact.core.records.calls import Result
from iact.core.records.control import Restore
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record, blobs_of, timestamp
from iact.core.records.session import Epoch

SESSIONS: Final = "sessions"
"""The folder of a store that contains sessions."""
_BESIDE: Final = "beside/"
"""The part of a session's objects that holds small files next to its journal."""
_KEY_MARK: Final = "installation/key"
"""A fixed text sealed with the key: it distinguishes keys, and reveals nothing about them."""


IN_STORE: Final = "store.txt"
"""A file next to a journal that is in a store: the store's address."""


class JournalStore(Protocol):
    """The journals of all sessions, each in its own directory, by the session's id. Every method blocks."""

    def create(self, directory: Path, sealer: Sealer) -> Journal:
        """Start an empty journal.

        Raises:
            JournalUnwritable: it can't be stored.
        """
        ...

    def open(self, directory: Path, sealer: Sealer) -> tuple[Journal, Contents]:
        """Continue a stored journal, as its only writer.

        Raises:
            ForeignSession: it is not the sealer's.
            JournalLocked: another process of this machine has it open.
            JournalError: it does not exist, is damaged, or can't be reached.
        """
        ...

    def has(self, session: str) -> bool:
        """Whether a session exists elsewhere, so that it can be opened here even if nothing of it is here yet."""
        ...

    def keep_beside(self, directory: Path, name: str) -> None:
        """Store the small file `name` of a session's directory, which was changed, next to its journal.

        Raises:
            StoreUnavailable: it can't be stored now; it was changed here.
        """
        ...

    def publish(self, directory: Path) -> None:
        """Store a session that was created whole in `directory`: a fork, or an adopted or imported session.

        Raises:
            SessionDeleted: one with its id was deleted for good.
            JournalUnwritable: it can't be stored.
        """
        ...

    def purge(self, session: str, directory: Path) -> None:
        """Delete a session for good everywhere except in `directory`, or continue that.

        Raises:
            JournalError: it can't be deleted, or not all of it now; then this may be called again.
        """
        ...

    def purged(self, session: str) -> None:
        """Note that the local part is gone, too: there is nothing left to continue.

        Raises:
            StoreUnavailable: it can't be noted now.
        """
        ...

    def is_deleted(self, session: str) -> bool:
        """Whether any host deleted a session for good, so that everything of it here must be removed.

        Raises:
            StoreUnavailable: it can't be determined now.
        """
        ...

    def unfinished(self) -> list[str]:
        """Return the sessions whose deletion was interrupted, so that something of them may be left.

        Raises:
            StoreUnavailable: it can't be determined now.
        """
        ...


class LocalJournals:
    """Journals that are only in the data directory: a file and its lock."""

    def create(self, directory: Path, sealer: Sealer) -> Journal:
        """Implements `JournalStore.create`."""
        return Journal.create(directory, sealer)

    def open(self, directory: Path, sealer: Sealer) -> tuple[Journal, Contents]:
        """Implements `JournalStore.open`.

        Raises:
            JournalError: the session is in a store: the local copy may be old, and additions to it would be lost.
        """
        if address := _address_in(directory):
            raise JournalError(
                f"The session {directory.name} is in the store {address}, where other hosts may have "
                "continued it, but this program uses no store. Set IACT_STORE to that address. To "
                "continue with a copy of the records on this host, use iact journal fork "
                f"{directory.name}."
            )
        return Journal.open(directory, sealer)

    def has(self, session: str) -> bool:
        """Implements `JournalStore.has`."""
        return False

    def keep_beside(self, directory: Path, name: str) -> None:
        """Does nothing: the file is already where it belongs."""

    def publish(self, directory: Path) -> None:
        """Does nothing: the session is already where it belongs."""

    def purge(self, session: str, directory: Path) -> None:
        """Does nothing: no part of it is elsewhere.

        Raises:
            JournalError: it is in a store, where this program can't delete it.
        """
        if address := _address_in(directory):
            raise JournalError(
                f"The session {session} is also in the store {address}. This program uses no store, "
                "so the session would stay there. Set IACT_STORE to that address, then delete the "
                "session for good."
            )

    def purged(self, session: str) -> None:
        """Does nothing: no part of it was elsewhere."""

    def is_deleted(self, session: str) -> bool:
        """Returns False: what is deleted here is gone."""
        return False

    def unfinished(self) -> list[str]:
        """Returns none: an interrupted deletion is visible in the trash."""
        return []


def _address_in(directory: Path) -> str:
    """The store that contains the session in `directory`, or ""."""
    mark = directory / IN_STORE
    return mark.read_text(encoding="utf-8", errors="replace")[:500] if mark.is_file() else ""


class SharedJournals:
    """Journals in a store that other hosts reach, with a copy in the data directory.

    `versions`: keeps versions of workspaces; None if they are not kept. `claimed`: called with a session's id and epoch
    when this host begins to write its journal; raises `JournalError`.
    """

    def __init__(
        self,
        store: ObjectStore,
        host: str,
        clock: Clock,
        *,
        versions: Versions | None = None,
        claimed: Callable[[str, int], None] = lambda session, epoch: None,
    ) -> None:
        self.store = store
        self.host = host
        """The name of this host, for people."""
        self._clock = clock
        self._versions = versions
        self._claimed = claimed

    def create(self, directory: Path, sealer: Sealer) -> Journal:
        """Implements `JournalStore.create`."""
        self._claimed(directory.name, 1)
        journal = Journal.create(directory, sealer, self._writer(directory.name))
        self._mark(directory)
        return journal

    def open(self, directory: Path, sealer: Sealer) -> tuple[Journal, Contents]:
        """Implements `JournalStore.open`: takes the session over from any other host, and copies it here.

        A session that was begun here before there was a store is published first.
        """
        session = directory.name
        is_only_here = (directory / FILE).is_file() and not self.has(session)
        if is_only_here:
            if why := read_journal(directory, sealer).foreign:
                raise ForeignSession(session, why)
            self.publish(directory)

        at = timestamp(self._clock.now())
        writer = self._writer(session)
        journal, contents = take_over(directory, self.store, writer, host=self.host, at=at, sealer=sealer)
        try:
            self._claimed(session, writer.epoch)
            self._fetch_beside(directory)
        except BaseException:
            journal.abandon()
            raise

        self._mark(directory)
        return journal, contents

    def has(self, session: str) -> bool:
        """Implements `JournalStore.has`."""
        return next(self.store.names(journal_of(session)), None) is not None

    def keep_beside(self, directory: Path, name: str) -> None:
        """Implements `JournalStore.keep_beside`: creates the next version, whichever host made the one before.

        Raises:
            SessionDeleted: the session was deleted for good.
        """
        session = directory.name
        path = directory / name
        content = path.read_bytes() if path.is_file() else b""

        folder = f"{folder_of(session)}{_BESIDE}{name}/"
        number = 1 + sum(1 for _ in self.store.names(folder))
        while not self.store.create(f"{folder}{number:010}", content):
            number += 1

        # A purge that ran meanwhile may have looked before this was there.
        if is_deleted(self.store, session):
            clear_beside(self.store, session)
            raise SessionDeleted(session)

    def _fetch_beside(self, directory: Path) -> None:
        """Fetch the newest version of each such file."""
        prefix = folder_of(directory.name) + _BESIDE
        newest: dict[str, str] = {}
        # The names are in order, so the last one of a file is its newest version.
        for object_name in self.store.names(prefix):
            file = object_name.removeprefix(prefix).split("/")[0]
            newest[file] = object_name

        for file, object_name in newest.items():
            is_plain_name = file == Path(file).name and not file.startswith(".")
            if is_plain_name:
                write_whole(directory / file, self.store.get(object_name) or b"")

    def publish(self, directory: Path) -> None:
        """Implements `JournalStore.publish`."""
        contents = read_journal(directory)
        epochs = sum(isinstance(record.content, Epoch) for record in contents.records)
        writer = self._writer(directory.name, epoch=epochs)

        # What records name is there before them.
        for digest in sorted(set().union(*map(blobs_of, contents.records))):
            if (directory / "blobs" / digest).is_file():
                writer.put_blob(digest, read_blob(directory, digest))
        if self._versions is not None and (directory / VERSIONS).is_dir():
            self._publish_versions(self._versions, directory / VERSIONS, contents.records, writer)

        # Without the half-written end that a crash left.
        whole = (directory / FILE).read_bytes()[: contents.offset]
        writer.append(whole)
        self._mark(directory)

    @staticmethod
    def _publish_versions(
        versions: Versions, folder: Path, records: Sequence[Record], writer: SegmentWriter
    ) -> None:
        """Store the versions of a workspace that records name, in one pack under the name of the last one."""
        named = list(dict.fromkeys(filter(None, map(_version_in, records))))
        lost = set(versions.missing(folder, named))
        present = [version for version in named if version not in lost]
        if present:
            writer.put_version(present[-1], versions.pack(folder, present))

    def purge(self, session: str, directory: Path) -> None:
        """Implements `JournalStore.purge`. A session that was never in the store is not put there for that."""
        if self.has(session):
            purge(self.store, session)

    def purged(self, session: str) -> None:
        """Implements `JournalStore.purged`."""
        purged(self.store, session)

    def is_deleted(self, session: str) -> bool:
        """Implements `JournalStore.is_deleted`."""
        return is_deleted(self.store, session)

    def unfinished(self) -> list[str]:
        """Implements `JournalStore.unfinished`."""
        return unfinished(self.store)

    def _mark(self, directory: Path) -> None:
        """Note in the session's directory where it is, for programs that do not use the store."""
        with contextlib.suppress(OSError):
            (directory / IN_STORE).write_text(self.store.address, encoding="utf-8")

    def check_key(self, sealer: Sealer, data: Path) -> None:
        """Check that all hosts of the store seal with the same key, so that each accepts the others' sessions.

        Raises:
            JournalError: this host has another key, or the store does not answer.
        """
        mark = sealer.seal(b"the key of a shared store").encode()
        if not self.store.create(_KEY_MARK, mark) and self.store.get(_KEY_MARK) != mark:
            raise JournalError(
                f"The hosts of this store seal their sessions with a different key than {data / KEY}. "
                "Copy that file from the data directory of one of those hosts. Sessions that this "
                "host has made so far must then be adopted."
            )

    def sessions(self) -> list[str]:
        """Return the ids of all sessions that were ever in the store, in order."""
        return parts_of(self.store, SESSIONS)

    def export(self, session: str) -> bytes:
        """Return the journal's file, byte for byte as on a single machine.

        Raises:
            JournalError: it does not exist or is damaged, or the store does not answer.
        """
        return b"".join(segment.data for segment in read_segments(self.store, session))

    def _writer(self, session: str, epoch: int = 0) -> SegmentWriter:
        return SegmentWriter(self.store, session, secrets.token_hex(16), epoch=epoch)


def parts_of(store: ObjectStore, folder: str) -> list[str]:
    """Return the names directly in a folder of a store, in order, without listing everything below. Blocks.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    parts = list[str]()
    after = ""
    while (name := next(store.names(f"{folder}/", after=after), None)) is not None:
        part = name.removeprefix(f"{folder}/").split("/")[0]
        parts.append(part)

        # "0" is the sign behind "/", so this is the first name behind all that begin with "<part>/".
        after = f"{folder}/{part}0"
    return parts


def read_stored(store: ObjectStore, session: str) -> list[Record]:
    """Return the records of a session in a store. Blocks.

    Raises:
        SessionDeleted: it was deleted for good.
        JournalError: it does not exist or is damaged, or the store does not answer.
    """
    parser = Parser()
    records = list[Record]()
    for segment in read_segments(store, session):
        records += parser.feed(segment.data)

    if not records:
        raise JournalError(f"There is no session {session} in the store.")
    check_format(records[0])
    if parser.pending:
        raise JournalCorrupt(
            f"Record {len(records) + 1} of the journal of session {session} in the store is damaged.",
            n=len(records) + 1,
            offset=parser.offset,
        )
    return records


def _version_in(record: Record) -> str:
    match record.content:
        case Result() | Restore() | TakeOver() as content:
            return content.version
    return ""
