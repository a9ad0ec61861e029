"""A third-party MCP server that asks its user during a call. It is `server.py` in a module's folder.

`book` asks the question in the file `form.json` next to it, unchanged, and returns the answer.
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
    """The client's messages."""
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Serve until the client disconnects."""
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
    """Send a message to the client."""
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
