"""A line that begins to swallow bytes at forty random points: nothing is lost, and nothing is said or shown twice.

The client does what the page does (`web/static/js/state/connection.js`): it asks a silent server, gives the connection
up, comes back where it was, and sends a message whose answer was lost again, under the same name. Time goes fifty times
as fast as on the page, at both ends. Only the order of things is checked, so that a slow machine changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Final

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from iact.core.journal import read_journal
from iact.core.session.runtime import Runtime
from iact.web.limits import PING_SECONDS, SILENT_SECONDS
from iact.web.server import WebServer
from tests.core.session.fakes import Asked, runtime
from tests.rounds import rounds
from tests.web.dialling import Message, run
from tests.web.stalling import Direction, StallingProxy

_FASTER: Final = 50
_LOOK: Final = 2.5 / _FASTER
_ASKED: Final = 2
_GIVEN_UP: Final = 5
"""As on the page: how often is looked, after how many looks the server is asked, and after how many it is given up."""
_HANDSHAKE: Final = 1.0
"""Seconds for a connection to be there. They are the machine's own."""
_DIRECTIONS: Final[tuple[tuple[Direction, ...], ...]] = (("up",), ("down",), ("up", "down"))
_SAID: Final = ("Tell me of the moons of Saturn.", "And of those of Jupiter.", "Which is the largest?")


def _answer(asked: Asked) -> str:
    return (
        f"Answer {asked.turn + 1}: "
        + "Titan is larger than Mercury, and has a dense atmosphere. " * 40
        + "End."
    )


class Deaf(Exception):
    """The connection was given up."""


class Person:
    """A client at a line that can stall, with what it was told."""

    def __init__(self, opened: Runtime, server: WebServer, proxy: StallingProxy, origin: str) -> None:
        self._opened = opened
        self._server = server
        self._proxy = proxy
        self._address = origin.replace("http", "ws") + "/ws"
        self._socket: ClientConnection | None = None
        self._names = 0
        self.session: str | None = None
        self.records: list[Message] = []
        self.draft = ""
        self.given_up = 0
        self.patience = _GIVEN_UP

    async def connect(self) -> None:
        """Connect, and go on where the last connection ended."""
        headers = {"Authorization": f"Bearer {self._server.key}"}
        self._socket = await connect(
            self._address,
            additional_headers=headers,
            compression=None,
            proxy=None,
            ping_interval=None,
            open_timeout=_HANDSHAKE,
        )
        await self._ask(type="hello", session=self.session, since=len(self.records))

    async def leave(self) -> None:
        """Leave as a page that is closed does."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def say(self, text: str) -> str:
        """Send a message and return the answer, through as many connections as that takes."""
        once = f"m{len(self.records)}"
        said = 0
        while True:
            try:
                if self._socket is None:
                    await self.connect()
                if not said:
                    told = await self._ask(type="say", text=text, once=once)
                    said = told["n"]
                    self.session = told["session"]
                return await self._reply_after(said)
            except (Deaf, OSError):
                await self._give_up()

    async def _give_up(self) -> None:
        """Leave a connection that swallows bytes. Both ends notice it, and only then the line is good again."""
        self.given_up += 1
        await self.leave()
        self._socket = None
        watched = ["", *(session.id for session in self._opened.sessions())]
        while any(map(self._server.watches, watched)):  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(_LOOK)
        self._proxy.recover()

    async def _ask(self, **message: object) -> Message:
        """Send a request and return its `ok`."""
        self._names += 1
        name = self._names
        await self._send({**message, "id": name})
        while True:
            told = await self._take()
            if told.get("id") == name and told["type"] in ("ok", "error"):
                assert told["type"] == "ok", told
                return told

    async def _reply_after(self, said: int) -> str:
        while True:
            for record in self.records[said:]:
                if record["kind"] == "reply":
                    return str(record["body"])
            await self._take()

    async def _send(self, message: Message) -> None:
        assert self._socket is not None
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed as error:
            raise Deaf from error

    async def _take(self) -> Message:
        """The next message of the server, or a given up connection."""
        assert self._socket is not None
        quiet = 0
        while True:
            try:
                async with asyncio.timeout(_LOOK):
                    told = json.loads(await self._socket.recv())
                break
            except ConnectionClosed as error:
                raise Deaf from error
            except TimeoutError:
                quiet += 1
                if quiet >= self.patience:
                    raise Deaf from None
                if quiet >= _ASKED:
                    self._names += 1
                    await self._send({"type": "ping", "id": self._names})
        assert isinstance(told, dict)
        self._note(told)
        return told

    def _note(self, told: Message) -> None:
        match told["type"]:
            case "session":
                self.session = told["id"] or self.session
            case "record":
                assert told["n"] == len(self.records) + 1, "each record comes once, in order"
                self.records.append(told)
                if told["kind"] == "reply":
                    assert str(told["body"]).startswith(self.draft)
                    self.draft = ""
            case "delta":
                self.draft = told["text"] if told.get("restart") else self.draft + told["text"]


async def _talk(data: Path, point: int | None, directions: tuple[Direction, ...]) -> StallingProxy:
    """A talk over a line that stalls from byte `point` on. Returns the line."""
    proxy = StallingProxy()
    async with (
        runtime(data, _answer, chunk=64) as opened,
        proxy.listening() as origin,
        WebServer(opened, outside=origin) as server,
    ):
        proxy.port = server.port
        if point is not None:
            proxy.stall_at(point, *directions)
        person = Person(opened, server, proxy, origin)
        if point is None:
            person.patience = 10_000  # a slow machine is no line that stalls
        answers = [await person.say(text) for text in _SAID]
        await person.leave()
        assert (point is not None) == (person.given_up > 0)

        sessions = opened.sessions()
        assert len(sessions) == 1, "a message that began a session began no other"
        journal = opened.store.path_of(sessions[0].id)

    records = read_journal(journal).records
    assert [record.body for record in records if record.kind == "say"] == list(_SAID)
    assert [record.body for record in records if record.kind == "reply"] == answers
    shown = [(record["n"], record["kind"]) for record in person.records]
    assert shown == [(record.n, record.kind) for record in records[: len(shown)]]
    return proxy


@pytest.mark.parametrize("seed", range(rounds(40)))
def test_a_line_that_stalls_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    directions = chosen.choice(_DIRECTIONS)

    async def test() -> None:
        whole = await _talk(tmp_path / "whole", None, ())
        monkeypatch.setattr("iact.web.server.PING_SECONDS", PING_SECONDS / _FASTER)
        monkeypatch.setattr("iact.web.server.SILENT_SECONDS", SILENT_SECONDS / _FASTER)
        # The shorter of the directions decides, so that the line stalls in all of them before the talk is over.
        longest = min(whole.passed[direction] for direction in directions)
        await _talk(tmp_path / "stalled", chosen.randrange(longest), directions)

    run(test)
