"""Our allow-list of system calls as a program for the kernel, where no engine compiles it.

The list is `seccomp.json`, in the engine's own format. The system's libseccomp compiles it, so that both backends
filter alike. A machine without that library gets no sandbox, rather than one without a filter.
"""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache
from typing import Final, TypedDict

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker import options

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_UNKNOWN: Final = -1
"""libseccomp's result for a name that this machine's architecture does not have."""
_COMPARE: Final = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}


class _Test(TypedDict, total=False):
    index: int
    op: str
    value: int
    valueTwo: int


class _Row(TypedDict, total=False):
    names: list[str]
    action: str
    errnoRet: int
    args: list[_Test]


class _Compared(ctypes.Structure):
    """libseccomp's `scmp_arg_cmp`."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


@cache
def program(*, meets_nobody: bool = False) -> bytes:
    """The filter in the kernel's form (an array of `sock_filter`). `meets_nobody`: as in `limits`.

    Raises:
        SandboxUnavailable: libseccomp is missing, or it refuses the list.
    """
    try:
        library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError as error:
        raise SandboxUnavailable(
            "The bubblewrap sandbox needs libseccomp to filter system calls; "
            "run `sudo apt-get install libseccomp2`."
        ) from error
    library.seccomp_init.restype = ctypes.c_void_p
    listed = json.loads(options.seccomp_profile(meets_nobody=meets_nobody))
    made = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ERRNO | listed["defaultErrnoRet"])))
    try:
        for row in listed["syscalls"]:
            _add(library, made, row)
        return _exported(library, made)
    finally:
        library.seccomp_release(made)


def _add(library: ctypes.CDLL, made: ctypes.c_void_p, row: _Row) -> None:
    action = _ALLOW if row["action"] == "SCMP_ACT_ALLOW" else _ERRNO | row["errnoRet"]
    tests = [
        _Compared(test["index"], _COMPARE[test["op"]], test["value"], test.get("valueTwo", 0))
        for test in row.get("args", ())
    ]
    compared = (_Compared * len(tests))(*tests)
    for name in row["names"]:
        number = library.seccomp_syscall_resolve_name(name.encode("ascii"))
        if number == _UNKNOWN:
            continue
        status = library.seccomp_rule_add_array(made, ctypes.c_uint32(action), number, len(tests), compared)
        if status != 0:
            raise SandboxUnavailable(
                f"libseccomp refuses the rule for {name} ({os.strerror(-status)}); install a newer libseccomp."
            )


def _exported(library: ctypes.CDLL, made: ctypes.c_void_p) -> bytes:
    descriptor = os.memfd_create("iact-seccomp")
    try:
        if library.seccomp_export_bpf(made, descriptor) != 0:
            raise SandboxUnavailable("libseccomp can't write the filter; install a newer libseccomp.")
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)
