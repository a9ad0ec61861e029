"""What a server asks its user in the course of a call, put to the person whose session it is.

Forms and addresses go to them as the server words them; the core checks them, shows whose words they are, and answers for
a person who is not there. A server of an older revision asks on its connection and not in answer to a call: its question
belongs to the one call that is under way there, and with several it is nobody's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from mcp.client.context import ClientRequestContext
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)

from ext_modules.sdk import Answer, AskRefused, Call
from ext_modules.sdk.values import JSON

Asker = Callable[[str, Mapping[str, JSON] | None, str], Awaitable[Answer]]
"""Puts a question to a person: its words, the schema of what is to be filled in, and the address to be opened."""


async def nobody(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
    """There is nobody to ask."""
    return Answer("cancel", reason="There is nobody to ask.")


def asker(call: Call) -> Asker:
    """Asks in the name of a call."""

    async def ask(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
        return await call.ask(message, schema, url=url)

    return ask


@dataclass(slots=True, eq=False)
class _Underway:
    """A call that is under way. `scopes`: end what is asked for it, with it."""

    ask: Asker
    scopes: set[asyncio.Timeout] = field(default_factory=set)


_OWN: Final[ContextVar[_Underway | None]] = ContextVar("own", default=None)
"""The call in whose task this runs."""


@dataclass(slots=True)
class Elicitation:
    """What is asked on one connection."""

    _calls: list[_Underway] = field(default_factory=list)

    @contextlib.contextmanager
    def by(self, asker: Asker) -> Iterator[None]:
        """What the server asks while it works in here is asked by `asker`."""
        call = _Underway(asker)
        token = _OWN.set(call)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            _OWN.reset(token)
            for scope in call.scopes:
                scope.reschedule(asyncio.get_running_loop().time())

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """The server asks."""
        call = _OWN.get() or (self._calls[0] if len(self._calls) == 1 else None)
        if call is None:
            return ErrorData(
                code=INVALID_REQUEST, message="No call is under way to which this question belongs."
            )
        form = params if isinstance(params, ElicitRequestFormParams) else None
        url = "" if isinstance(params, ElicitRequestFormParams) else params.url
        scope = asyncio.timeout(None)
        try:
            async with scope:
                call.scopes.add(scope)
                answer = await call.ask(params.message, form.requested_schema if form else None, url)
        except TimeoutError:
            return ElicitResult(action="cancel")
        except AskRefused as error:
            return ErrorData(code=INVALID_PARAMS, message=f"The question can't be put to anybody: {error}")
        finally:
            call.scopes.discard(scope)
        if answer.action != "accept" or form is None:
            return ElicitResult(action=answer.action)
        return ElicitResult.model_validate({"action": "accept", "content": dict(answer.values)})
