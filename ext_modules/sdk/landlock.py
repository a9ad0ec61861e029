"""Gives up rights over files for this process and everything that it starts. It can't be undone. See landlock(7).

On a kernel without Landlock nothing happens; what the sandbox mounts then decides alone.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

# linux/landlock.h
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_MAKE_AND_REMOVE, _REFER = 0b1_1111_1111 << 4, 1 << 13
_PR_SET_NO_NEW_PRIVS: Final = 38

WRITE_FILE: Final = 1 << 1
TRUNCATE: Final = 1 << 14
READ: Final = (1 << 2) | (1 << 3)
"""Opening a file for reading, and listing a folder."""
_OF_FILES: Final = WRITE_FILE | (1 << 2) | TRUNCATE
"""The rights that there are over what is not a folder."""


def writing() -> int:
    """All rights that change something, as far as this kernel knows them; 0 if it has no Landlock."""
    version = _libc().syscall(_CREATE, None, 0, _VERSION)
    if version < 1:
        return 0

    rights = WRITE_FILE | _MAKE_AND_REMOVE
    if version >= 2:
        rights |= _REFER
    if version >= 3:
        rights |= TRUNCATE
    return rights


def restrict(handled: int, allowed: Iterable[tuple[str, int]]) -> None:
    """Give up the rights `handled`, except the ones that are `allowed` beneath a path. A path that is missing counts for
    nothing. Call it while only one thread exists.
    """
    libc = _libc()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    rules = libc.syscall(_CREATE, ctypes.byref(ctypes.c_uint64(handled)), ctypes.sizeof(ctypes.c_uint64), 0)
    if rules < 0:
        return

    try:
        for path, rights in allowed:
            _allow(libc, rules, path, handled & rights)
        libc.syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    """Allow these rights beneath a path."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return

    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
        libc.syscall(_ADD, rules, _BENEATH, beneath, 0)
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
