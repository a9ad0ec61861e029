"""Empties a folder of temporary files, whatever a script made of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat


def empty(folder: str) -> None:
    """Remove all that is in `folder`, which stays.

    However deep folders are nested: what is in one is first moved up. Whatever can't be removed is left; it is in a
    file system that is bounded, and ends with the instance.
    """
    number, prefix = itertools.count(), secrets.token_hex(8)
    waiting = _entries(folder)
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):
            if not _opened(path):
                os.unlink(path)
                continue
            for one in _entries(path):
                risen = os.path.join(folder, f"{prefix}-{next(number)}")
                _opened(one)  # a folder that can't be written can't be moved
                os.rename(one, risen)
                waiting.append(risen)
            os.rmdir(path)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _opened(path: str) -> bool:
    """Whether it is a folder, which is given back the rights to change it."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return False
    os.chmod(path, 0o700)
    return True
