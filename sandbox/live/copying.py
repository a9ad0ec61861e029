"""Copies an open file: holes stay holes, and the digest is computed without reading it again."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import Final

from iact.sandbox.live.digests import LARGEST

_PIECE: Final = 1 << 20
_NOT_COPIED: Final = ("user.overlay.", "security.capability", "security.ima", "security.evm")
"""Attributes that belong to the kernel, or that must not survive a change of content."""


def copy(source: int, target: int, size: int) -> str:
    """Copy the `size` bytes of `source` to the empty `target`. Return their SHA-256, or "" if larger than `LARGEST`."""
    found = hashlib.sha256() if size <= LARGEST else None
    offset = 0
    while offset < size:
        begin, end = _data(source, offset, size)
        if found is not None:
            _zeros(found, begin - offset)
        offset = begin
        while offset < end:
            piece = os.pread(source, min(_PIECE, end - offset), offset)
            if not piece:  # it became shorter: the caller detects that
                return "shorter"
            if found is not None:
                found.update(piece)
            _write(target, piece, offset)
            offset += len(piece)
    os.ftruncate(target, size)
    return found.hexdigest() if found is not None else ""


def attributes(source: int, target: int) -> None:
    """Copy the extended attributes of `source`, including its access list, to `target`, as far as possible."""
    try:
        there = os.listxattr(source)
    except OSError:
        return
    for name in there:
        if name.startswith(_NOT_COPIED):
            continue
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL, errno.ENODATA):
                raise


def _data(source: int, offset: int, size: int) -> tuple[int, int]:
    """The next stretch at or after `offset` that is not a hole."""
    try:
        begin = os.lseek(source, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left
            return size, size
        if error.errno == errno.EINVAL:  # this file system doesn't report holes
            return offset, size
        raise
    return min(begin, size), min(os.lseek(source, begin, os.SEEK_HOLE), size)


def _zeros(found: hashlib._Hash, many: int) -> None:
    zeros = bytes(min(many, _PIECE))
    while many > 0:
        found.update(zeros[: min(many, _PIECE)])
        many -= _PIECE


def _write(target: int, piece: bytes, offset: int) -> None:
    view = memoryview(piece)
    while view:
        written = os.pwrite(target, view, offset)
        view, offset = view[written:], offset + written
