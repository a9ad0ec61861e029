"""An answer as the tool's result."""

from __future__ import annotations

from typing import Final

from mcp_types import CallToolResult, ResourceLink, TextContent

from iact.core.ports import JSON
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.session.ending import outcome_of, verdict_json, verdict_on
from iact.faces.failure import failure_of

SCHEME: Final = "iact://session"
"""The prefix of resource addresses."""


def result_of(session: str, reply: Record) -> CallToolResult:
    """Return an answer as the tool's result."""
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
        content=[TextContent(text=reply.body), TextContent(text=going_on), link],
        structured_content=structured,
        is_error=outcome_of(reply.content) != "reached",
    )
