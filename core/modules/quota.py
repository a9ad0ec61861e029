"""How much the workspace of a session may take on disk, and what becomes of a call that takes more.

Nothing here needs rights over file systems, so it is not the kernel that holds the bound: we look before each call
that may write, and while it runs. What is written between two looks is not held back.
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
"""Seconds between two looks while a call runs; more if looking itself takes long."""
_PATIENCE: Final = 10
"""The least ratio of the time between two looks to the time of a look."""
_DEPTH: Final = 200
_ENDLESS: Final = 1 << 62
_LEAST: Final = 4096
"""Bytes that anything counts for, so that the number of files is bounded too."""
_TRIES: Final = 3
"""Calls that may run above the bound without making the workspace smaller."""


def disk_usage(folder: Path) -> int:
    """Bytes that everything below `folder` takes on disk. Blocks.

    No link is followed, and what has several names counts once. Folders nested too deep count as endlessly much.
    """
    total = 0
    seen: set[tuple[int, int]] = set()
    with suppress(OSError):
        for status in _everything(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), 0):
            if status is None:
                return _ENDLESS
            key = status.st_dev, status.st_ino
            if key not in seen:
                total += max(_LEAST, status.st_blocks * 512)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                seen.add(key)
    return total


def _everything(folder: int, depth: int) -> Iterator[os.stat_result | None]:
    """The status of all that is below an open folder, which it closes; None for what is too deep."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):  # gone meanwhile
                    status = entry.stat(follow_symlinks=False)
                    yield status if depth < _DEPTH else None
                    if stat.S_ISDIR(status.st_mode):
                        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                        yield from _everything(os.open(entry.name, flags, dir_fd=folder), depth + 1)
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class FolderUse:
    """What calls fill: a folder, and what it holds, as their agents are told."""

    folder: Path
    holds: str = "The workspace"


class Quota:
    """The bound of one workspace: `most` bytes on disk; 0 bounds nothing."""

    def __init__(self, room: FolderUse, most: int) -> None:
        self._room = room
        self._most = most
        self._tries: int | None = None
        """Tries left to make room; None while there is room."""

    async def hold(self, run: Callable[[], Coroutine[None, None, Outcome]]) -> Outcome:
        """Make a call that may write, unless the workspace is full; stop it once it takes more than it may.

        A full workspace refuses one call, so that its agent knows; those that follow may run as long as they make
        it smaller, so that it can make room.
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
        if not self._tries:
            return self._full("It was not run. Ask the user to make room in the workspace.")
        outcome = await self._watched(run, size)
        if self._tries and await self._usage() >= size:
            self._tries -= 1
        return outcome

    async def _watched(self, run: Callable[[], Coroutine[None, None, Outcome]], most: int) -> Outcome:
        task = asyncio.create_task(run())
        pause = _LOOK
        try:
            while not (await asyncio.wait({task}, timeout=pause))[0]:
                began = time.monotonic()
                if await self._usage() > most:
                    if self._tries is None:
                        self._tries = _TRIES
                    return self._full("It was stopped. Delete files, or write less.")
                pause = max(_LOOK, _PATIENCE * (time.monotonic() - began))
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _usage(self) -> int:
        return await asyncio.to_thread(disk_usage, self._room.folder)

    def _full(self, what: str) -> Raised:
        size = f"{self._most / (1 << 20):,.0f} MiB"
        return Raised(
            "WorkspaceFull", f"{self._room.holds} takes more than the {size} that it may. {what}", "", ""
        )
