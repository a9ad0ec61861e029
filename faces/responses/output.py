"""The items of a response, made only from the session's records.

A turn of the root is a message: the whole text if it is the answer, otherwise the text before its first action. A question
that waits for a person is a call of the function `iact_clearance`, with the whole call as its arguments, if the client
declares that function, and otherwise a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.errors import UsageError
from iact.core.ports import JSON, Usage
from iact.core.records.dialogue import Reply, Say, Turn
from iact.core.records.record import Record
from iact.core.views.ending import outcome_of, verdict_json, verdict_on
from iact.core.views.question_text import about, told
from iact.faces.asked_text import asked_text
from iact.faces.client_tools import called_tool
from iact.faces.failure import WorkFailure, failure_of
from iact.faces.message import question_id
from iact.faces.root_text import SaidOnce

QUESTION: Final = "iact_clearance"
"""The function whose calls represent questions to the client."""

_RESPONSE: Final = re.compile(r"resp_(.{1,120})_(\d{1,9})")
_ITEM: Final = re.compile(r"(?:msg|mcp)_(resp_.{1,120}_\d{1,9})_\d{1,9}|fc_(.{1,120}_\d{1,9})")


@dataclass(frozen=True, slots=True)
class ResponsePlace:
    """The content of a response's id. `record`: the record of the message or answer that started the response."""

    session: str
    record: int

    @property
    def id(self) -> str:
        """The id for clients."""
        return f"resp_{self.session}_{self.record}"


def place_of(identity: str) -> ResponsePlace:
    """Parse the id of a response.

    Raises:
        UsageError: it is not the id of a response.
    """
    found = _RESPONSE.fullmatch(identity)
    if found is None:
        raise UsageError(f"There is no response {identity[:100]!r}.")
    return ResponsePlace(found[1], int(found[2]))


def asked_by(call_id: str) -> str:
    """The id of a response in the session of a question, derived from the question's id."""
    place, _, _digest = call_id.removeprefix("call_").rpartition("_")
    return f"resp_{place}"


def response_with(item: str | None) -> str | None:
    """The response that an item belongs to, derived from the item's id."""
    found = _ITEM.fullmatch(item or "")
    return (found[1] or f"resp_{found[2]}") if found is not None else None


def message_item(response: ResponsePlace, n: int, text: str, *, status: str = "completed") -> dict[str, JSON]:
    """Return a message. `n`: its place among the items."""
    parts: list[JSON] = (
        [] if status == "in_progress" else [{"type": "output_text", "text": text, "annotations": []}]
    )
    return {
        "type": "message",
        "id": f"msg_{response.id}_{n}",
        "status": status,
        "role": "assistant",
        "content": parts,
    }


def question_item(session: str, question: Record) -> dict[str, JSON]:
    """Return a question, in full."""
    arguments = {
        "question": told(question), "agent": question.agent, **about(question),
        "answer_with": 'a function_call_output: "allow" or "deny"',
    }  # fmt: skip
    return _call_item(session, question, QUESTION, arguments)


def tool_item(session: str, question: Record) -> dict[str, JSON]:
    """Return the call of a tool of the client's own."""
    called = called_tool(question)
    assert called is not None
    name, arguments = called
    return _call_item(session, question, name, dict(arguments))


def _call_item(session: str, question: Record, name: str, arguments: Mapping[str, object]) -> dict[str, JSON]:
    return {
        "type": "function_call",
        "id": f"fc_{session}_{question.n}",
        "call_id": question_id(session, question),
        "name": name,
        "arguments": json.dumps(arguments, ensure_ascii=False),
        "status": "completed",
    }


def asked_in_words(session: str, waiting: Sequence[Record], shown: str = "") -> Record | None:
    """The question that a client is shown that is not asked by calls: the oldest; None if none waits.

    `shown`: the id of the question that it was shown before, which stays the same if an older one comes up since.
    """
    questions = [one for one in waiting if called_tool(one) is None]
    before = [one for one in questions if question_id(session, one) == shown]
    return next(iter([*before, *questions]), None)


