"""The same work in LangGraph: `python -m benchmarks.tree.peer_langgraph WHAT COUNT`, in an environment that has it.

The tool loop is its prebuilt ReAct agent, without a checkpointer and with its SQLite one; the child agent
is a subgraph, run by a node of its parent. The model answers at once.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import asyncio
import operator
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Send

from benchmarks.tree.measure import DONE, RESULT, TASK, TEXT, Numbers, Stopwatch, peak, report, resident

warnings.filterwarnings("ignore")


class InstantModel(BaseChatModel):
    """A model that makes `steps` tool calls, then answers. `hold`: an event that it waits for before it answers."""

    steps: int = 0
    calls: int = 0
    hold: object = None

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: object, **options: object) -> InstantModel:
        return self

    def _generate(self, messages: object, *given: object, **options: object) -> ChatResult:
        turn = self.calls
        self.calls += 1
        if turn >= self.steps:
            return _said(AIMessage(DONE))
        call = ToolCall(name="read", args={"text": f"file {turn}"}, id=f"call-{turn}")
        return _said(AIMessage(TEXT.format(number=turn), tool_calls=[call]))

    async def _agenerate(self, messages: object, *given: object, **options: object) -> ChatResult:
        made = self._generate(messages)
        if isinstance(self.hold, asyncio.Event):
            await self.hold.wait()
        return made


def _said(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def read(text: str) -> str:
    """Gives some lines."""
    return RESULT


def _asked(text: str) -> dict[str, list[BaseMessage]]:
    return {"messages": [HumanMessage(text)]}


def _steps(count: int, database: Path | None) -> Numbers:
    opened = SqliteSaver.from_conn_string(str(database)) if database is not None else nullcontext()
    with opened as saver:
        graph = create_react_agent(InstantModel(steps=count), [read], checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * count + 10}
        with Stopwatch() as watch:
            result = graph.invoke(_asked(TASK), config)
        assert result["messages"][-1].content == DONE
    stored = sum(one.stat().st_size for one in database.parent.iterdir()) if database is not None else 0
    return {**watch.per(count), "peak": peak(), "file": stored / count}


def reading(count: int) -> Numbers:
    """Steps of one agent with a tool. Nothing is stored."""
    return _steps(count, None)


def storing(count: int) -> Numbers:
    """The same with every step stored in SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        return _steps(count, Path(folder) / "checkpoints.db")


class State(TypedDict):
    """The state of the parent: the children's replies."""

    replies: Annotated[list[str], operator.add]


def children(count: int) -> Numbers:
    """A parent with a node that runs a child agent as a subgraph, `count` times. Each answers at once."""
    child = create_react_agent(InstantModel(), [])

    def call(state: State) -> dict[str, Sequence[str]]:
        asked = [child.invoke(_asked(f"Do part {number}.")) for number in range(count)]
        return {"replies": [one["messages"][-1].content for one in asked]}

    builder = StateGraph(State)
    builder.add_node("call", call)
    builder.add_edge(START, "call")
    builder.add_edge("call", END)
    graph = builder.compile()
    with Stopwatch() as watch:
        result = graph.invoke({"replies": []})
    assert result["replies"] == [DONE] * count
    return watch.per(count)


async def _agents(count: int) -> Numbers:
    hold = asyncio.Event()
    model = InstantModel(hold=hold)
    child = create_react_agent(model, [])

    async def call(state: Mapping[str, int]) -> dict[str, Sequence[str]]:
        made = await child.ainvoke(_asked(f"Do part {state['number']}."))
        return {"replies": [made["messages"][-1].content]}

    def fan_out(state: State) -> list[Send]:
        return [Send("call", {"number": number}) for number in range(count)]

    builder = StateGraph(State)
    builder.add_node("call", call)
    builder.add_conditional_edges(START, fan_out, ["call"])
    builder.add_edge("call", END)
    graph = builder.compile()
    before = resident()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(graph.ainvoke({"replies": []}))
        async with asyncio.timeout(120):
            while model.calls < count:  # noqa: ASYNC110 - until they are in the model
                await asyncio.sleep(0.01)
        thinking = resident()
        hold.set()
    assert running.result()["replies"] == [DONE] * count
    return {"thinking": (thinking - before) / count, "process": peak()}


def agents(count: int) -> Numbers:
    """The memory of `count` child agents while all wait for the model at the same time. None remains afterwards."""
    return asyncio.run(_agents(count))


WHAT: Final[Mapping[str, Callable[[int], Numbers]]] = {
    one.__name__: one for one in (reading, storing, children, agents)
}

if __name__ == "__main__":
    report(WHAT[sys.argv[1]](int(sys.argv[2])))
