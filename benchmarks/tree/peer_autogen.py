"""The same work in AutoGen: `python -m benchmarks.tree.peer_autogen WHAT COUNT`, in an environment that has it.

Its agents keep their messages in memory and store nothing. The model client answers at once.
"""

# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from autogen_core.tools import FunctionTool

from benchmarks.tree.measure import DONE, RESULT, TASK, TEXT, Numbers, Stopwatch, peak, report, resident

Answer = Callable[[int], "str | list[tuple[str, str]]"]
"""The model's reply to its n-th call: a text, or tool calls as (tool, JSON arguments)."""


class InstantClient(ChatCompletionClient):
    """A model client that replies with `answer`. `hold`: an event that it waits for first."""

    def __init__(self, answer: Answer, hold: asyncio.Event | None = None) -> None:
        self._answer, self._hold = answer, hold
        self.calls = 0
        self._usage = RequestUsage(prompt_tokens=0, completion_tokens=0)

    async def create(self, messages: object, **options: object) -> CreateResult:
        said = self._answer(self.calls)
        self.calls += 1
        if self._hold is not None:
            await self._hold.wait()
        if isinstance(said, str):
            return CreateResult(finish_reason="stop", content=said, usage=self._usage, cached=False)
        calls = [
            FunctionCall(id=f"{self.calls}-{index}", name=name, arguments=given)
            for index, (name, given) in enumerate(said)
        ]
        thought = TEXT.format(number=self.calls)
        return CreateResult(
            finish_reason="function_calls", content=calls, usage=self._usage, cached=False, thought=thought
        )

    async def create_stream(self, messages: object, **options: object) -> AsyncGenerator[CreateResult, None]:
        yield await self.create(messages)

    async def close(self) -> None:
        return None

    def actual_usage(self) -> RequestUsage:
        return self._usage

    def total_usage(self) -> RequestUsage:
        return self._usage

    def count_tokens(self, messages: object, **options: object) -> int:
        return 0

    def remaining_tokens(self, messages: object, **options: object) -> int:
        return 1_000_000

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, family="unknown",
            structured_output=False, multiple_system_messages=True,
        )  # fmt: skip


async def read(text: str) -> str:
    """Gives some lines."""
    return RESULT


def _agent(name: str, client: InstantClient, tools: Sequence[object] = (), rounds: int = 1) -> AssistantAgent:
    return AssistantAgent(name, client, tools=list(tools), max_tool_iterations=rounds)


async def reading(count: int) -> Numbers:
    """Steps of one agent with a tool."""

    def answer(turn: int) -> str | list[tuple[str, str]]:
        return DONE if turn == count else [("read", json.dumps({"text": f"file {turn}"}))]

    tool = FunctionTool(read, description="Reads.", name="read")
    agent = _agent("root", InstantClient(answer), [tool], count + 1)
    with Stopwatch() as watch:
        result = await agent.run(task=TASK)
    assert result.messages[-1].content == DONE
    return {**watch.per(count), "peak": peak()}


async def children(count: int) -> Numbers:
    """A root with a tool that creates and runs an agent, called `count` times in one reply. Each answers at once."""

    def answer(turn: int) -> str | list[tuple[str, str]]:
        wanted = [("call", json.dumps({"text": f"Do part {number}."})) for number in range(count)]
        return wanted if turn == 0 else DONE

    async def call(text: str) -> str:
        child = _agent("child", InstantClient(lambda turn: DONE))
        return str((await child.run(task=text)).messages[-1].content)

    tool = FunctionTool(call, description="Calls an agent.", name="call")
    root = _agent("root", InstantClient(answer), [tool], 2)
    with Stopwatch() as watch:
        result = await root.run(task=TASK)
    assert result.messages[-1].content == DONE
    return watch.per(count)


async def agents(count: int) -> Numbers:
    """The memory of `count` agents while all wait for the model at the same time, and after all have answered."""
    hold = asyncio.Event()
    before = resident()
    made = [_agent(f"child{number}", InstantClient(lambda turn: DONE, hold)) for number in range(count)]
    async with asyncio.TaskGroup() as group:
        for agent in made:
            group.create_task(agent.run(task="Do your part."))
        async with asyncio.timeout(120):
            while not all(agent._model_client.calls for agent in made):  # noqa: ASYNC110 - until they are in the model
                await asyncio.sleep(0.01)
        thinking = resident()
        hold.set()
    idle = resident()
    return {"thinking": (thinking - before) / count, "idle": (idle - before) / count, "process": peak()}


WHAT: Final[Mapping[str, Callable[[int], Awaitable[Numbers]]]] = {
    one.__name__: one for one in (reading, children, agents)
}


async def _measure(what: str, count: int) -> Numbers:
    return await WHAT[what](count)


if __name__ == "__main__":
    report(asyncio.run(_measure(sys.argv[1], int(sys.argv[2]))))
