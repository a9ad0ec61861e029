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
    """What is open for one user. `holders`: how many callers use it; `since`: when that number last changed."""

    since: float
    ready: asyncio.Future[Tenant] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    holders: int = 0

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
        self._past = Figures()
        self._group = asyncio.TaskGroup()

    @property
    def opened(self) -> frozenset[str]:
        """The users for whom a runtime is open."""
        return frozenset(self._open)

    @property
    def figures(self) -> Figures:
        """See `web.ports.Tenants`."""
        found = Figures()
        found.add(self._past)
        for one in self._runtimes():
            found.add(one.figures)
        return found

    def workload(self) -> Workload:
        """See `web.ports.Tenants`."""
        return sum((one.workload() for one in self._runtimes()), Workload())

    async def refresh_modules(self) -> None:
        """Notify all open sessions of the current catalogue."""
        for one in self._runtimes():
            await one.refresh_modules()

    def _runtimes(self) -> list[Runtime]:
        ready = [one.ready for one in self._open.values() if one.ready.done() and not one.ready.cancelled()]
        return [one.result().runtime for one in ready if one.exception() is None]

    async def __aenter__(self) -> UserTenants:
        await self._group.__aenter__()
        self._tending = self._group.create_task(self._tend())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tending.cancel()
        for one in self._open.values():
            one.leave.set()
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
        one = await self._at(user)
        one.holders += 1
        try:
            yield await asyncio.shield(one.ready)
        finally:
            one.holders -= 1
            one.since = self._clock.monotonic()

    async def _at(self, user: str) -> _Open:
        while True:
            one = self._open.get(user)
            if one is not None and not one.leave.is_set():
                return one
            if one is not None:
                await one.gone.wait()
            elif len(self._open) < self._most:
                one = self._open[user] = _Open(self._clock.monotonic())
                self._group.create_task(self._hold(user, one), name=f"what the user {user} has")
                return one
            else:
                await self._make_room()

    async def _make_room(self) -> None:
        """Close what has been idle for longest.

        Raises:
            UsageError: all of it is needed.
        """
        closing = next((one for one in self._open.values() if one.leave.is_set()), None)
        oldest = closing or min(
            (one for one in self._open.values() if one.idle), key=lambda one: one.since, default=None
        )
        if oldest is None:
            raise UsageError(
                f"{self._most} people are using this server, which is its limit. Try again in a few minutes."
            )
        oldest.leave.set()
        await oldest.gone.wait()

    async def _hold(self, user: str, one: _Open) -> None:
        try:
            async with self._open_one(user) as tenant:
                one.ready.set_result(tenant)
                await one.leave.wait()
        except Exception as error:
            if one.ready.done():
                _LOG.exception(
                    "What the user %s has could not be closed in order.", user, extra={"user": user}
                )
            else:
                one.ready.set_exception(error)
                one.ready.exception()  # waiting callers get the error; it is fine if there are none
        finally:
            if not one.ready.cancel() and one.ready.exception() is None:
                self._past.add(one.ready.result().runtime.figures)
            one.leave.set()
            del self._open[user]
            one.gone.set()

    async def _tend(self) -> None:
        while True:
            await self._clock.sleep(self._idle / 4)
            now = self._clock.monotonic()
            for one in self._open.values():
                if one.idle and now - one.since >= self._idle:
                    one.leave.set()
