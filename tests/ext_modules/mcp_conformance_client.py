"""Our module `mcp` as a client of one server, for the official suite: it asks for the tools, and calls each once or as the
suite says.

python -m tests.ext_modules.mcp_conformance_client URL
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from mcp import MCPError

from ext_modules.mcp.servers import Servers, Settings
from ext_modules.sdk import Answer
from ext_modules.sdk.values import JSON
from iact.core.records.form_fields import form_fields
from iact.core.records.form_values import filled


async def main(url: str) -> None:
    """Use the server as the module does for an agent."""
    async with asyncio.TaskGroup() as group:
        servers = Servers(Settings(url=url), group)
        try:
            for name, arguments in wanted(await servers.tools()):
                try:
                    await servers.call(("session", "/"), name, arguments, told, yes)
                except MCPError as error:
                    print(f"{name}: {error}", file=sys.stderr)  # an agent is told so, and goes on
        finally:
            servers.close()


def wanted(tools: Sequence[Mapping[str, JSON]]) -> Iterator[tuple[str, dict[str, JSON]]]:
    """The calls to make."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    for one in context.get("toolCalls", ()):
        yield one["name"], one["arguments"]
    for tool in () if "toolCalls" in context else tools:
        yield str(tool["name"]), made_up(tool)


def made_up(tool: Mapping[str, JSON]) -> dict[str, JSON]:
    """A number for each parameter: the suite's only tool with some adds two."""
    schema = tool["inputSchema"]
    names = schema.get("properties") if isinstance(schema, dict) else None
    return dict.fromkeys(names, 5) if isinstance(names, dict) else {}


async def yes(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
    """What a person answers who changes nothing in a form, through the core's own reading of it."""
    if schema is None:
        return Answer("accept")
    fields = form_fields(json.dumps(dict(schema)))
    needed = {one.name: made[one.kind] for one in fields if one.required and one.default is None}
    return Answer("accept", filled(fields, needed))


made: dict[str, JSON] = {"text": "text", "number": 5, "integer": 5, "boolean": True}
"""What is written in fields that are needed, by kind."""


async def told(progress: float, total: float | None, message: str | None) -> None:
    """Progress is nothing to the suite."""


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
