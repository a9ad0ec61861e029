"""Ownership of the embedded store: exactly one process opens it, because several writers corrupt it.

The lock is the operating system's, so it ends with the process that held it, however that ended.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from iact.core.errors import MemoryUnavailable

FILE: Final = "owner"


class Ownership:
    """Holds the lock on a directory from construction to `release`.

    Raises:
        MemoryUnavailable: another process holds it (the message has its number), or the directory can't be used.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / FILE
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise MemoryUnavailable(
                f"Memory can't use the directory {directory}: {error.strerror}. Make it writable, or set IACT_MEMORY=off."
            ) from error

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise MemoryUnavailable(
                f"Memory is in use by another process ({holder}); this process continues without "
                "memory until that one ends."
            ) from error

        # Who holds it, for the message of others.
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._file)
