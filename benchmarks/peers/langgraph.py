"""LangGraph: `langchain.agents.create_agent` on its graph, stored with its SQLite saver; a tool runs a child agent."""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.peers.framework import CALLS, KEY, READS, SYSTEM, Ask, Framework, main

warnings.filterwarnings("ignore")


class LangGraph(Framework):
    """LangGraph. A dialogue is a list of messages, or a thread in SQLite."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._model = ChatOpenAI(model=self.model, base_url=url, api_key=KEY)
        self._stack = AsyncExitStack()

        @tool(description=READS)
        async def read(text: str) -> str:
            return self.lines()

        self._read = read

    def _agent(self, tools: Sequence[object], saver: AsyncSqliteSaver | None = None) -> Runnable:
        return create_agent(self._model, list(tools), system_prompt=SYSTEM, checkpointer=saver)

    def _dialogue(self, agent: Runnable, limit: int, *, threaded: bool = False) -> Ask:
        config = {"recursion_limit": 3 * limit + 10, "configurable": {"thread_id": "1"} if threaded else {}}
        history: list[AnyMessage] = []

        async def ask(text: str) -> str:
            result = await agent.ainvoke({"messages": [*history, HumanMessage(text)]}, config)
            if not threaded:
                history[:] = result["messages"]
            return str(result["messages"][-1].content)

        return ask

    async def _threaded(self, limit: int) -> Ask:
        opened = AsyncSqliteSaver.from_conn_string(str(self.folder / "checkpoints.db"))
        saver = await self._stack.enter_async_context(opened)
        return self._dialogue(self._agent([self._read], saver), limit, threaded=True)

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return await self._threaded(limit) if stored else self._dialogue(self._agent([self._read]), limit)

    def _calling(self, depth: int) -> Runnable:
        if not depth:
            return self._agent([])
        child = self._calling(depth - 1)

        @tool(description=CALLS)
        async def call(text: str) -> str:
            return await self._dialogue(child, 9)(text)

        return self._agent([call])

    async def caller(self, width: int, depth: int) -> Ask:
        return self._dialogue(self._calling(depth), 9)

    async def answerer(self) -> Ask:
        return self._dialogue(self._agent([]), 9)

    async def resumed(self) -> Ask:
        return await self._threaded(9)

    async def close(self) -> None:
        await self._stack.aclose()


if __name__ == "__main__":
    main(LangGraph)
