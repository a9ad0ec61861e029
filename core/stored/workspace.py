"""The files of one session, the versions kept of them (one after each call that wrote), and copies of them.

A version's id is in the record of the call's result; if no version could be kept, the record says `unkept`. Versions
are stored next to the workspace, in the session's directory, where nothing that works in the workspace can reach them.
A directory of the user's own has no versions: it belongs to the user, and the gate decides how much may be risked
there.

If other hosts share the session, a version is stored for them before the record that names it. A host that takes the
session over restores its workspace from the newest version.

A copy is a folder next to the workspace in which one step of a race works. Only its versions outlast it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from iact.core.blocking import to_its_end
from iact.core.errors import UsageError, WorkspaceError
from iact.core.journal.file import Contents, Journal
from iact.core.journal.segments import SegmentWriter
from iact.core.ports import Taken, Versions
from iact.core.records.calls import Result
from iact.core.records.control import Restore
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record, timestamp
from iact.core.stored.fork import STORE
from iact.core.tree.apply import read_tree
from iact.core.views.review_noise import NoiseOf

COPIES: Final = "copies"
"""The name of the folder for copies in a session's directory."""
_Found = TypeVar("_Found")


CHANGED: Final = 200
"""The most paths that are named of those that changed from one version to the next."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of the files. `id`: empty if no versions are kept. `changed`: the paths by which it differs from the one
    before, as far as that was asked for and is known; without what tools keep beside the work."""

    id: str
    changed: tuple[str, ...] = ()


NO_VERSION: Final = NewVersion("")


class Workspace:
    """The files of one session. `versions`: None if none are kept. `segments`: set if other hosts share the session."""

    def __init__(
        self, folder: Path, directory: Path, versions: Versions | None, segments: SegmentWriter | None = None
    ) -> None:
        self.folder: Final = folder
        self._store: Final = directory / STORE
        self._copies: Final = directory / COPIES
        self._versions = versions
        self._segments = segments
        self._shared = ""
        """The newest version that is available to other hosts."""
        self._using = asyncio.Lock()
        self._newest = ""
        """The version that the files had last; empty if it is not known."""
        self._asked = 0
        """How often a version was requested."""
        self._kept = 0, NO_VERSION
        """The number of requests that the newest version covers, and that version."""

    async def keep(self, *, since: str | None = None) -> NewVersion:
        """Keep a version of the current files.

        One version serves all requests made before it was begun. `since`: the newest version that the session knows, if
        it wants to know which paths changed.

        Raises:
            WorkspaceError: it could not be kept.
        """
        if self._versions is None:
            return NO_VERSION
        self._asked += 1
        asked, versions = self._asked, self._versions
        async with self._using:
            if self._kept[0] < asked:
                until = self._asked
                version = await to_its_end(lambda: self._keep_now(versions, since))
                self._kept = until, version
            return self._kept[1]

    def _keep_now(self, versions: Versions, since: str | None) -> NewVersion:
        """Keep a version of the current files. Blocks."""
        is_first = not os.path.lexists(self._store)
        version = self._share(versions.keep(self.folder, self._store))
        before = self._newest or since
        self._newest = version
        is_known = bool(before) or is_first
        if since is None or not is_known or before == version:
            return NewVersion(version)

        try:
            paths = self._differences(versions, before or "", version)
        except WorkspaceError:
            # The one before was never copied here.
            return NewVersion(version)
        noise = NoiseOf(self.folder)
        changed = (path for path in paths if not noise.is_beside_work(path))
        return NewVersion(version, tuple(islice(changed, CHANGED)))

    def _differences(self, versions: Versions, before: str, version: str) -> list[str]:
        """The paths by which a version differs from another, or from nothing if that is empty. Blocks."""
        if not before:
            return [file.path for file in versions.files(self._store, version) if file.type != "folder"]
        [steps] = versions.steps(self._store, [before, version])
        return [step.path for step in steps]

    def _share(self, version: str) -> str:
        """Make a version available to other hosts, before it is named. Blocks.

        Raises:
            JournalUnwritable: the store does not answer.
        """
        if self._segments is not None and self._versions is not None and version not in ("", self._shared):
            known = [self._shared] if self._shared else []
            self._segments.put_version(version, self._versions.pack(self._store, [version], known))
            self._shared = version
        return version

    async def fetch(self, newest: str) -> None:
        """Fetch all versions that other hosts made, and restore the files of the `newest`.

        Raises:
            WorkspaceError: the files can't be restored.
            StoreUnavailable: the store does not answer.
        """
        versions, segments = self._needed(), self._segments
        assert segments is not None

        def fetch() -> None:
            for one in versions.missing(self._store, segments.versions()):
                pack = segments.version(one)
                if pack is not None:
                    versions.unpack(self._store, pack)
            versions.restore(self.folder, self._store, newest)

        await self._in_turn(fetch)
        self._shared = self._newest = newest

    async def restore(self, version: str, path: str = "") -> None:
        """Restore the files of a version, or the one at `path`.

        Raises:
            WorkspaceError: there are no versions, or the files can't be restored.
        """
        versions = self._needed()
        async with self._using:
            self._kept = 0, NO_VERSION
            self._newest = ""
            await to_its_end(partial(versions.restore, self.folder, self._store, version, path=path))
            self._newest = version

    async def with_file(self, path: str, version: str) -> str:
        """Keep a version of the current files in which the one at `path` is as it was in `version`; returns its id.

        The files stay as they are until that version is restored.

        Raises:
            WorkspaceError: there are no versions, the file can't be restored, or it is as it was.
        """
        versions = self._needed()
        return await self._in_turn(
            lambda: self._share(versions.with_file(self.folder, self._store, path, version))
        )

    # --- copies ---------------------------------------------------------------------------------

    def copy(self, name: str) -> Path:
        """Where the copy with this name is, if it exists."""
        return self._copies / name

    async def make_copy(self, copy: Path, base: str = "") -> str:
        """Make a copy of the current files, or of the version `base`. Returns the version.

        Raises:
            WorkspaceError: it can't be made, or would be incomplete.
        """
        versions = self._needed()

        def make() -> str:
            version = base or self._share(versions.keep(self.folder, self._store, whole=True))
            try:
                _make_like(copy, self.folder)
            except OSError as error:
                raise WorkspaceError(f"No copy of the workspace can be made ({error.strerror}).") from error
            versions.restore(copy, self._store, version)
            return version

        return await self._in_turn(make)

    async def keep_copy(self, copy: Path) -> str:
        """Keep a version of the current files in a copy.

        Raises:
            WorkspaceError: not all files can be kept.
        """
        versions = self._needed()
        return await self._in_turn(lambda: self._share(versions.keep(copy, self._store, whole=True)))

    async def take_over(self, base: str, version: str) -> Taken:
        """Apply to the workspace what was changed in a copy, from `base` to `version`.

        Raises:
            WorkspaceError: it can't be applied.
        """
        versions = self._needed()

        def take_over() -> Taken:
            taken = versions.take_over(self.folder, self._store, base, version)
            self._share(taken.version)
            self._newest = taken.version or self._newest
            return taken

        return await self._in_turn(take_over)

    async def remove_copy(self, copy: Path) -> None:
        """Remove a copy, if it exists."""

        def remove() -> None:
            shutil.rmtree(copy, ignore_errors=True)
            if self._versions is not None:
                self._versions.forget(copy, self._store)

        await self._in_turn(remove)

    async def remove_copies(self) -> None:
        """Remove all copies."""
        await self._in_turn(lambda: shutil.rmtree(self._copies, ignore_errors=True))

    def _needed(self) -> Versions:
        if self._versions is None:
            raise WorkspaceError("No versions of this workspace are kept.")
        return self._versions

    async def _in_turn(self, work: Callable[[], _Found]) -> _Found:
        """Do blocking work on the store, which allows only one job at a time."""
        async with self._using:
            return await to_its_end(work)


