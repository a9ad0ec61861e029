"""An MCP client for tests: the official SDK's, connected to the real `iact mcp` or `iact serve`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientRequestContext, ElicitationFnT
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Request, RequestParams, Result
from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from tests.acceptance.product import Product
from tests.command import kill, program

TASKS = "io.modelcontextprotocol/tasks"


class TaskCreated(Result):
    """A task as the result of a call."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


class Task(BaseModel):
    """The state of a task."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=True)

    result_type: str
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int
    status_message: str = ""
    input_requests: dict[str, JsonValue] | None = None
    result: CallToolResult | None = None
    error: dict[str, JsonValue] | None = None
    meta: dict[str, JsonValue] | None = None


class TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, ElicitResult] | None = None


class TaskRequest(Request[TaskParams, str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    """Allows the server to answer with a task."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[TaskCreated]]:
        async def resolve(created: TaskCreated, context: ClaimContext) -> CallToolResult:
            raise AssertionError("these tests look at tasks themselves")

        return [ResultClaim(result_type="task", model=TaskCreated, resolve=resolve)]


@dataclass(slots=True)
class Asked:
    """Answers the server's questions, and records them."""

    result: ElicitResult
    seen: list[ElicitRequestParams] = field(default_factory=list)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.seen.append(params)
        return self.result


@dataclass(frozen=True, slots=True)
class Connected:
    """A client whose server is a process of the product."""

    client: Client

    async def begin(self, **arguments: str) -> TaskCreated:
        """Call the tool, which must answer with a task."""
        created = await self.client.session.call_tool("iact_ask", dict(arguments), allow_claimed=True)
        assert isinstance(created, TaskCreated)
        return created

    async def task(self, identity: str) -> Task:
        """`tasks/get`."""
        request = TaskRequest(method="tasks/get", params=TaskParams(task_id=identity))
        found = await self.client.session.send_request(request, _Raw)
        return Task.model_validate({name: one for name, one in found.model_dump().items() if name != "_meta"})

    async def until(self, identity: str, status: str) -> Task:
        """Poll a task until it has a status. Any other final status fails the test."""
        while (task := await self.task(identity)).status != status:
            assert task.status in {"working", "input_required"}, task
        return task

    async def update(self, identity: str, answers: dict[str, ElicitResult]) -> None:
        """`tasks/update`."""
        params = TaskParams(task_id=identity, input_responses=answers)
        await self.client.session.send_request(TaskRequest(method="tasks/update", params=params), _Raw)

    async def cancel(self, identity: str) -> None:
        """`tasks/cancel`."""
        params = TaskParams(task_id=identity)
        await self.client.session.send_request(TaskRequest(method="tasks/cancel", params=params), _Raw)


class _Raw(BaseModel):
    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class ConnectedProcess(Connected):
    """A client that has started its server."""

    pid: Path

    def kill(self) -> None:
        """SIGKILL to the server."""
        kill(int(self.pid.read_text(encoding="ascii")))


@asynccontextmanager
async def connected_by_http(
    url: str,
    token: str,
    *,
    mode: str = "auto",
    answering: Asked | None = None,
    extensions: Sequence[ClientExtension] = (),
) -> AsyncIterator[Connected]:
    """A client of a server of faces, with a token. `url`: the address of the faces."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(
            transport, mode=mode, elicitation_callback=answering, extensions=list(extensions) or None
        ) as client:
            yield Connected(client)


@asynccontextmanager
async def connected(
    product: Product,
    *arguments: str,
    mode: str = "auto",
    answering: ElicitationFnT | None = None,
    extensions: Sequence[ClientExtension] = (),
) -> AsyncIterator[ConnectedProcess]:
    """A client of `iact mcp`. Its standard error must contain no traceback."""
    place = product.data.parent
    pid, errors = place / f"{product.data.name}.pid", place / f"{product.data.name}.stderr"
    server = StdioServerParameters(
        command="sh",
        args=["-c", f'echo $$ >"{pid}"; exec "$0" "$@"', *program("mcp", *arguments)],
        env=product.environment,
        cwd=place,
    )
    with errors.open("w+") as stream:
        transport = stdio_client(server, errlog=stream)
        async with Client(
            transport, mode=mode, elicitation_callback=answering, extensions=list(extensions) or None
        ) as client:
            yield ConnectedProcess(client, pid)
    assert "Traceback" not in errors.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
