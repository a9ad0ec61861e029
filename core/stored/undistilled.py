"""Which stored sessions were closed before a model was asked about all that was said in them.

A program that ends at once, such as `iact run`, has no time for that. It leaves a file with the session's name, and the
next program that has time finds it. The file says how often it was tried: some can never be distilled.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from iact.core import whole_file

FOLDER: Final = "undistilled"

_TRIES: Final = 3
"""How often a session is tried."""


class UndistilledSessions:
    """The names of such sessions in one data directory. All methods block; a disk that fails costs nothing but a name."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER

    def add(self, session: str) -> None:
        """Note a session that was closed now."""
        self._write(session, 0)

    def names(self, rested: float, now: datetime) -> list[str]:
        """The sessions that were noted or tried more than `rested` seconds ago, oldest first.

        Others may go on at any moment, and must not be locked meanwhile.
        """
        try:
            noted = [(path.name, path.stat().st_mtime) for path in self._folder.iterdir()]
        except OSError:
            return []

        until = now.timestamp() - rested
        # A file that is still being written begins with a dot; a session's name begins with its time.
        return sorted(name for name, at in noted if at <= until and not name.startswith("."))

    def begin(self, session: str) -> None:
        """Note that a session is tried now. The last time, its name is removed before."""
        tries = self._tries(session) + 1
        if tries >= _TRIES:
            self.remove(session)
        else:
            self._write(session, tries)

    def remove(self, session: str) -> None:
        """Forget a session: it is distilled, or can't be."""
        try:
            (self._folder / session).unlink(missing_ok=True)
        except OSError:
            return

    def _tries(self, session: str) -> int:
        try:
            return int((self._folder / session).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def _write(self, session: str, tries: int) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            whole_file.replace(self._folder / session, str(tries).encode())
        except OSError:
            return
