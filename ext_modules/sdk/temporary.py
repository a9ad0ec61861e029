"""Empties a folder of temporary files, whatever a script put there."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat


def empty(folder: str) -> None:
    """Remove everything in `folder`, but not the folder itself.

    Works however deeply folders are nested: the content of each folder is first moved up. Anything that can't be
    removed stays. It is in a file system of limited size that ends with the instance.
    """
    prefix = secrets.token_hex(8)
    numbers = itertools.count()
    waiting = _entries(folder)
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):
            if not _opened(path):
                os.unlink(path)
                continue

            for entry in _entries(path):
                risen = os.path.join(folder, f"{prefix}-{next(numbers)}")
                _opened(entry)  # a folder without write permission can't be moved
                os.rename(entry, risen)
                waiting.append(risen)
            os.rmdir(path)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _opened(path: str) -> bool:
    """Whether it is a folder. If so, restore the permissions needed to change it."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return False
    os.chmod(path, 0o700)
    return True
