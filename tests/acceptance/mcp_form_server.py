"""An MCP server of a stranger's that asks its user in the course of a call; a module's folder holds it as `server.py`.

`book` asks what `form.json` beside it says, as it stands, and gives back what it was answered.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

TOOL = {
    "name": "book", "description": "Books a room.", "annotations": {"destructiveHint": False},
    "inputSchema": {"type": "object", "properties": {}},
}  # fmt: skip


def told() -> Iterator[dict[str, object]]:
    """What the client says, message by message."""
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Serve until the client is gone."""
    said = told()
    for asked in said:
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": asked.get("id")}
        match asked.get("method"):
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "inn", "version": "1"},
                }  # fmt: skip
            case "tools/list":
                answer["result"] = {"tools": [TOOL]}
            case "tools/call":
                form = json.loads(Path(__file__).with_name("form.json").read_text(encoding="utf-8"))
                tell({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": form})
                reply = next(one for one in said if one.get("id") == "q1")
                text = json.dumps(reply.get("result") or reply.get("error"), sort_keys=True)
                answer["result"] = {"content": [{"type": "text", "text": text}]}
            case _:
                answer["error"] = {"code": -32601, "message": "not here"}
        if "id" in asked:
            tell(answer)


def tell(message: dict[str, object]) -> None:
    """Say something to the client."""
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
