"""The MCP server on standard input and output, as editors and chat programs start it."""

from __future__ import annotations

from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

from iact.core.session.runtime import Runtime
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.server import mcp_server


async def serve(runtime: Runtime, new: NewSessions) -> None:
    """Serve one client until it closes our input. Standard output is the protocol's alone."""

    async def runtime_of(context: ServerRequestContext[None]) -> Runtime:
        return runtime

    server = mcp_server(runtime_of, new)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
