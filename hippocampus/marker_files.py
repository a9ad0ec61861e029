"""Marker files that say that the store lacks something, for the process that opens it next."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_UNCLEAN: Final = "unclean"
"""A file that exists while the store is open or lacks something: the next opening catches up from the journals."""

_MISSED: Final = "missed."
"""The prefix of a file that exists while a process has events to remember but no store.

If such a process ends or is killed, the file tells the owner of the store to catch up.
"""


class MarkerFiles:
    """The markers of this process and of others in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unclean = directory / _UNCLEAN
        self._own = directory / f"{_MISSED}{os.getpid()}"

    def opened(self) -> bool:
        """Note that the store is open. Return whether it was left unclean."""
        unclean = self._unclean.exists()
        self.doubt()
        self.withdraw()
        return unclean

    def doubt(self) -> None:
        """Note that the store lacks something, whatever happens next."""
        self._unclean.touch()

    def clean(self) -> None:
        """Note that the store is closed and lacks nothing."""
        self._unclean.unlink(missing_ok=True)

    def leave(self) -> None:
        """Note that this process has events to remember but no store."""
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._own.touch()

    def withdraw(self) -> None:
        """Note that this process has no more events that the store lacks."""
        self._own.unlink(missing_ok=True)

    def left(self) -> bool:
        """Whether any process left a marker."""
        return any(self._directory.glob(f"{_MISSED}*"))

    def heed(self) -> None:
        """Remove all markers of processes, because the catch-up is being done."""
        for mark in self._directory.glob(f"{_MISSED}*"):
            mark.unlink(missing_ok=True)
