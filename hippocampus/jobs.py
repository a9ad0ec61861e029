"""What memory's task is given to do, one after another: something to remember, or something to change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from iact.core.errors import MemoryUnavailable
from iact.core.ports import MemoryEvent
from iact.hippocampus.lifecycle import OpenStore

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Note:
    """Something to remember for a user."""

    user: str
    happening: MemoryEvent


class MemoryJob(Protocol):
    """Something that the task shall do in its turn."""

    async def run(self, opened: OpenStore) -> None: ...

    def refuse(self, error: MemoryUnavailable) -> None: ...


class AwaitedJob(Generic[Result]):
    """A job that somebody waits for."""

    def __init__(self, act: Callable[[OpenStore], Awaitable[Result]]) -> None:
        self._act = act
        self.done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def run(self, opened: OpenStore) -> None:
        """Do it and tell who waits."""
        result = await self._act(opened)
        if not self.done.done():
            self.done.set_result(result)

    def refuse(self, error: MemoryUnavailable) -> None:
        """Tell who waits that it was not done."""
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """A job that nobody waits for."""

    act: Callable[[OpenStore], Awaitable[None]]

    async def run(self, opened: OpenStore) -> None:
        """Do it."""
        await self.act(opened)

    def refuse(self, error: MemoryUnavailable) -> None:
        """Leave a line in the log."""
        _LOG.info("not done: %s", error)