def _make_like(folder: Path, workspace: Path) -> None:
    """Make an empty folder with the owner and mode of the workspace; its old content is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir()
    status = workspace.stat()
    if os.geteuid() == 0:
        os.chown(folder, status.st_uid, status.st_gid)
    folder.chmod(stat.S_IMODE(status.st_mode))


def versions_of(records: Iterable[Record]) -> list[Record]:
    """The records that name a version, in order; several may name the same."""
    return [record for record in records if version_of(record)]


def version_of(record: Record) -> str:
    """The version of the workspace that a record names; empty if it names none, or that of a copy."""
    match record.content:
        case Result(copied=False) | Restore() | TakeOver() as content:
            return content.version
    return ""


def is_unkept(record: Record) -> bool:
    """Whether a record is the result of a call that may have written, and whose files could not be kept."""
    return isinstance(record.content, Result) and record.content.unkept and not record.content.copied


def find_version(records: Iterable[Record], wanted: str) -> str:
    """The version that a person means: by the beginning of its id, or by the number of a record after which it was
    current.

    Raises:
        UsageError: there is none, there are several matches, or the files were not kept at that record.
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
    journal: Journal, contents: Contents, versions: Versions, version: str, now: datetime, path: str = ""
) -> Record:
    """Restore the files of a session whose journal was opened for this, or the one at `path`, and record it. The
    journal is closed at the end.

    Raises:
        UsageError: it works in a directory of the user's.
        WorkspaceError: there is no such version, or it can't be restored.
    """
    directory = journal.directory
    try:
        tree = read_tree(contents.records, journal.blob, strict=False)
        if tree.workspace != "scratch":
            raise UsageError(
                "This session works in a directory of the user, and no versions of that directory are kept."
            )
        workspace = Workspace(directory / "workspace", directory, versions, journal.segments)
        if path:
            if journal.moved:
                await workspace.fetch(version_of(versions_of(contents.records)[-1]))
            version = await workspace.with_file(path, version)

        restored = Restore(by="user", version=version, path=path)
        record = journal.append(restored, "/", tree.root.step + 1, timestamp(now))
        await journal.durable(record.n)

        if path or not journal.moved:
            await workspace.restore(version, path)
        else:
            await workspace.fetch(version)
        return record
    finally:
        await journal.close()
