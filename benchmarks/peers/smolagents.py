"""smolagents: `ToolCallingAgent.run`, whose threads run tools in parallel; a tool creates and runs a child agent.

The list of its steps can be stored, but there is no documented way to continue from it in another process. Its
managed agents can't run two calls at the same time, because the calls share one memory.
"""

# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from smolagents import LogLevel, OpenAIModel, Tool, ToolCallingAgent

from benchmarks.peers.framework import CALLS, KEY, READS, Ask, Framework, main

_THREADS = 400


class _Read(Tool):
    name = "read"
    description = READS
    inputs: ClassVar[dict[str, dict[str, str]]] = {"text": {"type": "string", "description": "Which file."}}
    output_type = "string"

    def __init__(self, framework: Smolagents) -> None:
        super().__init__()
        self._framework = framework

    def forward(self, text: str) -> str:
        return self._framework.lines()


class _Call(Tool):
    name = "call"
    description = CALLS
    inputs: ClassVar[dict[str, dict[str, str]]] = {"text": {"type": "string", "description": "What to do."}}
    output_type = "string"

    def __init__(self, framework: Smolagents, width: int, depth: int) -> None:
        super().__init__()
        self._framework, self._width, self._depth = framework, width, depth

    def forward(self, text: str) -> str:
        return str(self._framework.calling(self._width, self._depth).run(text))


class Smolagents(Framework):
    """smolagents. A dialogue is an agent, which keeps its own steps."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._model = OpenAIModel(self.model, api_base=url, api_key=KEY)
        self._pool = ThreadPoolExecutor(_THREADS)
        self._agent: ToolCallingAgent | None = None

    def _made(self, tools: Sequence[Tool], limit: int, width: int = 1) -> ToolCallingAgent:
        return ToolCallingAgent(
            tools=list(tools), model=self._model, max_steps=limit, verbosity_level=LogLevel.OFF,
            max_tool_threads=width,
        )  # fmt: skip

    def _dialogue(self, agent: ToolCallingAgent) -> Ask:
        async def ask(text: str) -> str:
            loop = asyncio.get_running_loop()
            return str(await loop.run_in_executor(self._pool, lambda: agent.run(text, reset=False)))

        return ask

    def calling(self, width: int, depth: int) -> ToolCallingAgent:
        """An agent that can call others, `depth` levels deep."""
        return self._made([_Call(self, width, depth - 1)] if depth else [], 9, width)

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        self._agent = self._made([_Read(self)], limit)
        return self._dialogue(self._agent)

    async def caller(self, width: int, depth: int) -> Ask:
        return self._dialogue(self.calling(width, depth))

    async def answerer(self) -> Ask:
        return self._dialogue(self._made([], 9))

    async def save(self) -> None:
        assert self._agent is not None
        steps = self._agent.memory.get_succinct_steps()
        (self.folder / "steps.json").write_text(json.dumps(steps, default=str), encoding="utf-8")

    async def close(self) -> None:
        self._pool.shutdown()


if __name__ == "__main__":
    main(Smolagents)
