"""A session's question in the form that an MCP client shows its user, and the user's answer.

Questions always go to the person: a client's model never sees them, and only an explicit yes is a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
)

from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.session.hosts import Lasts
from iact.core.session.session import Session
from iact.core.views.consent import SHORTEST, question_digest
from iact.core.views.question_text import schema_of, told

_ALLOW: Final[dict[str, JSON]] = {"type": "boolean", "title": "Allow it", "default": False}
_DID: Final[dict[str, JSON]] = {"type": "boolean", "title": "Yes", "default": False}
_LASTS: Final[tuple[Lasts, ...]] = get_args(Lasts)


def can_ask(client: ClientCapabilities | None, question: Record) -> bool:
    """Whether a client can show its user a question, as a form or as an address to open."""
    asks = None if client is None else client.elicitation
    forms = asks is not None and (asks.form is not None or asks.url is None)
    return forms or is_address(client, question)


def is_address(client: ClientCapabilities | None, question: Record) -> bool:
    """Whether a question is sent as an address: a module wants one opened, and the client declares support for that."""
    asks = None if client is None else client.elicitation
    asked = question.content
    return asks is not None and asks.url is not None and isinstance(asked, FormAsk) and bool(asked.url)


def key_of(question: Record) -> str:
    """The key of a question: its record, and the digest of what the client is shown."""
    return f"question-{question.n}-{question_digest(question)[:SHORTEST]}"


def request_of(session: str, question: Record, client: ClientCapabilities | None) -> ElicitRequest:
    """A session's question as a request to the client's user."""
    asked = question.content
    if is_address(client, question):
        assert isinstance(asked, FormAsk)
        identity = f"{session}-{key_of(question)}"
        address = ElicitRequestURLParams(message=told(question), url=asked.url, elicitation_id=identity)
        return ElicitRequest(params=address)
    if isinstance(asked, FormAsk) and asked.fields:
        form = dict(schema_of(asked.fields))
        return ElicitRequest(params=ElicitRequestFormParams(message=told(question), requested_schema=form))
    properties: dict[str, JSON] = {"allow": _DID if isinstance(asked, FormAsk) else _ALLOW}
    if isinstance(asked, HostAsk):
        lasts: list[JSON] = list(_LASTS)
        properties["for"] = {"type": "string", "title": "For how long", "enum": lasts, "default": "once"}
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "required": ["allow"]}
    return ElicitRequest(params=ElicitRequestFormParams(message=told(question), requested_schema=schema))


async def answer(
    session: Session, question: Record, result: ElicitResult, client: ClientCapabilities | None
) -> None:
    """Pass the user's answer to the session. An answer that comes too late is dropped."""
    given = result.content or {}
    allow = result.action == "accept" and given.get("allow") is True
    seen = question_digest(question)
    try:
        if isinstance(question.content, HostAsk):
            lasts: Lasts = next((one for one in _LASTS if one == given.get("for")), "once")
            await session.clear_host(question.n, allow, lasts, seen=seen)
        elif isinstance(question.content, FormAsk):
            form = bool(question.content.fields)
            # An address has no content: agreeing to open it is the yes.
            filled = result.action == "accept" and (form or allow or is_address(client, question))
            values: dict[str, JSON] = {name: _json(value) for name, value in given.items()} if form else {}
            decision: Literal["accept", "decline"] = "accept" if filled else "decline"
            await session.answer_form(question.n, decision, values, seen=seen)
        else:
            await session.clear(question.n, allow, seen=[seen])
    except UsageError:
        return  # it timed out, or was answered elsewhere


async def answer_all(
    session: Session,
    waiting: Iterable[Record],
    results: Mapping[str, object] | None,
    client: ClientCapabilities | None,
) -> None:
    """Pass the answers on to the questions that still wait. Other answers are dropped."""
    for question in waiting:
        result = (results or {}).get(key_of(question))
        if isinstance(result, ElicitResult):
            await answer(session, question, result, client)


def _json(value: str | float | bool | list[str] | None) -> JSON:
    return [*value] if isinstance(value, list) else value
