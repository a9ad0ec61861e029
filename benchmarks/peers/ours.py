"""iact: the whole runtime with its durable journal and the client of real endpoints.

The tool runs in this process, as the peers' tools do.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from benchmarks.peers.endpoint import FAN, WHEN_TOLD
from benchmarks.peers.framework import KEY, Ask, Framework, main
from benchmarks.tree.fakes import InstantHost, InstantModules
from iact.core import Runtime
from iact.core.clock import SystemClock
from iact.core.gate.gate import Ticket
from iact.core.models.openai import ModelEndpoint, OpenAIModel
from iact.core.models.roles import Models
from iact.core.modules.client import OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.ports import ModelProfile, ModuleHost, Report
from iact.core.records.parts import Bounds

_WIDE = 10**9


class Ours(Framework):
    """iact. A dialogue is the root of a session. Every session is stored; this can't be turned off."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._stack = AsyncExitStack()
        self._running: Runtime | None = None

    async def _runtime(self) -> Runtime:
        """The one runtime of this process."""
        if self._running is None:
            self._running = await self._stack.enter_async_context(self._opened())
        return self._running

    def _opened(self) -> AbstractAsyncContextManager[Runtime]:
        profile = ModelProfile(self.model, _WIDE)
        model = OpenAIModel(
            ModelEndpoint(url=self.url, key=KEY, direct=True),
            profile=profile,
            clock=SystemClock(),
            rng=random.Random(1),
        )
        self._stack.push_async_callback(model.close)
        bounds = Bounds(depth=128, agents=10**4, turns=10**6, tokens=_WIDE, activation=10.0**6)

        def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
            return _Counted(self)

        return Runtime(
            self.folder, Models({"smart": model}), InstantHost(), bounds=bounds, open_modules=open_modules
        )

    async def _dialogue(self, name: str | None = None) -> Ask:
        session = await (await self._runtime()).open(name)

        async def ask(text: str) -> str:
            return (await session.ask(text)).body

        return ask

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return await self._dialogue()

    async def caller(self, width: int, depth: int) -> Ask:
        return await self._dialogue()

    async def answerer(self) -> Ask:
        return await self._dialogue()

    async def many(self, count: int) -> Callable[[], Awaitable[Sequence[str]]]:
        """Create children of the root of one session."""
        ask = await self._dialogue()

        async def ask_all() -> Sequence[str]:
            return [await ask(FAN.format(count=count, how=WHEN_TOLD))]

        return ask_all

    async def resumed(self) -> Ask:
        found = [one.name for one in (self.folder / "sessions").iterdir()]
        return await self._dialogue(found[0])

    async def close(self) -> None:
        await self._stack.aclose()


class _Counted(InstantModules):
    """The module in memory. Counts its calls."""

    def __init__(self, framework: Ours) -> None:
        self._framework = framework

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        self._framework.lines()
        return await super().call(ticket, call, on_output=on_output, on_artifact=on_artifact, report=report)


if __name__ == "__main__":
    main(Ours)
