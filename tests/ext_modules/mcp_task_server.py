"""An MCP server whose one tool answers with a task: `end` says how it ends. It keeps what it was asked in its file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    ElicitResult,
    InputResponses,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    Tool,
)

LOG = Path(sys.argv[1])
TOLD: list[str] = []
"""The answers to what a task asked."""


def note(line: str) -> int:
    """Keep a line; gives how often it was kept."""
    with LOG.open("a") as log:
        log.write(f"{line}\n")
    return LOG.read_text().splitlines().count(line)


class AnswerParams(RequestParams):
    """Answers to what a task asks."""

    task_id: str
    input_responses: InputResponses


class TaskParams(RequestParams):
    """Names a task; its id is how it ends."""

    task_id: str


async def list_tools(context: ServerRequestContext[None], params: PaginatedRequestParams) -> HandlerResult:
    return ListToolsResult(tools=[Tool(name="work", input_schema={"type": "object"})])


async def call_tool(context: ServerRequestContext[None], params: CallToolRequestParams) -> HandlerResult:
    end = str((params.arguments or {})["end"])
    return {"resultType": "task", "taskId": end, "status": "working", "ttlMs": None, "pollIntervalMs": 1}


async def get(context: ServerRequestContext[None], params: TaskParams) -> HandlerResult:
    looks = note(f"get {params.task_id}")
    if looks == 1 or params.task_id == "never":
        return {"taskId": params.task_id, "status": "working", "statusMessage": f"look {looks}"}
    if params.task_id == "asks" and not TOLD:
        form = {"type": "object", "properties": {"town": {"type": "string"}}}
        ask = {"method": "elicitation/create", "params": {"message": "Where to?", "requestedSchema": form}}
        return {"taskId": "asks", "status": "input_required", "inputRequests": {"q": ask}}
    if params.task_id == "asks":
        done = {"content": [{"type": "text", "text": TOLD[0]}]}
        return {"taskId": "asks", "status": "completed", "result": done}
    ends: dict[str, dict[str, object]] = {
        "completed": {"result": {"content": [{"type": "text", "text": "All done."}]}},
        "failed": {"error": {"code": -32603, "message": "The disk is full."}},
        "input_required": {"inputRequests": {}},
    }
    return {"taskId": params.task_id, "status": params.task_id, **ends.get(params.task_id, {})}


async def update(context: ServerRequestContext[None], params: AnswerParams) -> HandlerResult:
    answer = params.input_responses["q"]
    assert isinstance(answer, ElicitResult)
    TOLD.append(f"told {answer.action} {answer.content}")
    return {"resultType": "complete"}


async def cancel(context: ServerRequestContext[None], params: TaskParams) -> HandlerResult:
    note(f"cancel {params.task_id}")
    return {"resultType": "complete"}


async def main() -> None:
    server: Server[None] = Server("tasks", version="1")
    server.extensions = {"io.modelcontextprotocol/tasks": {}}
    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", AnswerParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
