"""The windows that endpoints turned out to have, where they are smaller than what is set.

A server is often started with less than its model could have, and says so only when a request is too long for it. What
it says is believed for every session of this process, and kept in a file, so that the next process starts right.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from iact.core import whole_file

_LOG: Final = logging.getLogger(__name__)

_MOST: Final = 200
"""The most windows that are kept. A file with more is somebody's mistake, and the oldest are forgotten."""


class KnownWindows:
    """Windows by endpoint and model, in tokens.

    What was learnt belongs to the window that was set then: who sets another one wants that to be tried.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path`: the file that keeps them; None: they last as long as the process."""
        self._path = path
        self._windows = _read(path) if path is not None else {}

    def window(self, endpoint: str, model: str, configured: int) -> int:
        """The window of a model: `configured`, or what its endpoint really has."""
        if not self._windows:
            return configured
        return min(configured, self._windows.get(_key(endpoint, model, configured), configured))

    def believe(self, endpoint: str, model: str, configured: int, window: int) -> None:
        """Use `window` from now on. Lasts as long as the process; `keep` makes it last longer."""
        key = _key(endpoint, model, configured)
        self._windows.pop(key, None)  # the newest is last
        self._windows[key] = window

    def keep(self, endpoint: str, model: str, configured: int) -> None:
        """Write down what is believed about one model. Blocks; a file that can't be written costs a warning only."""
        if self._path is None:
            return

        key = _key(endpoint, model, configured)
        try:
            with whole_file.locked(self._path):
                # Read again: another process may have learnt something meanwhile.
                windows = _read(self._path)
                windows.pop(key, None)
                windows[key] = self._windows[key]

                newest = dict(list(windows.items())[-_MOST:])
                whole_file.replace(self._path, json.dumps(newest, indent=2).encode())
        except OSError as error:
            _LOG.warning("What is known about windows can't be kept in %s: %s.", self._path, error.strerror)


def _key(endpoint: str, model: str, configured: int) -> str:
    return f"{endpoint} {model} {configured}"


def _read(path: Path) -> dict[str, int]:
    """The windows in a file; none if it is missing or damaged, because they can be learnt again."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: window for key, window in content.items() if isinstance(window, int) and window > 0}
