"""The files of one session, and the versions that are kept of them: one after each call that wrote.

A version's id stands in the record of the call's result; where none could be kept, the record says `unkept`. What is kept lies beside the workspace, in the
session's directory, where nothing that works in the workspace can reach it. A directory of the user's own
has no versions: it is theirs, and how much is at stake there is the gate's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from core.errors import UsageError, WorkspaceError
from core.journal.file import Journal
from core.journal.seal import Sealer
from core.ports import Versions
from core.records.calls import Result
from core.records.control import Restore
from core.records.record import Record, timestamp
from core.session.fork import STORE
from core.tree.apply import read_tree


class Workspace:
    """The files of one session. `versions`: None if none are kept."""

    def __init__(self, folder: Path, directory: Path, versions: Versions | None) -> None:
        self.folder: Final = folder
        self._store: Final = directory / STORE
        self._versions = versions
        self._using = asyncio.Lock()
        self._asked = 0
        """How often a version was asked for."""
        self._kept = 0, ""
        """The newest version, and up to which of those."""

    async def keep(self) -> str:
        """Keep what stands there now; gives the version's id, empty if none are kept.

        One version is good for all who asked before it was begun.

        Raises:
            WorkspaceError: it could not be kept.
        """
        if self._versions is None:
            return ""
        self._asked += 1
        asked = self._asked
        async with self._using:
            if self._kept[0] < asked:
                until = self._asked
                version = await asyncio.to_thread(self._versions.keep, self.folder, self._store)
                self._kept = until, version
            return self._kept[1]

    async def restore(self, version: str) -> None:
        """Make the files what they were.

        Raises:
            WorkspaceError: there are no versions, or it can't be done.
        """
        if self._versions is None:
            raise WorkspaceError("No versions are kept of this workspace.")
        async with self._using:
            self._kept = 0, ""
            await asyncio.to_thread(self._versions.restore, self.folder, self._store, version)


def versions_of(records: Iterable[Record]) -> list[Record]:
    """The records that name a version, in order; several may name the same."""
    return [record for record in records if version_of(record)]


def version_of(record: Record) -> str:
    """The version of the workspace that a record names; empty if it names none."""
    content = record.content
    return content.version if isinstance(content, Result | Restore) else ""


def is_unkept(record: Record) -> bool:
    """Whether it is the result of a call that may have written, behind which the files could not be kept."""
    return isinstance(record.content, Result) and record.content.unkept


def find_version(records: Iterable[Record], wanted: str) -> str:
    """The version that a person means: the beginning of its id, or the number of a record, as it was behind that.

    Raises:
        UsageError: there is none, there are several, or the files were not kept at that record.
    """
    written = [record for record in records if version_of(record) or is_unkept(record)]
    named = versions_of(written)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 8:
        before = [record for record in written if record.n <= int(wanted)]
        if not before:
            raise UsageError(f"No version of the workspace was kept up to record {wanted}.")
        if not version_of(before[-1]):
            kept = [str(record.n) for record in before if version_of(record)]
            raise UsageError(
                f"The files were not kept at record {before[-1].n}, which wrote last; "
                + (f"the last version before is that of record {kept[-1]}." if kept else "none was before.")
            )
        return version_of(before[-1])
    found = {one for one in map(version_of, named) if one.startswith(wanted)}
    if len(found) != 1:
        what = "several versions begin" if found else "no version begins"
        raise UsageError(f"In this session {what} with {wanted[:40]!r}.")
    return found.pop()


async def restore_at_rest(
    directory: Path, versions: Versions, version: str, now: datetime, sealer: Sealer
) -> Record:
    """Restore the files of a session that nobody has open, and record it.

    Raises:
        UsageError: it works in a directory of the user's.
        ForeignSession: it is not the sealer's.
        JournalLocked: somebody has it open.
        WorkspaceError: there is no such version, or it can't be restored.
    """
    journal, contents = Journal.open(directory, sealer)
    try:
        tree = read_tree(contents.records, journal.blob, strict=False)
        if tree.workspace != "scratch":
            raise UsageError(
                "This session works in a directory of the user's, of which no versions are kept."
            )
        restored = Restore(by="user", version=version)
        record = journal.append(restored, "/", tree.root.step + 1, timestamp(now))
        await journal.durable(record.n)
        workspace = Workspace(directory / "workspace", directory, versions)
        await workspace.restore(version)
        return record
    finally:
        await journal.close()
