"""The files of a session as people browse them: what exists now, what existed at a record, and what changed when.

The present is the folder itself, walked by descriptor: modules may write to it at the same time and may have left
anything there, so no link is followed and only files are opened. The past consists of the kept versions
(`core.stored.workspace`). A directory of the user's has no versions, only a present; what agents would change in it is
reviewed separately.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.core.errors import UsageError, WorkspaceError
from iact.core.ports import FileType, KeptFile, PathStep, Versions
from iact.core.records.calls import Result
from iact.core.records.control import Restore
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record
from iact.core.stored.fork import STORE
from iact.core.stored.workspace import is_unkept, version_of

MOST: Final = 20_000
"""How many entries of a folder are listed; a version holds no more either."""
_PIECE: Final = 1 << 18
_DEEPEST: Final = 60


@dataclass(frozen=True, slots=True)
class Files:
    """What is, or was, in the workspace.

    `n`: the record of the version shown, or of the newest version if this is the current folder; 0 if there is none.
    `more`: how many further entries are not listed. `unkept`: the record of a later call that wrote but whose version
    could not be kept; 0 if there is none.
    """

    files: Sequence[KeptFile]
    n: int
    more: int = 0
    unkept: int = 0


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What one call, or a person who restored a version, changed between the previous version and the one of record
    `n`."""

    n: int
    at: str
    agent: str
    what: str
    paths: Sequence[PathStep]


