"""What several users of one server have, each separately: opened when first needed, and closed when idle.

Ownership is location: each user has a runtime on a directory of their own, so that no list, search or count can include
another user's data. For each user, one task holds what is open, since the task that opens a runtime must close it. A
runtime with work continues, whether a client is connected or not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from iact.core.errors import UsageError
from iact.core.ports import Clock
from iact.core.views.figures import Figures, Workload
from iact.web.ports import Runtime, Tenant

_LOG: Final = logging.getLogger(__name__)

IDLE: Final = 600.0
"""Seconds without clients and without work after which a user's runtime is closed."""
MOST: Final = 64
"""How many users' runtimes are open at a time."""


@dataclass(slots=True, eq=False)
class _Open:
    """What is open for one user."""

    since: float
    """When `holders` last changed."""
    ready: asyncio.Future[Tenant] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """What the user has, once it is open."""
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is to be closed."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is closed."""
    holders: int = 0
    """How many callers use it."""

    @property
    def idle(self) -> bool:
        """Whether it is not needed now."""
        if self.holders or self.leave.is_set() or not self.ready.done():
            return False

        return self.ready.exception() is not None or not self.ready.result().runtime.at_work


class UserTenants:
    """Implements `web.ports.Tenants`. `open_one`: opens what a user has, by their id. Use it as an asynchronous context
    manager."""

    def __init__(
        self,
        open_one: Callable[[str], AbstractAsyncContextManager[Tenant]],
        clock: Clock,
        *,
        idle: float = IDLE,
        most: int = MOST,
    ) -> None:
        self._open_one = open_one
        self._clock = clock
        self._idle = idle
        self._most = most
        self._open: dict[str, _Open] = {}
        """What is open, by user."""
        self._past = Figures()
        """What sessions did in runtimes that are closed now."""
        self._group = asyncio.TaskGroup()

    @property
    def opened(self) -> frozenset[str]:
        """The users for whom a runtime is open."""
        return frozenset(self._open)

    @property
    def figures(self) -> Figures:
        """See `web.ports.Tenants`."""
        figures = Figures()
        figures.add(self._past)
        for runtime in self._runtimes():
            figures.add(runtime.figures)
        return figures

    def workload(self) -> Workload:
        """See `web.ports.Tenants`."""
        return sum((runtime.workload() for runtime in self._runtimes()), Workload())

    async def refresh_modules(self) -> None:
        """Notify all open sessions of the current catalogue."""
        for runtime in self._runtimes():
            await runtime.refresh_modules()

    def _runtimes(self) -> list[Runtime]:
        """The runtimes that are open and could be opened."""
        opened = (user.ready for user in self._open.values())
        ready = [future for future in opened if future.done() and not future.cancelled()]
        return [future.result().runtime for future in ready if future.exception() is None]

    async def __aenter__(self) -> UserTenants:
        await self._group.__aenter__()
        self._tending = self._group.create_task(self._tend())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tending.cancel()
        for user in self._open.values():
            user.leave.set()

        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if error is None or group.exceptions != (error,):
                raise
            # Returning lets `error` itself propagate, with no group around it.

    @asynccontextmanager
    async def lease(self, user: str) -> AsyncIterator[Tenant]:
        """What a user has, open until the context exits; opened if it is not.

        Raises:
            UsageError: too many users are active, or it can't be opened.
        """
        entry = await self._at(user)
        entry.holders += 1
        try:
            # One caller that gives up must not take it from the others.
            yield await asyncio.shield(entry.ready)
        finally:
            entry.holders -= 1
            entry.since = self._clock.monotonic()

    async def _at(self, user: str) -> _Open:
        """What is open for a user; opened if it is not, for which something else may have to be closed first."""
        while True:
            entry = self._open.get(user)
            if entry is not None and not entry.leave.is_set():
                return entry

            # Everything is looked up again after each wait: others may have been faster.
            if entry is not None:
                await entry.gone.wait()
            elif len(self._open) >= self._most:
                await self._make_room()
            else:
                entry = _Open(self._clock.monotonic())
                self._open[user] = entry
                self._group.create_task(self._hold(user, entry), name=f"what the user {user} has")
                return entry

    async def _make_room(self) -> None:
        """Close what has been idle for longest.

        Raises:
            UsageError: all of it is needed.
        """
        closing = next((entry for entry in self._open.values() if entry.leave.is_set()), None)
        idle = (entry for entry in self._open.values() if entry.idle)
        oldest = closing or min(idle, key=lambda entry: entry.since, default=None)
        if oldest is None:
            raise UsageError(
                f"{self._most} people are using this server, which is its limit. Try again in a few minutes."
            )

        oldest.leave.set()
        await oldest.gone.wait()

    async def _hold(self, user: str, entry: _Open) -> None:
        """Open what a user has, and close it once it is to be closed; in one task, as the runtime requires."""
        ready = entry.ready
        try:
            async with self._open_one(user) as tenant:
                ready.set_result(tenant)
                await entry.leave.wait()
        except Exception as error:
            if ready.done():
                _LOG.exception(
                    "What the user %s has could not be closed in order.", user, extra={"user": user}
                )
            else:
                ready.set_exception(error)
                ready.exception()  # waiting callers get the error; it is fine if there are none
        finally:
            was_open = not ready.cancel() and ready.exception() is None
            if was_open:
                self._past.add(ready.result().runtime.figures)
            entry.leave.set()
            del self._open[user]
            entry.gone.set()

    async def _tend(self) -> None:
        while True:
            await self._clock.sleep(self._idle / 4)
            now = self._clock.monotonic()
            for entry in self._open.values():
                if entry.idle and now - entry.since >= self._idle:
                    entry.leave.set()
