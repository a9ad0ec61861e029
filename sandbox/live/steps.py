"""Opens files by descriptor, one name at a time, so that no link on the way can lead elsewhere.

Everything is relative to an open folder. Links are never followed; opened files are checked again through their
descriptors. `renameat2`, which Python lacks, makes "only if nothing exists there" and "swap these two" atomic.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

from iact.core.ports import FileType

ORIGIN: Final = "user.overlay.origin"
"""The kernel's reference from a copy in the upper layer to what it is a copy of."""
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOREPLACE, _EXCHANGE = 1, 2
_EMPTY_PATH: Final = 0x1000
_HANDLE: Final = 128
"""The most bytes of a file's handle (name_to_handle_at(2))."""


def open_top(path: str | os.PathLike[str]) -> int:
    """Open the folder at `path`, whose last component must not be a link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextmanager
def folder(top: int, parts: Sequence[str]) -> Iterator[int]:
    """Open the folder that `parts` lead to from `top`, for the duration of the block; an `OSError` if there is none."""
    here = os.dup(top)
    try:
        for part in parts:
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def look(at: int, name: str) -> os.stat_result | None:
    """The status of the entry `name`, without following a link; None if there is none."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def find(top: int, parts: Sequence[str]) -> os.stat_result | None:
    """The status of the entry at the end of `parts`; None if there is none, or if the way there is not a folder."""
    try:
        with folder(top, parts[:-1]) as at:
            return look(at, parts[-1])
    except (FileNotFoundError, NotADirectoryError):
        return None


def names(at: int) -> list[str]:
    """The names in a folder, sorted; `at` may be a path-only descriptor."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    try:
        return sorted(os.listdir(opened))
    finally:
        os.close(opened)


def type_of(mode: int) -> FileType:
    """The file type for this `st_mode`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def read(at: int, name: str) -> int:
    """Open the file `name`, which is not a link, for reading; does not wait for the other end of a pipe."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)


def through(descriptor: int) -> str:
    """A path to whatever `descriptor` is open on, even for a path-only descriptor."""
    return f"/proc/self/fd/{descriptor}"


def take_out(at: int, name: str, above: os.stat_result) -> None:
    """Remove a file's name from the upper layer.

    The kernel finds a copied file through the file below, which its other names name as well. Once that file is visible
    again under the removed name, they would be stale (`ESTALE`). So they lose their reference to it.
    """
    if stat.S_ISREG(above.st_mode) and above.st_nlink > 1:
        with suppress(OSError):  # a new file has none
            os.removexattr(f"{through(at)}/{name}", ORIGIN, follow_symlinks=False)
    os.unlink(name, dir_fd=at)


def rename_new(at: int, old: str, new: str) -> None:
    """Rename within a folder unless `new` exists (`FileExistsError`)."""
    _rename(at, old, at, new, _NOREPLACE)


def exchange(at: int, one: str, there: int, other: str) -> None:
    """Swap two entries of folders (`at`, `there`) atomically."""
    _rename(at, one, there, other, _EXCHANGE)


def handle(descriptor: int) -> bytes | None:
    """The file system's own permanent handle of this file: another file at the same place has a different one.

    None if the file system has no handles.
    """
    room = ctypes.create_string_buffer(struct.pack("Ii", _HANDLE, 0) + bytes(_HANDLE))
    mount = ctypes.c_int()
    if _libc().name_to_handle_at(descriptor, b"", room, ctypes.byref(mount), _EMPTY_PATH):
        return None
    length, _ = struct.unpack_from("Ii", room.raw)
    return room.raw[8 : 8 + length]


def _rename(at: int, old: str, there: int, new: str, flags: int) -> None:
    status = _libc().renameat2(at, os.fsencode(old), there, os.fsencode(new), ctypes.c_uint(flags))
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
