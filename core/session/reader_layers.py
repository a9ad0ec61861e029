"""The layers in which agents of intent 0 run code: one for each agent, made when it first needs one.

Over the files that all agents share lies a layer that one agent sees and that is thrown away when its task ends
(`core.gate.layer`). From its first call in it, everything that the agent reads with a module that has a view of the
workspace of its own goes through the layer, too: it finds what it wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from iact.core.errors import SandboxUnavailable, WorkspaceError
from iact.core.gate.gate import Ticket
from iact.core.language.labels import NAMED_CHANGES
from iact.core.modules.invoker import Modules
from iact.core.modules.registry import Start
from iact.core.ports import OpenLayer, ThrownAwayLayer
from iact.core.session.scheduler import Scheduler
from iact.core.tree.agent import Agent
from iact.core.views.review_noise import NoiseOf


@dataclass(slots=True, eq=False)
class _Open:
    """One agent's layer. `calls`: how many run in it now."""

    layer: ThrownAwayLayer
    calls: int = 0
    renewing: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True, eq=False)
class Visit:
    """A call in an agent's layer."""

    folder: Path
    """Where it works."""
    changed: tuple[str, ...] = ()
    """Once it has ended: the paths that it changed there, without what tools keep beside the work."""


class ReaderLayers:
    """The layers of one session over `folder`. `open_layer`: makes one; None: there are none here."""

    def __init__(
        self, scheduler: Scheduler, modules: Modules, folder: Path, open_layer: OpenLayer | None
    ) -> None:
        self._scheduler = scheduler
        self._modules = modules
        self._folder = folder
        self._open_layer = open_layer
        self._layers: dict[str, _Open] = {}
        self._making: dict[str, asyncio.Lock] = {}
        self._ending: set[_Open] = set()
        """Those that are being thrown away."""

    def works_in_one(self, agent: Agent, ticket: Ticket, start: Start) -> bool:
        """Whether a call is made in the agent's layer, and not in the workspace itself. `start`: how the module of the
        call runs."""
        if ticket.layer:
            return True
        if agent.path not in self._layers or not start.views or ticket.right != "look":
            return False
        return self._scheduler.live.tree.grant_of(agent.path).intent < 1

    @asynccontextmanager
    async def of(self, agent: Agent) -> AsyncIterator[Visit]:
        """The agent's layer, in which calls are made for as long as this is entered.

        Raises:
            SandboxUnavailable: none can be made.
        """
        async with self._making.setdefault(agent.path, asyncio.Lock()):
            found = self._layers.get(agent.path)
            if found is None:
                found = self._layers[agent.path] = _Open(await self._made())

        async with found.renewing:
            if not found.calls:
                # What others changed below since the last call is seen from here on.
                await asyncio.to_thread(found.layer.renew)
            found.calls += 1
        visit = Visit(found.layer.folder)
        try:
            before = await asyncio.to_thread(found.layer.changes)
            yield visit
            visit.changed = await asyncio.to_thread(self._changed, found.layer, before)
        finally:
            found.calls -= 1

    def _changed(self, layer: ThrownAwayLayer, before: Mapping[str, Hashable]) -> tuple[str, ...]:
        """The first paths that are other than before, in order. Blocks."""
        now = layer.changes()
        paths = [path for path in sorted(before.keys() | now.keys()) if before.get(path) != now.get(path)]
        noise = NoiseOf(self._folder)
        return tuple(islice((path for path in paths if not noise.is_beside_work(path)), NAMED_CHANGES + 1))

    async def _made(self) -> ThrownAwayLayer:
        if self._open_layer is None:
            raise SandboxUnavailable("There can be no layer that is thrown away here.")
        try:
            return await asyncio.to_thread(self._open_layer, self._folder)
        except WorkspaceError as error:
            raise SandboxUnavailable(str(error)) from error

    def let_go(self, agent: Agent) -> None:
        """Throw an agent's layer away, in the background: its task has ended."""
        found = self._layers.pop(agent.path, None)
        if found is not None:
            self._ending.add(found)
            self._scheduler.spawn(f"end of the layer of {agent.path}", partial(self._throw_away, found))

    async def _throw_away(self, found: _Open) -> None:
        await self._modules.leave(found.layer.folder)
        await asyncio.to_thread(found.layer.close)
        self._ending.discard(found)

    async def close(self) -> None:
        """Throw away every layer; the modules have been stopped."""
        for found in [*self._layers.values(), *self._ending]:
            await asyncio.to_thread(found.layer.close)
        self._layers.clear()
        self._ending.clear()
