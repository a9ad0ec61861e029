"""Limits how much disk space the workspace of a session may take, and stops or refuses calls that exceed it.

Nothing here needs rights over file systems, so the kernel does not enforce the limit: the size is measured before each
call that may write, and while it runs. What is written between two measurements is not held back.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.modules.outcome import Outcome, Raised

_LOOK: Final = 1.0
"""Seconds between two measurements while a call runs; more if measuring itself takes long."""
_PATIENCE: Final = 10
"""The minimum ratio of the time between two measurements to the duration of a measurement."""
_DEPTH: Final = 200
_ENDLESS: Final = 1 << 62
_LEAST: Final = 4096
"""How many bytes every entry counts for at least, so that the number of files is limited too."""
_TRIES: Final = 3
"""How many calls may run above the limit without making the workspace smaller."""


def disk_usage(folder: Path) -> int:
    """How many bytes on disk everything below `folder` takes. Blocks.

    No link is followed, and a file with several names counts once. Folders nested too deep count as infinitely large.
    """
    total = 0
    counted: set[tuple[int, int]] = set()
    with suppress(OSError):
        for status in _below(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), 0):
            if status is None:
                return _ENDLESS

            file = status.st_dev, status.st_ino
            if file not in counted:
                total += max(_LEAST, status.st_blocks * 512)

            # Only of these can another name come: a set of all would be as large as the workspace has files.
            has_names = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
            if has_names:
                counted.add(file)
    return total


def _below(folder: int, depth: int) -> Iterator[os.stat_result | None]:
    """The status of everything below an open folder, which is closed at the end; None for entries that are too deep."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):  # gone meanwhile
                    status = entry.stat(follow_symlinks=False)
                    yield status if depth < _DEPTH else None

                    if stat.S_ISDIR(status.st_mode):
                        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                        yield from _below(os.open(entry.name, flags, dir_fd=folder), depth + 1)
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class FolderUse:
    """The folder that calls fill."""

    folder: Path
    holds: str = "The workspace"
    """What is in it, for agents."""


class Quota:
    """The limit of one workspace: `most` bytes on disk; 0 for no limit."""

    def __init__(self, room: FolderUse, most: int) -> None:
        self._room = room
        self._most = most
        self._tries: int | None = None
        """Attempts left to make room; None while there is room."""

    async def hold(self, run: Callable[[], Coroutine[None, None, Outcome]]) -> Outcome:
        """Make a call that may write, unless the workspace is full; stop it once it exceeds the limit.

        A full workspace refuses one call, so that its agent knows. Later calls may run as long as they make it smaller,
        so that the agent can make room.
        """
        if not self._most:
            return await run()

        size = await self._usage()
        if size <= self._most:
            self._tries = None
            return await self._watched(run, self._most)

        if self._tries is None:
            self._tries = _TRIES
            return self._full("It was not run. Delete files first; calls may run as long as they make room.")
        if self._tries == 0:
            return self._full("It was not run. Ask the user to make room in the workspace.")

        outcome = await self._watched(run, size)
        if not self._tries:
            return outcome

        made_room = await self._usage() < size
        # Another call may have found room meanwhile.
        if not made_room and self._tries:
            self._tries -= 1
        return outcome

    async def _watched(self, run: Callable[[], Coroutine[None, None, Outcome]], most: int) -> Outcome:
        """Make a call, and stop it once more than `most` bytes are taken."""
        task = asyncio.create_task(run())
        pause = _LOOK
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=pause)
                if done:
                    return task.result()

                began = time.monotonic()
                if await self._usage() > most:
                    if self._tries is None:
                        self._tries = _TRIES
                    return self._full("It was stopped. Delete files, or write less.")
                pause = max(_LOOK, _PATIENCE * (time.monotonic() - began))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _usage(self) -> int:
        return await asyncio.to_thread(disk_usage, self._room.folder)

    def _full(self, what: str) -> Raised:
        """The outcome of a call for which there was no room. `what`: what became of it, and what to do."""
        size = f"{self._most / (1 << 20):,.0f} MiB"
        message = f"{self._room.holds} takes more than the {size} that it may. {what}"
        return Raised("WorkspaceFull", message, "", "")
