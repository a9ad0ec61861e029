"""Reads versions of a workspace for display: lists of files, contents, and what changed when.

Nothing is checked out. git lists trees and prints objects; names of paths follow from how `sandbox.workspace.versions`
stores them. Modules wrote all of it, so anything that displays it must treat it as untrusted.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.core.ports import ChangeKind, FileType, KeptFile, PathStep
from iact.sandbox.live import lines
from iact.sandbox.live.patch import LARGEST, lines_of, text_of
from iact.sandbox.workspace.git import check_objects, run_git

EMPTY: Final = b"%empty"
"""Marks an empty folder; a real name never contains a bare percent sign."""

_ID: Final = re.compile(r"[0-9a-f]{40}")
_LISTED: Final = 64 << 20
"""The most bytes of a list."""
_AT_ONCE: Final = 16 << 20
"""The most bytes of contents in memory at a time, unless a single one is larger."""
_MANY: Final = 500
"""The most contents that are read at a time."""
_TYPES: Final[dict[bytes, FileType]] = {b"100644": "file", b"100755": "file", b"120000": "link"}
_KINDS: Final[dict[bytes, ChangeKind]] = {b"A": "add", b"D": "delete", b"M": "modify", b"T": "modify"}


def files(store: Path, version: str) -> list[KeptFile]:
    """The files of a version, by path.

    Raises:
        WorkspaceError: there is no such version.
    """
    _expect(version)
    listed = run_git(check_objects(store), "ls-tree", "-r", "-l", "-z", "--full-tree", version, most=_LISTED)
    found = []
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, identity, size = about.split()
        kind: FileType = "folder" if _empty(path) else _TYPES.get(mode, "other")
        found.append(KeptFile(_written(path), kind, int(size), identity.decode()))
    return found


def contents(store: Path, wanted: Sequence[KeptFile]) -> Iterator[bytes]:
    """The contents of files, in order.

    Raises:
        WorkspaceError: part of it was lost.
    """
    for group in _groups(wanted):
        for one in group:
            _expect(one.id)
        given = "".join(f"{one.id}\n" for one in group).encode()
        # Each comes with its id, type and size, which take less than 80 bytes.
        most = sum(one.size + 80 for one in group)
        answer, place = run_git(check_objects(store), "cat-file", "--batch", given=given, most=most), 0
        for one in group:
            end = answer.find(b"\n", place)
            about = answer[place:end].split(b" ")
            if end < 0 or about[1:2] != [b"blob"]:
                raise WorkspaceError(
                    f"The content of {one.path!r} in that version was lost, or was never copied here."
                )
            place = end + 1 + int(about[2]) + 1
            yield answer[end + 1 : place - 1]


def steps(store: Path, versions: Sequence[str]) -> list[list[PathStep]]:
    """What changed from each version to the next, by path.

    Raises:
        WorkspaceError: there is no such version.
    """
    for version in versions:
        _expect(version)
    pairs = [*itertools.pairwise(versions)]
    if not pairs:
        return []
    given = "".join(f"{new} {old}\n" for old, new in pairs).encode()
    options = ("--stdin", "-r", "-z", "--no-renames", "--always")
    told = run_git(check_objects(store), "diff-tree", *options, given=given, most=_LISTED)
    found: list[list[PathStep]] = []
    words = iter(told.split(b"\0")[:-1])
    for word in words:
        if word.startswith(b":"):
            kind, path = _KINDS.get(word.rsplit(b" ", 1)[1], "modify"), next(words)
            if not _empty(path):
                found[-1].append(PathStep(_written(path), kind))
        else:  # the id of the version whose entries follow
            found.append([])
    if len(found) != len(pairs):
        raise WorkspaceError(
            "The changes between the versions can't be determined, because part of the versions was lost."
        )
    return found


def patch(store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
    """Hunks of a unified diff, or a sentence where a diff shows nothing.

    Raises:
        WorkspaceError: part of it was lost.
    """
    both = [one for one in (old, new) if one is not None]
    sizes = ", ".join(
        f"{one.size:,} bytes {when}" for one, when in ((old, "before"), (new, "after")) if one is not None
    )
    if any(one.size > LARGEST for one in both):
        return f"Too large to show: {sizes}."
    held = dict(zip(both, contents(store, both), strict=True))
    before, after = (b"" if one is None else held[one] for one in (old, new))
    texts = [text_of(content) for content in (before, after)]
    if texts[0] is None or texts[1] is None:
        return f"Binary: {sizes}."
    return "".join(f"{line}\n" for line in lines.unified(lines_of(texts[0]), lines_of(texts[1])))


def _groups(wanted: Sequence[KeptFile]) -> Iterator[list[KeptFile]]:
    group: list[KeptFile] = []
    size = 0
    for one in wanted:
        if group and (size + one.size > _AT_ONCE or len(group) >= _MANY):
            yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group


def _expect(identity: str) -> None:
    if not _ID.fullmatch(identity):
        raise WorkspaceError(f"There is no version {identity[:40]!r} of this workspace.")


def _empty(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == EMPTY


def _written(path: bytes) -> str:
    """The written form of a stored path. For the mark of an empty folder, the folder's path."""
    inner = path.rpartition(b"/")[0] if _empty(path) else path
    return path_names.encode(os.fsdecode(unquote_to_bytes(inner)))
