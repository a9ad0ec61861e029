"""iact as shipped: every word of the model is streamed, the tool is a command in a container, and memory is on.

The work of the container, like that of the endpoint, is not in the processor time of this process.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.peers.endpoint import TOKENS
from benchmarks.peers.framework import KEY, Ask, Framework, main
from iact.core import Session
from iact.core.views.events import RecordAppended
from iact.settings import BoundSettings, Settings
from iact.wiring import open_runtime


class Shipped(Framework):
    """iact as shipped. A dialogue is the root of a session, opened as by the command line, but with higher bounds."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._stack = AsyncExitStack()

    async def _dialogue(self, name: str | None = None) -> Ask:
        bounds = BoundSettings(turns=10**5, tokens=10**9)
        settings = Settings(
            data=self.folder, base_url=self.url, api_key=KEY, model=TOKENS, context=10**6, bounds=bounds
        )
        running = await self._stack.enter_async_context(open_runtime(settings))
        session = await running.open(name)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        counting = group.create_task(self._count(session))
        self._stack.callback(counting.cancel)

        async def ask(text: str) -> str:
            return (await session.ask(text)).body

        return ask

    async def _count(self, session: Session) -> None:
        """Count every result as a use of the tool."""
        async with session.watch() as events:
            async for event in events:
                if isinstance(event, RecordAppended) and event.record.kind == "result":
                    self.lines()

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return await self._dialogue()

    async def caller(self, width: int, depth: int) -> Ask:
        return await self._dialogue()

    async def answerer(self) -> Ask:
        return await self._dialogue()

    async def resumed(self) -> Ask:
        return await self._dialogue(next((self.folder / "sessions").iterdir()).name)

    async def close(self) -> None:
        await self._stack.aclose()


if __name__ == "__main__":
    main(Shipped)
