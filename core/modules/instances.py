"""The instances of modules that run for one session: found or started, limited in number, stopped.

A module that needs the workspace for writing runs as a *viewer*, which can't write, and as a *worker*. A module whose
manifest says so runs separately for each agent. So this module manages instances by `InstanceKey`, and not whole
modules.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.core.errors import SandboxError
from iact.core.modules.client import ModuleClient
from iact.core.modules.registry import Start
from iact.core.ports import ModuleHost, ModuleInstance, Permit, Report, Right

MOST: Final = 24
"""How many instances of one session run at the same time. For a further one, the instance idle longest is stopped."""


@dataclass(frozen=True, slots=True)
class InstanceKey:
    """One instance of a session."""

    module: str
    right: Right
    """What it may do with the workspace."""
    agent: str = ""
    """The agent that it serves alone; empty: it serves all."""
    copy: Path | None = None
    """The copy of the workspace, or the layer over it, that it works in; None: the workspace itself."""


@dataclass(slots=True, eq=False)
class Running:
    """One running instance, and how it was started."""

    instance: ModuleInstance
    client: ModuleClient
    start: Start
    calls: int = 0
    """How many calls are under way."""
    used: int = 0
    """When it was last called, counted in calls of the session."""
    ending: bool = False
    """Whether it is stopped as soon as no call is under way."""
    served: set[str] = field(default_factory=set)
    """The names under which it was called (`core.modules.state_names`)."""

    async def well(self) -> bool:
        """Whether it can be called. Unless it has just answered, it is asked, and if it does not answer, its host is
        asked."""
        if self.client.fresh or await self.client.serves():
            return True
        return await self.instance.why_lost() is None


def key_of(module: str, start: Start, right: Right, agent: str, copy: Path | None = None) -> InstanceKey:
    """The instance of a module that serves a call of `agent` with this right, possibly in a `copy` of the workspace.

    In a layer that is thrown away ("try"), each agent has its own instance.
    """
    if right == "try":
        return InstanceKey(module, right, agent, copy)

    if not start.views:
        right = "work"
    owner = agent if start.own else ""
    return InstanceKey(module, right, owner, copy)


async def _unlimited() -> SandboxError | None:
    return None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Instances:
    """The instances that run for one session."""

    host: ModuleHost
    session: str
    workspace: Path
    holds: Callable[[InstanceKey], bool]
    """Whether an instance is in use although it is not being called."""
    forget: Callable[[InstanceKey], Awaitable[None]]
    """Called for each dropped instance, before it is stopped."""
    most: int = MOST
    """How many may run."""
    held_once: Callable[[InstanceKey], bool] = lambda key: False
    """Whether an instance was in use, and is no longer."""
    running: dict[InstanceKey, Running] = field(default_factory=dict)
    tell: Callable[[], None] = lambda: None
    """Called whenever the number of running instances changes."""
    permit: Callable[[str, str], Permit] | None = None
    """Returns, for a module and the agent that its instance serves alone (or ""), the function that decides which hosts
    it may reach."""
    refusal: Callable[[], Awaitable[SandboxError | None]] = _unlimited
    """Why no further instance may be started for this session's user; None if one may."""
    _locks: dict[InstanceKey, asyncio.Lock] = field(default_factory=dict)
    _begun: int = 0
    """How many are being started."""
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an instance ends, or a call to one does."""
    _count: itertools.count[int] = field(default_factory=itertools.count)
    """Numbers the calls."""

    def lock(self, key: InstanceKey) -> asyncio.Lock:
        """The lock that must be held to start, check or stop an instance."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def reach(self, key: InstanceKey, report: Report, start: Start) -> Running:
        """Find or start the instance for `key`, running as `start` says.

        Raises:
            SandboxError: it can't be started.
        """
        async with self.lock(key):
            running = self.running.get(key)
            served = set[str]()
            if running is not None and self._is_spent(key, running):
                await self.drop(key)
                # Nobody loses anything by that, so nobody is told.
                served = running.served
                running = None

            if running is not None:
                can_be_called = running.start == start and await running.well()
                if not can_be_called:
                    await self.drop(key)
                elif self.running.get(key) is running:  # not ended meanwhile
                    return running

            await self._room()
            self._begun += 1
            try:
                instance = await self._started(key, report, start)
            finally:
                self._begun -= 1

            running = Running(instance, ModuleClient(instance.target), start, served=served)
            running.used = next(self._count)
            self.running[key] = running
            self.tell()
            return running

    async def _started(self, key: InstanceKey, report: Report, start: Start) -> ModuleInstance:
        permit = None if self.permit is None else self.permit(key.module, key.agent)
        copy = "" if key.copy is None else key.copy.name
        return await self.host.start(
            key.module,
            session=self.session,
            workspace=key.copy or self.workspace,
            report=report,
            digest=start.digest,
            egress=start.egress,
            secrets=start.secrets,
            right=key.right,
            agent=key.agent,
            copy=copy,
            permit=permit,
        )

    def _is_spent(self, key: InstanceKey, running: Running) -> bool:
        """Whether an instance could still have what a person typed into an app that has ended. Nothing may learn that,
        least of all the next app, whose output its agent reads if it doesn't come up."""
        return running.instance.serves_apps and not running.calls and self.held_once(key)

    @property
    def taken(self) -> int:
        """How many are running or being started."""
        return len(self.running) + self._begun

    async def _room(self) -> None:
        """Wait until one more may run; an idle instance is stopped to make room.

        Raises:
            SandboxError: the user's other sessions use all the instances that are allowed.
        """
        while (refusal := await self.refusal()) is not None or self.taken >= self.most:
            idle = [key for key in self.running if self._is_idle(key)]
            if idle:
                # First what holds nothing, then what was not called for longest.
                least_needed = min(idle, key=lambda key: (self.holds(key), self.running[key].used))
                async with self.lock(least_needed):
                    await self.give_up(least_needed)
            elif refusal is not None:
                raise refusal
            else:
                self._freed.clear()
                await self._freed.wait()

    def _is_idle(self, key: InstanceKey) -> bool:
        """Whether nobody calls, starts or stops an instance."""
        return not self.running[key].calls and not self.lock(key).locked()

    def began(self, running: Running) -> None:
        """Note that a call to an instance begins."""
        running.calls += 1
        running.used = next(self._count)

    async def ended(self, key: InstanceKey, running: Running) -> None:
        """Note that a call to an instance has ended."""
        running.calls -= 1
        self._freed.set()
        if running.ending and not running.calls and self.running.get(key) is running:
            await self.give_up(key)

    def move(self, key: InstanceKey, to: InstanceKey, start: Start) -> None:
        """Give an instance a new key that it can serve as well."""
        if to not in self.running:
            running = self.running.pop(key)
            running.start = start
            self.running[to] = running

    async def drop(self, key: InstanceKey) -> None:
        """Stop an instance, if it runs; the next call starts it again."""
        running = self.take(key)
        await self.forget(key)
        if running is not None:
            await self.stop(running)

    def take(self, key: InstanceKey) -> Running | None:
        """Remove an instance, so that no further call reaches it; the caller must stop it."""
        running = self.running.pop(key, None)
        if running is not None:
            self._freed.set()
            self.tell()
        return running

    async def stop(self, running: Running) -> None:
        """Stop an instance that was removed with `take`."""
        await running.client.close()
        await running.instance.stop()

    async def give_up(self, key: InstanceKey) -> None:
        """Drop an instance; if it can't be stopped, the host removes it at the end of the session."""
        with suppress(SandboxError):
            await self.drop(key)

    async def look_after(self, key: InstanceKey) -> None:
        """Drop an instance that no longer serves, unless it is being called: a function may keep its module from
        answering anything else, and the call's own time limit applies."""
        async with self.lock(key):
            running = self.running.get(key)
            if running is None or running.calls:
                return
            if not await running.well():
                await self.give_up(key)

    def of(self, module: str) -> Iterable[InstanceKey]:
        """The running instances of a module."""
        return [key for key in self.running if key.module == module]
