"""The state of a path as `core.ports.FileState`, without reading an unchanged file twice.

A digest is cached by inode, size and times. It is not cached while any process has the file open for writing (through
shared memory it could change without a new time), nor if it changed within the last tick of the kernel's clock, when
two changes can have the same time.
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
"""The most digests in the cache."""
_TICK: Final = 20_000_000
"""Nanoseconds: longer than one tick of the clock that file times are taken from."""
LARGEST: Final = 1 << 30
"""The most bytes, including holes, of a file that is read for comparison. A larger file has no digest, and differs."""
_KEEPS: Final = 0o6000
"""Set-user-id and set-group-id."""


def written(at: int, name: str) -> bool:
    """Whether any process has this file open for writing. Counts as yes if that can't be determined."""
    try:
        descriptor = steps.read(at, name)
    except OSError:
        return True
    try:
        return held(descriptor)
    finally:
        os.close(descriptor)


def held(descriptor: int) -> bool:
    """Whether any process has this open file open for writing. The kernel grants a read lease only if none has.

    If a process opens it for writing meanwhile, we get a signal, which is set to one that does nothing.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    return False


class Digests:
    """SHA-256 of files, cached."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int, int], str] = {}

    def state(self, at: int, name: str, status: os.stat_result, *, digest: bool = True) -> FileState:
        """The state of `name`, whose `status` was read just now. Without `digest` a file's content is not read.

        Raises:
            WorkspaceError: it went away or can't be read.
        """
        kind = steps.type_of(status.st_mode)
        mode = stat.S_IMODE(status.st_mode)
        if kind == "file":
            is_read = digest and status.st_size <= LARGEST
            sha256 = self._of(at, name, status) if is_read else ""
            return FileState("file", mode, size=status.st_size, sha256=sha256)

        if kind == "link":
            try:
                return FileState("link", mode, target=os.readlink(name, dir_fd=at))
            except OSError as error:
                raise WorkspaceError(f"The link {name!r} can't be read ({error.strerror}).") from error
        return FileState(kind, mode, target=_special(status) if kind == "other" else "")

    def _of(self, at: int, name: str, status: os.stat_result) -> str:
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._known.get(key)
        if known is not None:
            return known

        try:
            descriptor = steps.read(at, name)
        except OSError as error:
            raise WorkspaceError(f"The file {name!r} can't be read ({error.strerror}).") from error

        # What is written to, or was a moment ago, can change without any of the times in the key.
        try:
            digest = digest_of(descriptor)
            if not held(descriptor) and time.time_ns() - status.st_ctime_ns > _TICK:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = digest
        finally:
            os.close(descriptor)
        return digest


def digest_of(descriptor: int) -> str:
    """SHA-256 of an open file, from its beginning."""
    digest = hashlib.sha256()
    offset = 0
    while piece := os.pread(descriptor, 1 << 20, offset):
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def plain(mode: int, *, folder: bool, was: int = 0, group: bool = False) -> int:
    """The permission bits to apply for `mode`, without set-id bits.

    A folder keeps the set-id bits that it had (`was`), and a new folder passes on its group if the one around it does
    (`group`), which grants no rights.
    """
    permissions = mode & 0o1777
    if not folder:
        return permissions

    kept = mode & was & _KEEPS
    passed_on = mode & stat.S_ISGID if group else 0
    return permissions | kept | passed_on


def _special(status: os.stat_result) -> str:
    mode = status.st_mode
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    kind = "character device" if stat.S_ISCHR(mode) else "block device"
    return f"{kind} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
