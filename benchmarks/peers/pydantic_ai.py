"""pydantic-ai: `Agent.run` with `message_history`, stored as the JSON of its messages; an agent delegates in a tool."""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

from pathlib import Path

from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.framework import KEY, SYSTEM, Ask, Framework, main

_NO_LIMIT = UsageLimits(request_limit=None)


class PydanticAI(Framework):
    """pydantic-ai. A dialogue is a list of messages."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._client = AsyncOpenAI(base_url=url, api_key=KEY)
        self._model = OpenAIChatModel(self.model, provider=OpenAIProvider(openai_client=self._client))
        self._history: list[ModelMessage] = []

    def _dialogue(self, agent: Agent, history: list[ModelMessage]) -> Ask:
        async def ask(text: str) -> str:
            result = await agent.run(text, message_history=list(history), usage_limits=_NO_LIMIT)
            history[:] = result.all_messages()
            return str(result.output)

        return ask

    def _reading(self) -> Agent:
        agent = Agent(self._model, instructions=SYSTEM)

        @agent.tool_plain
        async def read(text: str) -> str:
            """Reads a file and gives some of its lines."""
            return self.lines()

        return agent

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return self._dialogue(self._reading(), self._history)

    def _calling(self, depth: int) -> Agent:
        agent = Agent(self._model, instructions=SYSTEM)
        if depth:
            child = self._calling(depth - 1)

            @agent.tool
            async def call(ctx: RunContext[None], text: str) -> str:
                """Calls an agent that does a part of the work."""
                result = await child.run(text, usage=ctx.usage, usage_limits=_NO_LIMIT)
                return str(result.output)

        return agent

    async def caller(self, width: int, depth: int) -> Ask:
        return self._dialogue(self._calling(depth), [])

    async def answerer(self) -> Ask:
        return self._dialogue(Agent(self._model, instructions=SYSTEM), [])

    @property
    def _file(self) -> Path:
        return self.folder / "messages.json"

    async def save(self) -> None:
        self._file.write_bytes(ModelMessagesTypeAdapter.dump_json(self._history))

    async def resumed(self) -> Ask:
        history = ModelMessagesTypeAdapter.validate_json(self._file.read_bytes())
        return self._dialogue(self._reading(), history)

    async def close(self) -> None:
        await self._client.close()


if __name__ == "__main__":
    main(PydanticAI)
