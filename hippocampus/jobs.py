"""The jobs of memory's task, done one after another: statements to remember, and changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from iact.core.errors import MemoryUnavailable
from iact.core.ports import NewStatement
from iact.hippocampus.lifecycle import OpenStore

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Note:
    """A statement to remember for a user."""

    user: str
    statement: NewStatement


class MemoryJob(Protocol):
    """A job for the task."""

    async def run(self, opened: OpenStore) -> None: ...

    def refuse(self, error: MemoryUnavailable) -> None: ...


class AwaitedJob(Generic[Result]):
    """A job with a caller that waits for it."""

    def __init__(self, act: Callable[[OpenStore], Awaitable[Result]]) -> None:
        self._act = act
        self.done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def run(self, opened: OpenStore) -> None:
        """Do it and give the caller the result."""
        result = await self._act(opened)
        if not self.done.done():
            self.done.set_result(result)

    def refuse(self, error: MemoryUnavailable) -> None:
        """Tell the caller that it was not done."""
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """A job that no caller waits for."""

    act: Callable[[OpenStore], Awaitable[None]]

    async def run(self, opened: OpenStore) -> None:
        """Do it."""
        await self.act(opened)

    def refuse(self, error: MemoryUnavailable) -> None:
        """Log that it was not done."""
        _LOG.info("not done: %s", error)
