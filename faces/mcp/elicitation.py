"""A question of a session as an MCP client puts it to its user, and the user's answer.

The question is always the person's: a client's model never sees it, and nothing but an explicit yes is a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, get_args

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
from iact.core.session.question_text import schema_of, told
from iact.core.session.session import Session

_ALLOW: Final[dict[str, JSON]] = {"type": "boolean", "title": "Allow it", "default": False}
_DID: Final[dict[str, JSON]] = {"type": "boolean", "title": "Yes", "default": False}
_LASTS: Final[tuple[Lasts, ...]] = get_args(Lasts)


def can_ask(client: ClientCapabilities | None, question: Record) -> bool:
    """Whether a client can put a question before its user: as a form, or as an address to open."""
    asks = None if client is None else client.elicitation
    forms = asks is not None and (asks.form is not None or asks.url is None)
    return forms or is_address(client, question)


def is_address(client: ClientCapabilities | None, question: Record) -> bool:
    """Whether a question is put as an address: a module wants one opened, and the client says that it can do that."""
    asks = None if client is None else client.elicitation
    asked = question.content
    return asks is not None and asks.url is not None and isinstance(asked, FormAsk) and bool(asked.url)


def key_of(question: Record) -> str:
    """The name of a question. A session never has a second one of that name."""
    return f"question-{question.n}"


def request_of(session: str, question: Record, client: ClientCapabilities | None) -> ElicitRequest:
    """A question of a session, as the client's user is shown it."""
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
    """Carry the user's answer to the session. One that comes too late is dropped."""
    given = result.content or {}
    allow = result.action == "accept" and given.get("allow") is True
    try:
        if isinstance(question.content, HostAsk):
            lasts: Lasts = next((one for one in _LASTS if one == given.get("for")), "once")
            await session.clear_host(question.n, allow, lasts)
        elif isinstance(question.content, FormAsk):
            form = bool(question.content.fields)
            # An address has no content: that its user is to open it is the yes.
            filled = result.action == "accept" and (form or allow or is_address(client, question))
            values: dict[str, JSON] = {name: _json(value) for name, value in given.items()} if form else {}
            await session.answer_form(question.n, "accept" if filled else "decline", values)
        else:
            await session.clear(question.n, allow)
    except UsageError:
        return  # its time is over, or somebody else answered


async def answer_all(
    session: Session,
    waiting: Iterable[Record],
    results: Mapping[str, object] | None,
    client: ClientCapabilities | None,
) -> None:
    """Carry the answers that came to those of the questions that still wait; the rest is nobody's."""
    for question in waiting:
        result = (results or {}).get(key_of(question))
        if isinstance(result, ElicitResult):
            await answer(session, question, result, client)


def _json(value: str | float | bool | list[str] | None) -> JSON:
    return [*value] if isinstance(value, list) else value
