"""However a stream of events ends, its resources are released once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from iact.faces.http import stream
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


async def test_a_comment_is_sent_while_no_event_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would end a connection on which nothing comes, and that would end the work."""
    monkeypatch.setattr(stream, "SILENCE", 0.001)
    commented = asyncio.Event()
    bodies: list[bytes] = []

    async def lines() -> AsyncGenerator[str, None]:
        yield "data: 1\n\n"
        await commented.wait()
        yield "data: 2\n\n"

    async def send(message: Message) -> None:
        bodies.append(message.get("body", b""))
        if bodies[-1].startswith(b":"):
            commented.set()

    async def receive() -> Message:
        raise AssertionError("a server of 2.4 tells by an error")

    async def end() -> None:
        bodies.append(b"ended")

    await EventResponse(lines(), end)(_SCOPES["new"], receive, send)
    events = [one for one in bodies if one and not one.startswith(b":")]
    assert events == [b"data: 1\n\n", b"data: 2\n\n", b"ended"]
    assert all(one.endswith(b"\n\n") for one in bodies if one.startswith(b":"))
