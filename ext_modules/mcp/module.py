"""Any MCP server as an ext-module: its tools are the functions.

All it needs is a folder with a `module.toml` that has an `[mcp]` table; this source runs next to it in the container.
The tools are listed once, at the start, since a manifest does not change while it serves.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from ext_modules.sdk import Call, Function, Module, Result, Value
from ext_modules.sdk.given import GivenParameters
from ext_modules.sdk.loader import needs_of
from ext_modules.sdk.values import JSON

from .elicitation import asker
from .resources import Reading
from .results import Delivery, delivery_of
from .servers import ServerFailed, Servers, Settings
from .tools import MOST, Tool, tools_of

_CARD: Final = tomllib.loads(Path(__file__).with_name("module.toml").read_text(encoding="utf-8"))
_SETTINGS: Final = Settings.of(_CARD["mcp"], needs_of(_CARD.get("needs", {})).secrets)

module = Module(_CARD["name"], _CARD["summary"], keywords=_CARD.get("keywords", [_CARD["name"]]))


class ToolFailed(Exception):
    """The tool reports that it failed; the message is the tool's own."""


@module.lifespan
@asynccontextmanager
async def serving() -> AsyncIterator[None]:
    """Start the server and add its tools."""
    failed: ServerFailed | None = None
    async with asyncio.TaskGroup() as group:
        servers = Servers(_SETTINGS, group)
        try:
            tools = tools_of(await servers.tools())
            for tool in tools:
                module.add(_function(tool, servers))

            # A tool may be called as a function of ours is.
            taken = {tool.name for tool in tools}
            for reading in await servers.readings():
                if reading.name not in taken and len(tools) + 4 <= MOST:
                    module.add(_reading(reading, servers))
            yield
        except ServerFailed as error:
            failed = error  # raised below, outside the group, so that it is the last line of the log
        finally:
            servers.close()
    if failed is not None:
        raise failed


def _function(tool: Tool, servers: Servers) -> Function:
    async def handler(call: Call, arguments: Mapping[str, JSON]) -> Result:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            fraction = progress / total if total else None
            call.progress(message or f"{progress:g}", fraction)

        agent = (call.session, call.agent)
        answer = await servers.call(agent, tool.called, arguments, on_progress, asker(call))
        return _result(call, delivery_of(answer))

    return _made(tool, handler)


def _reading(reading: Reading, servers: Servers) -> Function:
    async def handler(call: Call, arguments: Mapping[str, JSON]) -> Result:
        agent = (call.session, call.agent)
        delivery = await servers.use(agent, reading.work(arguments), asker(call))
        return _result(call, delivery)

    tool = Tool(
        name=reading.name,
        called=reading.name,
        summary=reading.summary,
        documentation=reading.documentation,
        schema=dict(reading.schema),
        impact=0,
        idempotent=True,
    )
    return _made(tool, handler)


def _made(tool: Tool, handler: Callable[[Call, Mapping[str, JSON]], Awaitable[Result]]) -> Function:
    """Make a function from its description and its handler."""
    return Function(
        name=tool.name,
        handler=handler,
        parameters=GivenParameters(tool.schema),
        summary=tool.summary,
        documentation=tool.documentation,
        alias="",
        body="",
        media_type="",
        impact=tool.impact,
        idempotent=tool.idempotent,
        exclusive=False,
        states=(),
        timeout=0,
    )


def _result(call: Call, delivery: Delivery) -> Result:
    """Make the result: the text, or the structured content, or a single artifact. The rest becomes artifacts.

    Raises:
        ToolFailed: the tool reports that it failed.
    """
    if delivery.failed:
        raise ToolFailed(delivery.text or json.dumps(delivery.structured, ensure_ascii=False))

    if not delivery.text and delivery.structured is not None:
        _give(call, delivery.artifacts)
        return Result(delivery.structured, "application/json")
    if not delivery.text and len(delivery.artifacts) == 1:
        return Result(delivery.artifacts[0])

    _give(call, delivery.artifacts)
    if delivery.structured is not None:
        data = json.dumps(delivery.structured, ensure_ascii=False).encode()
        call.artifact(Value(data, "application/json", "structured.json"))
    return Result(delivery.text)


def _give(call: Call, artifacts: list[Value]) -> None:
    for artifact in artifacts:
        call.artifact(artifact)
