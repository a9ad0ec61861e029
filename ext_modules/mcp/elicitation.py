"""Questions that a server asks its user during a call, forwarded to the session's user.

Forms and addresses are forwarded in the server's own words. The core checks them, shows whose words they are, and
answers if no person is available. A server of an older protocol revision asks on its connection, not as part of a call:
its question belongs to the one call that is running there. If several calls are running, the question is refused.
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
"""Asks a person a question: its text, the schema of the form to fill in, and the address to open."""


async def nobody(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
    """Answer that no one can be asked."""
    return Answer("cancel", reason="There is nobody to ask.")


def asker(call: Call) -> Asker:
    """Return an asker that asks on behalf of a call."""

    async def ask(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
        return await call.ask(message, schema, url=url)

    return ask


@dataclass(slots=True, eq=False)
class _Underway:
    """A running call."""

    ask: Asker
    scopes: set[asyncio.Timeout] = field(default_factory=set)
    """End the questions asked for it when it ends."""


_OWN: Final[ContextVar[_Underway | None]] = ContextVar("own", default=None)
"""The call in whose task this code runs."""


@dataclass(slots=True)
class Elicitation:
    """The questions asked on one connection."""

    _calls: list[_Underway] = field(default_factory=list)

    @contextlib.contextmanager
    def by(self, asker: Asker) -> Iterator[None]:
        """Use `asker` for questions that the server asks inside this context."""
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
        """Forward a question of the server."""
        call = _OWN.get() or self._only_call()
        if call is None:
            return ErrorData(
                code=INVALID_REQUEST, message="No call is under way to which this question belongs."
            )

        schema: Mapping[str, JSON] | None = None
        url = ""
        if isinstance(params, ElicitRequestFormParams):
            schema = params.requested_schema
        else:
            url = params.url

        scope = asyncio.timeout(None)
        try:
            async with scope:
                call.scopes.add(scope)
                answer = await call.ask(params.message, schema, url)
        except TimeoutError:
            return ElicitResult(action="cancel")
        except AskRefused as error:
            return ErrorData(code=INVALID_PARAMS, message=f"The question can't be put to anybody: {error}")
        finally:
            call.scopes.discard(scope)

        if answer.action != "accept" or schema is None:
            return ElicitResult(action=answer.action)
        return ElicitResult.model_validate({"action": "accept", "content": dict(answer.values)})

    def _only_call(self) -> _Underway | None:
        """The call that is running, if it is the only one."""
        return self._calls[0] if len(self._calls) == 1 else None
