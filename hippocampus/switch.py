"""The switch with which people turn memory off: a small file, so that every process sees it at once.

The file names whose memory is off and since when. Without a file, everybody's is on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from iact.core import whole_file
from iact.core.errors import MemoryUnavailable
from iact.core.ports import Clock

FILE: Final = "memory-off.json"


class SwitchFile:
    """Which people have switched memory off, in one directory."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path: Final = directory / FILE
        self._clock = clock

    def is_on(self, user: str) -> bool:
        """Whether this person's memory is on. If the file can't be read, it is not: somebody wanted it off."""
        try:
            return user not in self._read()
        except MemoryUnavailable:
            return False

    def switch(self, user: str, value: bool) -> None:
        """Switch a person's memory off or on.

        Raises:
            MemoryUnavailable: the file can't be read or written.
        """
        try:
            with whole_file.locked(self._path):
                off = self._read()
                if value:
                    off.pop(user, None)
                else:
                    # Switched off twice, it is off since the first time.
                    off.setdefault(user, self._clock.now().isoformat(timespec="seconds"))
                self._write(off)
        except OSError as error:
            raise MemoryUnavailable(
                f"Memory can't be switched, because {self._path} can't be written: {error.strerror}."
            ) from error

    def _read(self) -> dict[str, str]:
        """Whose memory is off, each with the time since when."""
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(user): str(since) for user, since in content["off"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MemoryUnavailable(
                f"Whether memory is off can't be read from {self._path}: {error}. Remove the file to switch it on."
            ) from error

    def _write(self, off: dict[str, str]) -> None:
        if off:
            whole_file.replace(self._path, json.dumps({"off": off}, indent=1).encode())
        else:
            self._path.unlink(missing_ok=True)
