"""OpenAI Agents SDK: `Runner.run`, `SQLiteSession`, `Agent.as_tool`; without tracing, which would send data out."""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

from pathlib import Path

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.framework import CALLS, KEY, READS, SYSTEM, Ask, Framework, main


class OpenAIAgents(Framework):
    """OpenAI Agents SDK. A dialogue is a list of input items, or a session in SQLite."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        set_tracing_disabled(True)
        self._client = AsyncOpenAI(base_url=url, api_key=KEY)
        self._model = OpenAIChatCompletionsModel(self.model, self._client)

        @function_tool(description_override=READS)
        async def read(text: str) -> str:
            return self.lines()

        self._read = read

    def _agent(self, tools: list[object]) -> Agent:
        return Agent("agent", instructions=SYSTEM, tools=tools, model=self._model)

    def _dialogue(self, agent: Agent, limit: int, session: SQLiteSession | None = None) -> Ask:
        history: list[object] = []

        async def ask(text: str) -> str:
            if session is not None:
                result = await Runner.run(agent, text, session=session, max_turns=limit)
            else:
                given = [*history, {"role": "user", "content": text}]
                result = await Runner.run(agent, given, max_turns=limit)
                history[:] = result.to_input_list()
            return str(result.final_output)

        return ask

    def _session(self) -> SQLiteSession:
        return SQLiteSession("1", self.folder / "sessions.db")

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return self._dialogue(self._agent([self._read]), limit, self._session() if stored else None)

    async def caller(self, width: int, depth: int) -> Ask:
        agent = self._agent([])
        for _ in range(depth):
            agent = self._agent([agent.as_tool("call", CALLS)])
        return self._dialogue(agent, 9)

    async def answerer(self) -> Ask:
        return self._dialogue(self._agent([]), 9)

    async def resumed(self) -> Ask:
        return self._dialogue(self._agent([self._read]), 9, self._session())

    async def close(self) -> None:
        await self._client.close()


if __name__ == "__main__":
    main(OpenAIAgents)
