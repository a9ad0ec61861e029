"""Our module `mcp` as a client of one server, for the official suite: it asks for the tools and calls each once.

python -m tests.ext_modules.mcp_conformance_client URL
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from ext_modules.mcp.servers import Servers, Settings
from ext_modules.sdk.values import JSON


async def main(url: str) -> None:
    """Use the server as the module does for an agent."""
    async with asyncio.TaskGroup() as group:
        servers = Servers(Settings(url=url), group)
        try:
            for tool in await servers.tools():
                await servers.call(("session", "/"), str(tool["name"]), arguments(tool), told)
        finally:
            servers.close()


def arguments(tool: Mapping[str, JSON]) -> dict[str, JSON]:
    """A number for each parameter: the suite's only tool with some adds two."""
    schema = tool["inputSchema"]
    names = schema.get("properties") if isinstance(schema, dict) else None
    return dict.fromkeys(names, 5) if isinstance(names, dict) else {}


async def told(progress: float, total: float | None, message: str | None) -> None:
    """Progress is nothing to the suite."""


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
