"""AutoGen: `AssistantAgent.run` with its tool loop, stored with `save_state`; a tool creates and runs a child agent.

`AgentTool`, its own way to call an agent, can't run two calls at the same time, and costs more.
"""

# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.peers.framework import CALLS, KEY, READS, SYSTEM, Ask, Framework, main

_ABOUT = {
    "vision": False, "function_calling": True, "json_output": False, "family": "unknown",
    "structured_output": False, "multiple_system_messages": True,
}  # fmt: skip


class AutoGen(Framework):
    """AutoGen. A dialogue is an agent, which keeps its own messages."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._client = OpenAIChatCompletionClient(
            model=self.model, base_url=url, api_key=KEY, model_info=_ABOUT
        )
        self._agent: AssistantAgent | None = None

    def _made(self, tools: Sequence[object], rounds: int) -> AssistantAgent:
        return AssistantAgent(
            "agent", self._client, tools=list(tools), max_tool_iterations=rounds, system_message=SYSTEM
        )

    def _dialogue(self, agent: AssistantAgent) -> Ask:
        async def ask(text: str) -> str:
            return str((await agent.run(task=text)).messages[-1].content)

        return ask

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        async def read(text: str) -> str:
            return self.lines()

        self._agent = self._made([FunctionTool(read, description=READS)], limit)
        return self._dialogue(self._agent)

    async def caller(self, width: int, depth: int) -> Ask:
        if not depth:
            return await self.answerer()

        async def call(text: str) -> str:
            return await (await self.caller(width, depth - 1))(text)

        return self._dialogue(self._made([FunctionTool(call, description=CALLS)], 2))

    async def answerer(self) -> Ask:
        return self._dialogue(self._made([], 1))

    @property
    def _file(self) -> Path:
        return self.folder / "state.json"

    async def save(self) -> None:
        assert self._agent is not None
        self._file.write_text(json.dumps(await self._agent.save_state()), encoding="utf-8")

    async def resumed(self) -> Ask:
        ask = await self.reader(9)
        assert self._agent is not None
        await self._agent.load_state(json.loads(self._file.read_text(encoding="utf-8")))
        return ask

    async def close(self) -> None:
        await self._client.close()


if __name__ == "__main__":
    main(AutoGen)
