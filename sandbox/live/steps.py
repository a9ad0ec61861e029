"""Reaching files by descriptor, one name at a time, so that no link that stands on the way can lead elsewhere.

Everything is relative to a folder that is open already. Names are never followed; what is opened is looked at again
through its descriptor. `renameat2` has no counterpart in Python: it is what makes "only if nothing stands there" and
"this for that" one step.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

from iact.core.ports import FileType

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOREPLACE, _EXCHANGE = 1, 2
_EMPTY_PATH: Final = 0x1000
_HANDLE: Final = 128
"""Bytes that such a name takes at most (name_to_handle_at(2))."""


def open_top(path: str | os.PathLike[str]) -> int:
    """A descriptor of the folder at `path`, the last name of which is no link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextmanager
def folder(top: int, parts: Sequence[str]) -> Iterator[int]:
    """The folder that `parts` lead to from `top`, open while the block runs; an `OSError` if there is none."""
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
    """What stands there, a link as itself; None if nothing does."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def find(top: int, parts: Sequence[str]) -> os.stat_result | None:
    """What stands at the end of `parts`; None if nothing does, or if the way there is no folder."""
    try:
        with folder(top, parts[:-1]) as at:
            return look(at, parts[-1])
    except (FileNotFoundError, NotADirectoryError):
        return None


def names(at: int) -> list[str]:
    """The names in a folder, sorted; `at` may be a descriptor for paths only."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    try:
        return sorted(os.listdir(opened))
    finally:
        os.close(opened)


def type_of(mode: int) -> FileType:
    """The type of what has this `st_mode`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def read(at: int, name: str) -> int:
    """A descriptor to read the file `name`, which is no link; never waits for whoever has a pipe's other end."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)


def through(descriptor: int) -> str:
    """A path that stands for what `descriptor` is open on, also where it was opened for paths only."""
    return f"/proc/self/fd/{descriptor}"


def rename_new(at: int, old: str, new: str) -> None:
    """Rename within a folder unless `new` exists (`FileExistsError`)."""
    _rename(at, old, at, new, _NOREPLACE)


def exchange(at: int, one: str, there: int, other: str) -> None:
    """Let two entries of folders (`at`, `there`) have each other's place, in one step."""
    _rename(at, one, there, other, _EXCHANGE)


def handle(descriptor: int) -> bytes | None:
    """What the file system itself calls this file, for good: another one at the same place has another.

    None where it has no such names.
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
