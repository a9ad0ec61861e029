"""Drops the rights that a viewer's process must not have, before any code of the module runs.

This covers the process and everything it starts. The sandbox mounts read-only whatever a viewer must not change. A
mount does not cover everything, however: on a read-only file system, as on any other, a process can write to a named
pipe and connect to a socket, and a process of the worker may be at the other end. So a viewer opens nothing for writing
except its own files (Landlock) and, unless it was given network access, connects to nothing (seccomp). Neither can be
undone. On a kernel without Landlock only the second applies. Where the sandbox filters system calls from outside, that
filter enforces the second as well.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from typing import Final

from ext_modules.sdk import landlock

FOLDER: Final = "/run/look"
"""The only folder that a viewer may write to."""
_LAYERED: Final = ("/workspace", "/tmp")
"""Where it may write as well if the sandbox throws away whatever is written there."""
_OWN: Final = (FOLDER, "/run/iact")
_WRITABLE: Final = ("/dev", "/proc")
"""Where existing files may be opened for writing: /dev/null, and settings of a process itself."""

# linux/seccomp.h, linux/bpf_common.h
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_NUMBER, _MACHINE, _FIRST = 0, 4, 16
_FOREIGN: Final = 0x40000000
"""The first number of x86's other calling convention (x32)."""
_CALLS: Final = {
    "x86_64": (0xC000003E, {"connect": 42, "sendto": 44, "socket": 41, "socketpair": 53}),
    "aarch64": (0xC00000B7, {"connect": 203, "sendto": 206, "socket": 198, "socketpair": 199}),
}
_AF_UNIX, _STREAM, _SEQPACKET, _TYPE = 1, 1, 5, 0xF


def is_viewer() -> bool:
    """Whether the sandbox declared that this process may only read."""
    return os.environ.get("IACT_RIGHT") == "look"


def in_layer() -> bool:
    """Whether the workspace is a layer of this process alone, which the sandbox throws away."""
    return os.environ.get("IACT_LAYER") == "1"


def give_up(*, way_out: bool) -> None:
    """Drop the rights that a viewer must not have. Call it while only one thread exists. `way_out`: it has a proxy."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _write_nothing()
    if not way_out:
        _meet_nobody(libc)


def _write_nothing() -> None:
    handled = landlock.writing()
    if not handled:
        return

    folders = (*_OWN, *_LAYERED) if in_layer() else _OWN
    places = [(folder, handled) for folder in folders]
    settings = [(folder, landlock.WRITE_FILE | landlock.TRUNCATE) for folder in _WRITABLE]
    landlock.restrict(handled, [*places, *settings])


def _meet_nobody(libc: ctypes.CDLL) -> None:
    if platform.machine() not in _CALLS:
        return

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = program(platform.machine())
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    filter_program = Program(len(steps), ctypes.addressof(code))
    libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(filter_program), 0, 0)


def program(machine: str) -> Sequence[tuple[int, int, int, int]]:
    """The filter for `machine`: no connections, no datagrams to an address, no sockets that could send one by name.

    Each step: code, steps to skip if true, steps to skip if false, operand.
    """
    architecture, calls = _CALLS[machine]
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 0, 18, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 16, 0, _FOREIGN),
        (_EQUAL, 15, 0, calls["connect"]),
        (_EQUAL, 3, 0, calls["sendto"]),
        (_EQUAL, 6, 0, calls["socket"]),
        (_EQUAL, 5, 0, calls["socketpair"]),
        (_RETURN, 0, 0, _ALLOW),
        # sendto: allowed without an address. The address pointer has two halves.
        (_LOAD, 0, 0, _argument(4)),
        (_EQUAL, 0, 9, 0),
        (_LOAD, 0, 0, _argument(4) + 4),
        (_EQUAL, 6, 7, 0),
        # socket, socketpair: only local sockets (AF_UNIX) of the types that must be connected before they send
        (_LOAD, 0, 0, _argument(0)),
        (_EQUAL, 0, 4, _AF_UNIX),
        (_LOAD, 0, 0, _argument(1)),
        (_AND, 0, 0, _TYPE),
        (_EQUAL, 1, 0, _STREAM),
        (_EQUAL, 0, 1, _SEQPACKET),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _EPERM),
    ]
    return steps


def _argument(number: int) -> int:
    """The offset of the lower half of a system call's argument."""
    return _FIRST + 8 * number
