"""What is at a path, as `core.ports.FileState` tells it, without reading a file twice that did not change.

A digest is remembered by inode, size and times. It is not remembered while somebody has the file open for writing
(through shared memory it could change without a new time), nor if it changed within the last tick of the kernel's
clock, where two changes can have one time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import stat
import time
from typing import Final

from iact.core.errors import WorkspaceError
from iact.core.ports import FileState
from iact.sandbox.live import steps

_MOST: Final = 250_000
"""Digests that are remembered."""
_TICK: Final = 20_000_000
"""Nanoseconds: more than the clock that file times are taken from needs for a tick."""
LARGEST: Final = 1 << 30
"""Bytes of a file whose content is read to compare it, holes counted; a larger one has no digest, and differs."""
_KEEPS: Final = 0o6000
"""Set-user-id and set-group-id."""


def written(at: int, name: str) -> bool:
    """Whether somebody has this file open for writing; what can't be told counts as yes."""
    try:
        descriptor = steps.read(at, name)
    except OSError:
        return True
    try:
        return held(descriptor)
    finally:
        os.close(descriptor)


def held(descriptor: int) -> bool:
    """The same of an open file. The kernel gives a read lease only if nobody can write.

    Who opens it for writing meanwhile has us told by a signal, which is to be one that does nothing.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    return False


class Digests:
    """SHA-256 of files, remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int, int], str] = {}

    def state(self, at: int, name: str, status: os.stat_result, *, digest: bool = True) -> FileState:
        """What `name` is, of which `status` was had just now. Without `digest` a file's content is not read.

        Raises:
            WorkspaceError: it went away or can't be read.
        """
        kind, mode = steps.type_of(status.st_mode), stat.S_IMODE(status.st_mode)
        if kind == "file":
            sha256 = self._of(at, name, status) if digest and status.st_size <= LARGEST else ""
            return FileState("file", mode, size=status.st_size, sha256=sha256)
        if kind == "link":
            try:
                return FileState("link", mode, target=os.readlink(name, dir_fd=at))
            except OSError as error:
                raise WorkspaceError(f"The link {name!r} can't be read ({error.strerror}).") from error
        return FileState(kind, mode, target=_special(status) if kind == "other" else "")

    def _of(self, at: int, name: str, status: os.stat_result) -> str:
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if (known := self._known.get(key)) is not None:
            return known
        try:
            descriptor = steps.read(at, name)
        except OSError as error:
            raise WorkspaceError(f"The file {name!r} can't be read ({error.strerror}).") from error
        try:
            found = digest_of(descriptor)
            if not held(descriptor) and time.time_ns() - status.st_ctime_ns > _TICK:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = found
        finally:
            os.close(descriptor)
        return found


def digest_of(descriptor: int) -> str:
    """SHA-256 of an open file, from its beginning."""
    found, offset = hashlib.sha256(), 0
    while piece := os.pread(descriptor, 1 << 20, offset):
        found.update(piece)
        offset += len(piece)
    return found.hexdigest()


def plain(mode: int, *, folder: bool, was: int = 0, group: bool = False) -> int:
    """The permission bits that are made real for `mode`: set-id bits never.

    A folder keeps those that it had (`was`), and a new one takes the group of its own if the one around it does
    (`group`), which is no right of anybody's.
    """
    if not folder:
        return mode & 0o1777
    kept = mode & was & _KEEPS
    return mode & 0o1777 | kept | (mode & stat.S_ISGID if group else 0)


def _special(status: os.stat_result) -> str:
    mode = status.st_mode
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    kind = "character device" if stat.S_ISCHR(mode) else "block device"
    return f"{kind} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
