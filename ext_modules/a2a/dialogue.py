"""One message to an agent and its result: followed as a stream if the agent supports it, and polled otherwise.

When the caller stops waiting, for whatever reason, the task is cancelled: no agent should work on a result that is not
wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseError

from ext_modules.sdk import Call

from .address import Address, without_tokens
from .task_updates import ENDED, TaskUpdates
from .transport import AgentFailed, EgressTransport

_CARD_WITHIN: Final = 30.0
_GIVING_UP: Final = 2.0
"""Seconds for an agent to name its task, and again to accept the cancellation when the caller stops waiting."""
_FIRST, _LONGEST = 0.2, 5.0
"""Seconds between two polls of a task."""


@asynccontextmanager
async def reached(address: Address) -> AsyncIterator[httpx.AsyncClient]:
    """Open an HTTP client for an address."""
    async with httpx.AsyncClient(
        transport=EgressTransport(address.host, address.token),
        trust_env=False,
        follow_redirects=False,
        timeout=None,
    ) as http:
        yield http


async def card_at(call: Call, address: Address, http: httpx.AsyncClient) -> AgentCard:
    """Fetch the agent's card.

    Raises:
        AgentFailed: there is none, or it names another host for messages.
    """
    try:
        async with call.limit(_CARD_WITHIN):
            with _explained(address):
                card = await A2ACardResolver(http, address.base).get_agent_card()
    except TimeoutError as error:
        raise AgentFailed(f"{address.host} gave no agent card within {_CARD_WITHIN:g} s.") from error

    here = [interface for interface in card.supported_interfaces if address.leads_on_to(interface.url)]
    if not here:
        urls = [interface.url[:200] for interface in card.supported_interfaces[:3]]
        raise AgentFailed(
            f"The agent card at {address.host} names {', '.join(urls) or 'no address'}; "
            f"its messages go to {address.host} only."
        )

    # The library chooses among those that are left.
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(here)
    return card


class Dialogue:
    """The messages to one agent in one call."""

    def __init__(self, call: Call, address: Address, http: httpx.AsyncClient, card: AgentCard) -> None:
        self._call = call
        self._address = address

        streams = card.capabilities.streaming
        config = ClientConfig(
            httpx_client=http,
            streaming=streams,
            polling=not streams,
            supported_protocol_bindings=[TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON],
        )
        with _explained(address):
            self._client: Client = ClientFactory(config).create(card)

    async def say(self, text: str, *, task: str, context: str, within: float) -> TaskUpdates:
        """Send a message, and follow the task until it ends or asks something.

        Raises:
            AgentFailed: it did neither within `within` seconds, or did not answer as an agent does.
        """
        updates = TaskUpdates(task=task, context=context)
        try:
            async with self._call.limit(within):
                await self._followed(text, updates)
        except TimeoutError as error:
            outcome = await self._cancel(updates)
            raise AgentFailed(f"The agent was not done within {within:g} s; {outcome}") from error
        except (AgentFailed, asyncio.CancelledError):
            await self._cancel(updates)
            raise
        return updates

    async def _followed(self, text: str, updates: TaskUpdates) -> None:
        """Send a message and follow the task. If cancelled early, wait for the task's name, needed to cancel it."""
        named = asyncio.Event()

        async def follow() -> AgentFailed | None:
            try:
                with _explained(self._address):
                    await self._follow(text, updates, named)
            except AgentFailed as error:
                return error
            finally:
                named.set()
            return None

        async with asyncio.TaskGroup() as group:
            following = group.create_task(follow())
            try:
                await asyncio.wait([following])
            except asyncio.CancelledError:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GIVING_UP):
                        await named.wait()
                raise
        error = following.result()
        if error is not None:
            raise error

    async def _follow(self, text: str, updates: TaskUpdates, named: asyncio.Event) -> None:
        """Send a message and follow its task. `named`: set once the task's name is known."""
        message = Message(
            message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=text)], task_id=updates.task,
            context_id=updates.context,
        )  # fmt: skip
        async with contextlib.aclosing(_events(self._client, message)) as events:
            async for event in events:
                progress = updates.take(event)
                if progress:
                    self._call.progress(without_tokens(progress))
                if updates.task:
                    named.set()
                await self._call.drain()

        # An agent that does not stream, or whose stream broke off, is asked again.
        pause = _FIRST
        while not updates.rests:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST)
            if not updates.task:
                raise AgentFailed("The agent answered with neither a message nor a task.")
            updates.whole(await self._client.get_task(GetTaskRequest(id=updates.task)))

    async def _cancel(self, updates: TaskUpdates) -> str:
        """Cancel a task whose result is no longer wanted. Returns a phrase that says whether it worked."""
        if not updates.task or updates.replied or updates.state in ENDED:
            return "no task of it is known."
        with contextlib.suppress(AgentFailed, TimeoutError):
            async with asyncio.timeout(_GIVING_UP):
                with _explained(self._address):
                    await self._client.cancel_task(CancelTaskRequest(id=updates.task))
                return "its task was cancelled."
        return "its task could not be cancelled."


async def _events(client: Client, message: Message) -> AsyncGenerator[StreamResponse, None]:
    async for event in client.send_message(SendMessageRequest(message=message)):
        yield event


@contextlib.contextmanager
def _explained(address: Address) -> Iterator[None]:
    """Turn the SDK's errors into one sentence. A server can send anything, so reading it can fail in many ways."""
    try:
        yield
    except A2AClientError as error:
        raise AgentFailed(f"{address.host} does not answer as an agent does: {_short(error)}") from error
    except A2AError as error:
        raise AgentFailed(f"The agent at {address.host} refuses: {_short(error)}") from error
    except (httpx.HTTPError, httpx.InvalidURL, ParseError, ValueError, RecursionError) as error:
        raise AgentFailed(
            f"{address.host} does not answer as an agent does ({type(error).__name__}: {_short(error)})."
        ) from error


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