def question_text(session: str, start: Record, waiting: Sequence[Record], shown: str = "") -> str:
    """The question of `asked_in_words` as a text; empty if none waits.

    `start`: the record of the message or answer that began the response.
    """
    question = asked_in_words(session, waiting, shown)
    if question is None:
        return ""
    more = sum(called_tool(one) is None for one in waiting) - 1
    later = isinstance(start.content, Say) and start.content.waits
    return asked_text(session, question, more=more, later=later)


def call_items(session: str, waiting: Sequence[Record], *, by_call: bool) -> list[dict[str, JSON]]:
    """The calls that a response ends with: those of the client's tools, and questions if it is asked `by_call`."""
    items = [tool_item(session, one) for one in waiting if called_tool(one) is not None]
    if by_call:
        items += [question_item(session, one) for one in waiting if called_tool(one) is None]
    return items


def texts(records: Iterable[Record]) -> list[str]:
    """The root's messages in order: each turn's prose, and the answer, unless it was said before."""
    once = SaidOnce()
    said = [
        once.text(record)
        for record in records
        if record.agent == "/" and isinstance(record.content, Turn | Reply)
    ]
    return [text for text in said if text]


def clipped(said: Sequence[str], longest: int | None) -> tuple[list[str], bool]:
    """Messages up to a number of characters in all, and whether something was left out. None: no limit."""
    if longest is None:
        return [*said], False
    left = longest
    kept = []
    for text in said:
        if left > 0:
            kept.append(text[:left])
        left -= len(text)
    return kept, left < 0


def reply_of(records: Sequence[Record]) -> Record | None:
    """The root's last answer among records."""
    return next(
        (one for one in reversed(records) if isinstance(one.content, Reply) and one.agent == "/"), None
    )


def usage_fields(used: Usage) -> dict[str, JSON]:
    """The tokens, in the format of this API."""
    return {
        "input_tokens": used.prompt_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens},
        "output_tokens": used.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt_tokens + used.completion_tokens,
    }


def ending(reply: Record | None) -> tuple[str, dict[str, JSON]]:
    """The status of a response, and further fields about its end."""
    if reply is None:
        return "in_progress", {}
    assert isinstance(reply.content, Reply)
    verdict = verdict_on(reply.content)
    told: dict[str, JSON] = {"verdict": verdict_json(verdict)}
    failure = failure_of(reply)
    if failure is not None:
        return "failed", {**told, "error": failed_with(failure)}

    match outcome_of(reply.content):
        case "reached":
            return "completed", told
        case "stopped" if verdict.by == "person":
            return "cancelled", told
        case "stopped":
            return "incomplete", {**told, "incomplete_details": {"reason": "max_output_tokens"}}
        case "partly" | "unknown" | "not_reached" as outcome:
            return "incomplete", {**told, "incomplete_details": {"reason": f"goal_{outcome}"}}
        case "failed":
            return "failed", told


def failed_with(failure: WorkFailure) -> dict[str, JSON]:
    """The error of a failed response."""
    return {"code": failure.kind.code, "message": failure.sentence}


def response_fields(
    response: ResponsePlace,
    *,
    created: int,
    model: str,
    status: str,
    output: Sequence[Mapping[str, JSON]],
    previous: str | None = None,
    usage: Usage | None = None,
    ended: Mapping[str, JSON] | None = None,
    instructions: str | None = None,
    metadata: Mapping[str, str] | None = None,
    background: bool = False,
) -> dict[str, JSON]:
    """Return a response. `created`: seconds since 1970."""
    return {
        "id": response.id,
        "object": "response",
        "created_at": created,
        "status": status,
        "background": background,
        "error": None,
        "incomplete_details": None,
        "instructions": instructions,
        "max_output_tokens": None,
        "metadata": dict(metadata or {}),
        "model": model,
        "output": [dict(one) for one in output],
        "parallel_tool_calls": True,
        "previous_response_id": previous,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": usage_fields(usage) if usage is not None else None,
        **(ended or {}),
    }
