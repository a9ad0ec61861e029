"""MCP servers for tests: one made with the `mcp` package, and one that knows only an old protocol revision."""

from __future__ import annotations

from typing import Final

NEW: Final = '''
import asyncio, os, sys
from pathlib import Path
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("everything")
count = 0

@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int = 1) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}

@server.tool()
def count_up() -> str:
    """Counts the calls of this server."""
    global count
    count += 1
    return str(count)

@server.tool()
async def slow(context: Context, steps: int, pause: float) -> str:
    """Takes its time and tells how far it is."""
    try:
        for step in range(steps):
            await context.report_progress(step, steps, f"step {step}")
            await asyncio.sleep(pause)
        return "done"
    except BaseException:
        Path("/tmp/cancelled").touch()
        raise

@server.tool()
def was_cancelled() -> bool:
    """Whether a call of `slow` was."""
    return Path("/tmp/cancelled").exists()

@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\\x89PNG", format="png")

@server.tool()
def environment() -> list[str]:
    """The names of what this server is told."""
    return sorted(os.environ)

@server.tool()
def die() -> str:
    """Ends this server."""
    os._exit(1)

@server.resource("note://today", description="What is to be done.")
def today() -> str:
    return "Water the plants."

@server.resource("note://bytes", mime_type="image/png")
def some_bytes() -> bytes:
    return b"\\x89PNG"

@server.resource("note://of/{name}")
def note_of(name: str) -> str:
    return f"A note of {name}."

@server.prompt(description="Asks for a review.")
def review(code: str, tone: str = "kind") -> str:
    return f"Review this in a {tone} tone: {code}"

if sys.argv[1:] == ["http"]:
    server.run(transport="streamable-http", host="127.0.0.1", port=8123)
else:
    server.run(transport="stdio")
'''

OLD: Final = """
import json, sys

TOOLS = [
    {"name": "shoutLoud", "description": "Shouts.",
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "pattern": "^a"}}, "required": ["text"]}},
    {"name": "not\\u202eall seen", "inputSchema": {"type": "object", "$ref": "#/$defs/T", "$defs": {"T": {"properties": {"x": {"$ref": "#"}}}}}},
]

for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {"jsonrpc": "2.0", "id": asked.get("id")}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "old", "version": "1"}}
    elif method == "tools/list":
        start = int(asked.get("params", {}).get("cursor") or 0)
        answer["result"] = {"tools": TOOLS[start:start + 1], **({"nextCursor": "1"} if start == 0 else {})}
    elif method == "tools/call":
        text = asked["params"]["arguments"]["text"].upper()
        answer["result"] = {"content": [{"type": "text", "text": text}], "isError": text == "A FAILURE"}
    elif "id" in asked:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""
