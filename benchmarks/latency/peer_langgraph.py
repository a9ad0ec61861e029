"""The same work with LangGraph's prebuilt ReAct agent: `python -m benchmarks.latency.peer_langgraph`.

Prints a line of JSON, for one call per turn and for one layer per turn: seconds, tokens and model calls by count.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as as_tool
from langgraph.prebuilt import create_react_agent

from benchmarks.latency.work import ANSWER, COUNTS, SCHEMAS, THOUGHT, Measured, Meter, goal, tool, waves

warnings.filterwarnings("ignore")


class TimedModel(BaseChatModel):
    """A model that makes the calls of `turns` and then answers, each time after the time that a model takes."""

    turns: list[list[int]]
    meter: object
    said: int = 0

    @property
    def _llm_type(self) -> str:
        return "timed"

    def bind_tools(self, tools: object, **options: object) -> TimedModel:
        return self

    def _generate(self, messages: object, *given: object, **options: object) -> ChatResult:
        raise NotImplementedError("it is asked asynchronously only")

    async def _agenerate(
        self, messages: Sequence[BaseMessage], *given: object, **options: object
    ) -> ChatResult:
        turn = self.said
        self.said += 1
        assert isinstance(self.meter, Meter)
        if turn < len(self.turns):
            calls = [
                ToolCall(name="read", args={"part": f"part {number}"}, id=f"call-{number}")
                for number in self.turns[turn]
            ]
            message = AIMessage(THOUGHT.format(number=self.turns[turn][0]), tool_calls=calls)
        else:
            message = AIMessage(ANSWER)
        read = len(SCHEMAS) + sum(len(str(one.content)) for one in messages)
        await self.meter.think(read, len(str(message.content)) + len(json.dumps(message.tool_calls)))
        return ChatResult(generations=[ChatGeneration(message=message)])


@as_tool
async def read(part: str) -> str:
    """Reads a part."""
    return await tool()


async def react(count: int, *, together: bool) -> Measured:
    """Run one agent. `together`: the calls of a layer are in one message."""
    meter = Meter()
    turns = waves(count) if together else [[number] for number in range(count)]
    graph = create_react_agent(TimedModel(turns=turns, meter=meter), [read])
    begin = time.perf_counter()
    result = await graph.ainvoke(
        {"messages": [HumanMessage(goal(count))]}, {"recursion_limit": 3 * count + 10}
    )
    measured = Measured.since(begin, meter)
    assert result["messages"][-1].content == ANSWER
    return measured


async def main() -> None:
    """Measure everything, one after another, after a run to warm up."""
    await react(1, together=False)
    found = {}
    for name, together in (("ReAct in LangGraph", False), ("ReAct in LangGraph, a layer a turn", True)):
        rows = [await react(count, together=together) for count in COUNTS]
        found[name] = [[row.seconds, row.tokens, row.calls] for row in rows]
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
