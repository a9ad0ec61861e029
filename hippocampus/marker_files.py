"""Files that say that the store lacks something: what a process leaves behind, ended or killed, for who opens it next."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_UNCLEAN: Final = "unclean"
"""A file that stands while the store is open or lacks something: the next opening catches up from journals."""

_MISSED: Final = "missed."
"""Begins the name of a file that stands while a process has something to remember and no store. What such a
process leaves behind, ended or killed, tells the owner of the store to catch up."""


class MarkerFiles:
    """The marks of this process and of others in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unclean = directory / _UNCLEAN
        self._own = directory / f"{_MISSED}{os.getpid()}"

    def opened(self) -> bool:
        """The store is open here from now on; gives whether it was left unclean."""
        unclean = self._unclean.exists()
        self.doubt()
        self.withdraw()
        return unclean

    def doubt(self) -> None:
        """The store lacks something, whatever comes of it."""
        self._unclean.touch()

    def clean(self) -> None:
        """The store is closed and lacks nothing."""
        self._unclean.unlink(missing_ok=True)

    def leave(self) -> None:
        """This process has something to remember and no store."""
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._own.touch()

    def withdraw(self) -> None:
        """This process has nothing left that the store lacks."""
        self._own.unlink(missing_ok=True)

    def left(self) -> bool:
        """Whether any process left something."""
        return any(self._directory.glob(f"{_MISSED}*"))

    def heed(self) -> None:
        """Take all away: what they stand for is being made good for."""
        for mark in self._directory.glob(f"{_MISSED}*"):
            mark.unlink(missing_ok=True)