class FileBrowser:
    """The files of one session. All methods block.

    `directory`: the session's; `folder`: its current files; `versions`: reads the kept versions, or None if nothing can
    read them or it is not known who kept them; `why`: the reason, for people.
    """

    def __init__(self, directory: Path, folder: Path, versions: Versions | None, why: str = "") -> None:
        self.folder: Final = folder
        self.why: Final = why
        self.name: Final = directory.name
        self.own: Final = folder.parent == directory
        self._store: Final = directory / STORE
        self._versions = versions
        self._lists: dict[str, Sequence[KeptFile]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._steps: dict[tuple[str, str], Sequence[PathStep]] = {}

    # --- contents -----------------------------------------------------------------------------------

    def look(self, records: Sequence[Record], *, now: bool) -> Files:
        """What existed after the last of `records`; `now`: what exists now.

        Raises:
            UsageError: it is not known what existed; the message says why.
            WorkspaceError: the versions or the folder can't be read.
        """
        n, version, unkept = _newest(records)
        if now:
            found, more = _walked(self.folder)
            return Files(found, n, more, unkept)
        if not version:
            self._reader()
            return Files((), 0, unkept=unkept)
        return Files(self._list(version), n, unkept=unkept)

    @property
    def keeps(self) -> bool:
        """Whether the past can be shown."""
        return self._versions is not None

    def paths(self, records: Sequence[Record], *, now: bool) -> Container[str]:
        """The paths of the files that `look` returns.

        Raises:
            UsageError, WorkspaceError: as `look`.
        """
        if now:
            return _Standing(self.folder)

        _, version, _ = _newest(records)
        if version not in self._names:
            files = self._list(version) if version else ()
            while len(self._names) >= 8:
                del self._names[next(iter(self._names))]
            self._names[version] = frozenset(file.path for file in files if file.type == "file")
        return self._names[version]

    def find(self, records: Sequence[Record], path: str, *, now: bool) -> KeptFile:
        """One file.

        Raises:
            UsageError: there is no such file.
            WorkspaceError: as `look`.
        """
        file: KeptFile | None
        if now:
            file = _status(self.folder, path)
        else:
            files = self.look(records, now=False).files
            file = next((kept for kept in files if kept.path == path), None)

        if file is None:
            when = "" if now else " at that record"
            raise UsageError(f"There is no file {path[:200]!r} in the workspace{when}.")
        return file

    def content(self, file: KeptFile) -> Iterator[bytes]:
        """What a file holds, piece by piece, or where a link leads. A file with an id is read from a version, otherwise
        as it is now.

        Raises:
            WorkspaceError: it can't be read (any more).
        """
        if file.id:
            yield from self._reader().contents(self._store, [file])
        elif file.type == "file":
            yield from _pieces(self.folder, file.path)
        elif file.type == "link":
            yield _target(self.folder, file.path)

    def contents(self, files: Sequence[KeptFile]) -> Iterator[tuple[KeptFile, Iterator[bytes]]]:
        """The contents of many files, in order.

        Raises:
            WorkspaceError: as `content`; a file that has disappeared in the meantime has no content.
        """
        kept = [one for one in files if one.id]
        held = self._reader().contents(self._store, kept) if kept else iter(())
        for one in files:
            yield one, iter((next(held),)) if one.id else self.content(one)

    # --- what changed ---------------------------------------------------------------------------

    def history(self, records: Sequence[Record]) -> list[VersionChange]:
        """What changed up to the last of `records`, in order; everything in the first version counts as added then.

        Raises:
            UsageError: no versions are kept or readable; the message says why.
            WorkspaceError: they can't be read.
        """
        changing = _changing(records)
        versions = [version_of(record) for record in changing]
        if not versions:
            self._reader()  # says why no versions can be read, if so
            return []

        pairs = [*itertools.pairwise(versions)]
        self._learn([pair for pair in pairs if pair not in self._steps])
        first = [PathStep(file.path, "add") for file in self._list(versions[0]) if file.type != "folder"]
        steps: list[Sequence[PathStep]] = [first, *(self._steps[pair] for pair in pairs)]

        return [
            VersionChange(record.n, record.at, record.agent, _what(record), paths)
            for record, paths in zip(changing, steps, strict=True)
            if paths
        ]

    def patch(self, records: Sequence[Record], path: str, since: int) -> str:
        """What changed in a file from record `since` (0: before the first version) to the last of `records`.

        Hunks of a unified diff, or a sentence where a diff would be meaningless; empty if nothing changed.

        Raises:
            UsageError: the file existed at neither record, or no versions are kept.
            WorkspaceError: they can't be read.
        """
        sides = [self._at(records[:since], path), self._at(records, path)]
        if sides == [None, None]:
            raise UsageError(f"There was no file {path[:200]!r} at either of these records.")
        old, new = sides
        if old is not None and new is not None and old.id == new.id:
            return ""
        return self._reader().patch(self._store, old, new)

    def _at(self, records: Sequence[Record], path: str) -> KeptFile | None:
        _, version, _ = _newest(records)
        held = self._list(version) if version else ()
        return next((one for one in held if one.path == path and one.type != "folder"), None)

    def _list(self, version: str) -> Sequence[KeptFile]:
        if version not in self._lists:
            while len(self._lists) >= 8:
                del self._lists[next(iter(self._lists))]
            self._lists[version] = self._reader().files(self._store, version)
        return self._lists[version]

    def _learn(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Find what changed between pairs of versions. Pairs that form a chain are requested together."""
        run: list[str] = []
        for old, new in pairs:
            if run and run[-1] != old:
                self._ask(run)
                run = []
            run = run or [old]
            run.append(new)
        self._ask(run)

    def _ask(self, run: Sequence[str]) -> None:
        if run:
            told = self._reader().steps(self._store, run)
            self._steps |= dict(zip(itertools.pairwise(run), told, strict=True))

    def _reader(self) -> Versions:
        if self._versions is None:
            raise UsageError(
                self.why or "No versions of these files are kept, so only the current files can be shown."
            )
        return self._versions


# --- records ----------------------------------------------------------------------------------------


def _newest(records: Iterable[Record]) -> tuple[int, str, int]:
    """The newest version with its record, and the later record whose version could not be kept."""
    n, version, unkept = 0, "", 0
    for record in records:
        found = version_of(record)
        if found:
            n, version, unkept = record.n, found, 0
        elif is_unkept(record):
            unkept = record.n
    return n, version, unkept


def _changing(records: Iterable[Record]) -> list[Record]:
    """The records that name a different version than the record before."""
    found: list[Record] = []
    for record in records:
        version = version_of(record)
        if version and (not found or version_of(found[-1]) != version):
            found.append(record)
    return found


def _what(record: Record) -> str:
    match record.content:
        case Result(function=function):
            return function
        case TakeOver(node=node):
            return f"the copy of {node}"
        case Restore(OP=op):
            return op
    return ""


# --- the folder as it is now ------------------------------------------------------------------------


def _walked(folder: Path) -> tuple[list[KeptFile], int]:
    """The entries of a folder, by path, and how many more there are."""
    entries: list[KeptFile] = []
    more = 0
    try:
        for entry in _below(_opened(folder), "", 0):
            if len(entries) < MOST:
                entries.append(entry)
                continue

            more += 1
            if more > MOST:
                break
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise WorkspaceError(f"The workspace can't be read ({error.strerror}).") from error
    return sorted(entries, key=lambda entry: entry.path), more


def _below(folder: int, prefix: str, depth: int) -> Iterator[KeptFile]:
    """The entries below an open folder, which is closed at the end. Only empty folders are listed themselves."""
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
        if not entries and prefix:
            yield KeptFile(path_names.encode(prefix.rstrip("/")), "folder", 0, "")

        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and depth < _DEEPEST:
                    inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                    yield from _below(inner, f"{prefix}{entry.name}/", depth + 1)
                else:
                    yield _entry(f"{prefix}{entry.name}", status)
            except OSError:
                continue  # gone, or something else by now
    finally:
        os.close(folder)


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def _opened(folder: Path) -> int:
    return os.open(folder, _FOLDER)


def _entry(path: str, status: os.stat_result) -> KeptFile:
    kind: FileType = (
        "file" if stat.S_ISREG(status.st_mode)
        else "link" if stat.S_ISLNK(status.st_mode)
        else "folder" if stat.S_ISDIR(status.st_mode)
        else "other"
    )  # fmt: skip
    return KeptFile(path_names.encode(path), kind, status.st_size if kind == "file" else 0, "")


def _holder(folder: Path, path: str) -> tuple[int, str]:
    """The open folder that contains an entry, and the entry's name in it; no link is followed on the way.

    Raises:
        OSError: there is no such folder.
    """
    parts = path_names.decode(path)
    if parts is None:
        raise FileNotFoundError(path)

    here = _opened(folder)
    for part in parts[:-1]:
        try:
            below = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here, parts[-1]


def _status(folder: Path, path: str) -> KeptFile | None:
    """An entry as it is now; None if there is none."""
    try:
        here, name = _holder(folder, path)
    except OSError:
        return None

    try:
        status = os.stat(name, dir_fd=here, follow_symlinks=False)
        return _entry("/".join(path_names.decode(path) or ()), status)
    except OSError:
        return None
    finally:
        os.close(here)


class _Standing(Container[str]):
    """The paths of the files in a folder, looked up one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, path: object) -> bool:
        found = _status(self._folder, path) if isinstance(path, str) else None
        return found is not None and found.type == "file"


def _target(folder: Path, path: str) -> bytes:
    try:
        here, name = _holder(folder, path)
        try:
            return os.fsencode(os.readlink(name, dir_fd=here))
        finally:
            os.close(here)
    except OSError as error:
        raise WorkspaceError(f"The link {path[:200]!r} can't be read ({error.strerror}).") from error


def _pieces(folder: Path, path: str) -> Iterator[bytes]:
    """The content of a file, up to its length when it was opened.

    Raises:
        WorkspaceError: it can't be read.
    """
    try:
        here, name = _holder(folder, path)
        try:
            # A path that was a file a moment ago may be a pipe now: NONBLOCK keeps the open from blocking.
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        finally:
            os.close(here)

        with os.fdopen(opened, "rb") as stream:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(0, "it is no file")

            # An agent may write to it meanwhile: what is added after this is not read, so that it has an end.
            left = status.st_size
            while left > 0 and (piece := stream.read(min(_PIECE, left))):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise WorkspaceError(f"The file {path[:200]!r} can't be read ({error.strerror}).") from error
