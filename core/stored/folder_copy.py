"""Copies a folder with untrusted content: by descriptor, without following links, and within limits if given.

Modules write to workspaces even during the copy, and a session from elsewhere can hold anything. So directories are
walked by descriptor, sizes are those at the moment of opening, and anything that is not a file, directory or link is
left out.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CHUNK: Final = 1 << 24
_DEPTH: Final = 100
_UNREADABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG}
)
_ENDLESS: Final = 1 << 62


@dataclass(slots=True)
class CopyBudget:
    """How much may still be copied. `owned`: files keep their owner, if we are permitted to set it."""

    bytes: int = _ENDLESS
    entries: int = _ENDLESS
    owned: bool = True

    def take(self, size: int) -> bool:
        """Reserve room for one more entry of this size. Returns whether there was enough."""
        if self.entries < 1 or self.bytes < size:
            return False
        self.entries -= 1
        self.bytes -= size
        return True


def copy_tree(source: Path, target: Path, room: CopyBudget) -> int:
    """Copy what is in one directory into another. Returns how many entries had to be left out.

    Raises:
        FileNotFoundError: `source` does not exist.
        OSError: it is a link or no directory, or `target` can't be written.
    """
    reading = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        writing = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return _copy_folder(reading, writing, 0, room)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def transfer(source: int, target: int, size: int) -> None:
    """Copy up to `size` bytes from the start of one open file to the start of another."""
    done = 0
    while done < size and (sent := os.sendfile(target, source, done, min(_CHUNK, size - done))):
        done += sent


def _copy_folder(source: int, target: int, depth: int, room: CopyBudget) -> int:
    """Copy the content of one open directory into another. Returns how many entries were left out."""
    left_out = 0
    with os.scandir(source) as entries:
        for entry in entries:
            try:
                left_out += _copy_entry(entry, source, target, depth, room)
            except OSError as error:
                if error.errno not in _UNREADABLE:
                    raise
                left_out += error.errno != errno.ENOENT  # gone meanwhile: as if it had never existed
    _dress(target, os.fstat(source), room)
    os.fsync(target)
    return left_out


def _copy_entry(entry: os.DirEntry[str], source: int, target: int, depth: int, room: CopyBudget) -> int:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) and not room.take(0):
        return 1
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(entry.name, dir_fd=source), entry.name, dir_fd=target)
        return 0
    if stat.S_ISREG(status.st_mode):
        return _copy_file(entry.name, source, target, room)
    if not stat.S_ISDIR(status.st_mode) or depth >= _DEPTH:
        return 1
    reading = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=source)
    try:
        os.mkdir(entry.name, 0o700, dir_fd=target)
        writing = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=target)
        try:
            return _copy_folder(reading, writing, depth + 1, room)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_file(name: str, source: int, target: int, room: CopyBudget) -> int:
    # A path that was a file a moment ago may be a pipe now: NONBLOCK keeps the open from blocking.
    reading = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source)
    try:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode) or not room.take(status.st_size):
            return 1
        writing = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
        try:
            transfer(reading, writing, status.st_size)
            _dress(writing, status, room)
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return 0


def _dress(descriptor: int, like: os.stat_result, room: CopyBudget) -> None:
    """Set owner, mode and times to those of the original, but always readable by the owner and never set-user-id."""
    if room.owned and os.geteuid() == 0:
        os.fchown(descriptor, like.st_uid, like.st_gid)
    own = 0o700 if stat.S_ISDIR(like.st_mode) else 0o400
    os.fchmod(descriptor, like.st_mode & 0o777 | own)
    os.utime(descriptor, ns=(like.st_atime_ns, like.st_mtime_ns))
