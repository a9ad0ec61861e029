"""An answer as the tool's result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp_types import CallToolResult, ResourceLink, TextContent

from iact.core.ports import JSON
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.views.ending import outcome_of, verdict_json, verdict_on
from iact.faces.failure import failure_of

SCHEME: Final = "iact://session"
"""The prefix of resource addresses."""


def waits(session: str, why: Sequence[str]) -> CallToolResult:
    """Return the result of work that waits for a person, whom this client can't ask. `why`: what it waits for."""
    text = "\n".join(why)
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content={"session": session, "status": "waiting", "reply": text},
    )


def result_of(session: str, reply: Record, notes: Sequence[str] = ()) -> CallToolResult:
    """Return an answer as the tool's result. `notes`: what else the client is told."""
    assert isinstance(reply.content, Reply)
    going_on = f'To go on in this session, call the tool with session="{session}".'
    link = ResourceLink(
        uri=f"{SCHEME}/{session}/journal", name=f"Journal of session {session}", mime_type="text/markdown"
    )
    structured: dict[str, JSON] = {
        "session": session,
        "status": reply.content.status,
        "reply": reply.body,
        "verdict": verdict_json(verdict_on(reply.content)),
    }
    failure = failure_of(reply)
    if failure is not None:
        structured["error"] = {"code": failure.kind.code, "retry": failure.kind.again}
    return CallToolResult(
        content=[
            TextContent(text=reply.body),
            *(TextContent(text=one) for one in notes),
            TextContent(text=going_on),
            link,
        ],
        structured_content=structured,
        is_error=outcome_of(reply.content) != "reached",
    )
