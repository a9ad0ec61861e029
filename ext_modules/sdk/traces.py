"""Sees to it that a module which says that it forgets does: nothing of a call outlives it.

When no call is under way any more, all processes that calls started are killed, and the temporary folder is emptied. The
program that a call runs apart (`ext_modules.sdk.apart`) sees no temporary folder but its own, so calls that overlap
leave each other nothing either. What lies in the module's own memory is for its source to forget; a shipped module that
forgets has no variable that a call changes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ext_modules.sdk import landlock, strays, temporary
from ext_modules.sdk.process import Process

_SHARED = ("/tmp", "/run/look", "/dev/shm", "/dev/mqueue")
"""Folders in which processes of different calls could find each other's files."""


class Traces:
    """What the calls of a module have left so far."""

    def __init__(self) -> None:
        self._started = Process.started

    def remove(self) -> None:
        """Remove all of it. Call it while no call is under way. Does nothing outside a sandbox."""
        if not strays.contained():
            return
        if Process.started != self._started:
            self._started = Process.started
            strays.end_strays(Process.running)
        folder = tempfile.gettempdir()
        if os.listdir(folder):
            temporary.empty(folder)


def keep_apart(workspace: str, own: str) -> None:
    """Let this process, and what it starts, see no temporary files but those in `own`, and write there and in the
    workspace alone. Does nothing outside a sandbox, or on a kernel without Landlock.
    """
    writing = landlock.writing()
    if strays.RIGHT not in os.environ or not writing:
        return

    system = [(path, landlock.READ) for path in _readable()]
    settings = [(path, landlock.WRITE_FILE | landlock.TRUNCATE) for path in ("/dev", "/proc")]
    places = [(path, landlock.READ | writing) for path in (workspace, own)]
    landlock.restrict(landlock.READ | writing, [*system, *settings, *places])


def _readable() -> Iterator[str]:
    """What a program may read besides its own files: all but the workspace and the folders that calls share."""
    for path in Path("/").iterdir():
        if str(path) in ("/dev", "/run"):
            yield from (str(inner) for inner in path.iterdir() if str(inner) not in _SHARED)
        elif str(path) not in _SHARED:
            yield str(path)
