"""However a stream of events ends, its resources are released once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from iact.faces.http.stream import EventResponse

_SCOPES: Final = {
    "old": {"type": "http", "asgi": {}},
    "new": {"type": "http", "asgi": {"spec_version": "2.4"}},
}
"""Before 2.4 a server tells of a client that hung up by a message, since then by an error."""


class Held:
    def __init__(self) -> None:
        self.happened: list[str] = []

    async def lines(self) -> AsyncGenerator[str, None]:
        try:
            self.happened.append("begun")
            yield "data: 1\n\n"
            await asyncio.sleep(0)
            yield "data: 2\n\n"
        finally:
            self.happened.append("closed")

    async def end(self) -> None:
        await asyncio.sleep(0)  # a cancelled task would end here
        self.happened.append("ended")


@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("pieces", [0, 1, 2, 3])
async def test_a_client_that_hangs_up_at_any_piece(scope: str, pieces: int) -> None:
    """Before the first word, in the middle, and after the last."""
    held, sent = Held(), asyncio.Event()
    left = pieces

    async def send(message: Message) -> None:
        nonlocal left
        if not left:
            sent.set()
            if scope == "new":
                raise OSError
            await asyncio.Event().wait()
        left -= 1

    async def receive() -> Message:
        await sent.wait()
        return {"type": "http.disconnect"}

    response = EventResponse(held.lines(), held.end)
    if scope == "new":
        with pytest.raises(ClientDisconnect):
            await response(_SCOPES[scope], receive, send)
    else:
        await response(_SCOPES[scope], receive, send)
    assert held.happened == ["begun", "closed", "ended"][0 if pieces else 2 :]


async def test_one_that_is_told_to_its_end_ends_once() -> None:
    held = Held()

    async def send(message: Message) -> None:
        await asyncio.sleep(0)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nobody hangs up")

    await EventResponse(held.lines(), held.end)(_SCOPES["new"], receive, send)
    assert held.happened == ["begun", "closed", "ended"]
