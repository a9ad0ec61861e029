"""The same graphs in LangGraph: `python -m benchmarks.plan.peer_langgraph`, with the graphs as JSON on stdin.

Input: {title: {"after": {node: [nodes]}, "seconds": {node: seconds}}}; output: {title: seconds}, one line.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """The state, which is empty."""


async def once(after: Mapping[str, Sequence[str]], seconds: Mapping[str, float]) -> float:
    """Build the graph and run it. Returns the seconds of the run."""
    builder = StateGraph(State)
    last = {one for some in after.values() for one in some}
    for node in after:
        wait = seconds.get(node, 0.0)

        async def work(state: State, wait: float = wait) -> State:
            if wait:
                await asyncio.sleep(wait)
            return {}

        builder.add_node(node, work)
    for node, some in after.items():
        builder.add_edge(list(some) if some else START, node)
        if node not in last:
            builder.add_edge(node, END)
    graph = builder.compile()
    begin = time.perf_counter()
    await graph.ainvoke({}, {"recursion_limit": len(after) + 10})
    return time.perf_counter() - begin


async def main() -> None:
    """Run every graph from stdin, after a small one to warm up."""
    given = json.load(sys.stdin)
    await once({"a": [], "b": ["a"]}, {})
    print(json.dumps({title: await once(one["after"], one["seconds"]) for title, one in given.items()}))


if __name__ == "__main__":
    asyncio.run(main())
