"""Snapshots of a directory, so that its states at two moments can be compared."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `content`: digest of a file, or target of a link. `changed`: the inode's last change, if wanted."""

    mode: int
    owner: tuple[int, int]
    size: int
    content: str
    links: int
    modified: int
    changed: int
    attributes: tuple[tuple[str, bytes], ...]


Snapshot = dict[str, Entry]


def snapshot(folder: Path, *, inodes: bool = False) -> Snapshot:
    """All entries of `folder`, itself included. `inodes`: include the inodes' change times, which copies don't keep."""
    return {os.path.relpath(path, folder): _entry(path, inodes=inodes) for path in _all(folder)}


def _all(folder: Path) -> Iterator[str]:
    yield str(folder)
    for place, folders, files in os.walk(folder):
        yield from (os.path.join(place, name) for name in [*folders, *files])


def _entry(path: str, *, inodes: bool) -> Entry:
    found = os.lstat(path)
    content = ""
    if stat.S_ISLNK(found.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    attributes: list[tuple[str, bytes]] = []
    with suppress(OSError):
        attributes = [
            (name, os.getxattr(path, name, follow_symlinks=False))
            for name in sorted(os.listxattr(path, follow_symlinks=False))
        ]
    return Entry(
        found.st_mode,
        (found.st_uid, found.st_gid),
        found.st_size if stat.S_ISREG(found.st_mode) else 0,
        content,
        found.st_nlink,
        found.st_mtime_ns,
        found.st_ctime_ns if inodes else 0,
        tuple(attributes),
    )


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """The names that were added, removed or changed, and how."""
    return [
        f"{'came' if name not in before else 'went' if name not in after else 'changed'}: {name}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
