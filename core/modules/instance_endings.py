"""Ends what agents may no longer run: calls, the work that they left behind, or the whole instance.

Only a module can end a part of what it does, and it may refuse to. So the smallest end is tried first where others use
the same instance, and an instance that does not confirm is ended as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from iact.core.errors import SandboxError
from iact.core.modules.background import Background, Supervisor
from iact.core.modules.instances import InstanceKey, Instances, Running
from iact.core.modules.observer import Observer
from iact.core.modules.state_names import agent_of
from iact.core.modules.stateful import StatefulInstances

_CONFIRMING: Final = 0.5
"""How many seconds a module has to end what it still runs after its calls."""


@dataclass(slots=True, eq=False)
class CallUnderway:
    """A call that was accepted."""

    key: InstanceKey
    """The instance that serves it."""
    agent: str
    """Whose authority it has."""
    impact: float
    """The impact at which it was allowed."""
    scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    """Ends it when its agent's permissions are reduced."""
    ending: bool = False

    def end(self) -> None:
        """End the call; repeating this has no effect."""
        if not self.ending:
            self.ending = True
            self.scope.reschedule(asyncio.get_running_loop().time())


@dataclass(frozen=True, slots=True)
class _Ending:
    """What is ended of one instance.

    "whole": it is frozen at once, and stopped. "work": the background work of some names, while others use the
    instance. "after calls": its background work now, and the instance itself after its last call.
    """

    of: Literal["whole", "work", "after calls"]
    key: InstanceKey
    running: Running
    whose: frozenset[str] = frozenset()
    """The names (`core.modules.state_names`) whose background work is ended."""


class InstanceEndings:
    """Ends instances of one session. `underway`: the calls of the session, which their owner keeps up to date."""

    def __init__(
        self,
        session: str,
        underway: set[CallUnderway],
        instances: Instances,
        stateful: StatefulInstances,
        observer: Observer,
        supervisor: Supervisor,
    ) -> None:
        self._session = session
        self._underway = underway
        self._instances = instances
        self._stateful = stateful
        self._observer = observer
        self._background = Background(supervisor)

    async def halt(self, agents: Callable[[str], bool], *, most: float, idle: bool) -> None:
        """End whatever some agents may no longer run. Returns when it is frozen; it is stopped afterwards.

        `agents`: whether an agent is one of them. `most`: the highest impact of calls that may go on; an instance with
        a call above it is ended, no matter what else it does. `idle`: also end workers that are not known to hold
        anything for these agents.

        A worker whose calls go on ends its other work, if it can, and is stopped after the last call.
        """
        for underway in self._underway:
            if agents(underway.agent) and underway.impact > most:
                underway.end()

        endings: list[_Ending] = []
        for key, running in self._instances.running.items():
            ending = self._ending(key, running, agents, most=most, idle=idle)
            if ending is not None:
                endings.append(ending)

        async with asyncio.TaskGroup() as group:
            # The whole ones first: they are frozen before anything waits for the answer of a module.
            for ending in sorted(endings, key=lambda ending: ending.of != "whole"):
                group.create_task(self._carry_out(ending))

    async def end_background(self, agents: Callable[[str], bool]) -> None:
        """End what calls of these agents have left running in the background. Everything else goes on.

        A module that has nothing of the kind, or does not confirm in time, is left as it is.
        """
        async with asyncio.TaskGroup() as group:
            for key, running in list(self._instances.running.items()):
                for whose in self._stateful.held(key):
                    if agents(agent_of(whose)):
                        group.create_task(self._end_work(running, whose))

    async def finish(self) -> None:
        """Wait until all that was frozen is stopped."""
        await self._background.finish()

    def _ending(
        self, key: InstanceKey, running: Running, agents: Callable[[str], bool], *, most: float, idle: bool
    ) -> _Ending | None:
        """What must be ended of an instance; None: nothing. The arguments are those of `halt`."""
        calls = [underway for underway in self._underway if underway.key == key]
        if any(agents(call.agent) and call.impact > most for call in calls):
            return _Ending("whole", key, running)

        in_use = self._stateful.held(key)
        theirs = frozenset(whose for whose in in_use if agents(agent_of(whose)))
        others_use_it = not idle and theirs < in_use
        if theirs and others_use_it:
            return _Ending("work", key, running, theirs)

        # A viewer changed nothing. Without `views` the worker also serves calls that only look.
        is_worker = key.right == "work" and (idle or running.start.views)
        if not is_worker:
            return None
        if not calls:
            return _Ending("whole", key, running) if theirs or idle else None

        # An agent's own instance may hold something under every name that it has served.
        if key.agent and agents(key.agent):
            theirs |= {key.agent, *running.served}
        return _Ending("after calls", key, running, theirs) if theirs or idle else None

    async def _carry_out(self, ending: _Ending) -> None:
        match ending.of:
            case "whole":
                await self._freeze(ending.key, ending.running)
            case "work":
                await self._end_part(ending)
            case "after calls":
                await self._end_after_calls(ending)

    async def _freeze(self, key: InstanceKey, running: Running) -> None:
        """Freeze an instance at once; its calls are lost, and it is stopped in the background."""
        if self._instances.running.get(key) is not running:
            return
        self._instances.take(key)
        for underway in self._underway:
            if underway.key == key:
                underway.end()

        with suppress(SandboxError):  # stopping ends it then
            await running.instance.freeze()
        self._background.begin(partial(self._stop, key, running), f"end of {key}")

    async def _stop(self, key: InstanceKey, running: Running) -> None:
        await self._instances.forget(key)
        with suppress(SandboxError):  # the host removes what is left at the end of the session
            await self._instances.stop(running)

    async def _end_part(self, ending: _Ending) -> None:
        """Have an instance end its background work for some names, and keep what it holds for others. If it can't, the
        whole instance is ended."""
        for whose in ending.whose:
            if not await self._end_work(ending.running, whose):
                await self._freeze(ending.key, ending.running)
                return
            self._stateful.let_go(ending.key, whose)

    async def _end_after_calls(self, ending: _Ending) -> None:
        """Have an instance end its background work; if it can't and is in use, the whole instance is ended."""
        ending.running.ending = True
        was_in_use = self._stateful.holds(ending.key)
        await self._observer.forget(ending.key)  # changes of state caused by this are not reported

        for whose in ending.whose:
            has_ended = await self._end_work(ending.running, whose)
            if not has_ended and was_in_use:
                await self._freeze(ending.key, ending.running)
                return
        self._stateful.forget(ending.key)

    async def _end_work(self, running: Running, whose: str) -> bool:
        """Have an instance end its background work for one name. Returns whether it confirmed that in time."""
        return await running.client.end_background(self._session, whose, _CONFIRMING)
