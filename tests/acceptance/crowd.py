"""Simulated users: each has a session, sends one message after another, and reconnects whenever the connection breaks.

Each checks what it receives: every record comes once and in order, whatever happened to the connection, and every
acknowledged message is in the journal once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from iact.core.records.record import Record
from tests.acceptance.product import Server

_AGAIN = 0.2
"""Seconds until a user whose connection broke reconnects."""
_PATIENCE = 300.0


@dataclass
class Person:
    """One user. `way_in`: the gateways to use, the next one after each break."""

    ways_in: Sequence[Server]
    session: str | None = None
    last: int = 0
    """The newest record that it received."""
    acknowledged: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    """Messages that were being sent when the connection broke. They may be in the journal or not."""
    answered: list[float] = field(default_factory=list)
    """The time of each answer."""
    cuts: int = 0
    codes: Counter[int | None] = field(default_factory=Counter)

    async def live(self, leave: asyncio.Event) -> None:
        """Send messages and wait for the answers, until it is time to leave."""
        while not leave.is_set():
            way_in = self.ways_in[self.cuts % len(self.ways_in)]
            socket = None
            try:
                async with connect(
                    f"ws://127.0.0.1:{way_in.port}/ws", max_size=None, proxy=None, open_timeout=_PATIENCE,
                    additional_headers={"Authorization": f"Bearer {way_in.key}"}, ping_interval=None, close_timeout=1,
                ) as socket:  # fmt: skip
                    await self._ask(socket, {"type": "hello", "session": self.session, "since": self.last})
                    while not leave.is_set():
                        await self._talk(socket)
            except (WebSocketException, OSError):
                self.codes[socket.close_code if socket is not None else None] += 1
                self.cuts += 1
                await asyncio.sleep(_AGAIN)

    async def _talk(self, socket: ClientConnection) -> None:
        text = f"Word {len(self.acknowledged) + len(self.unsure)}"
        self.unsure.append(text)
        answers = len(self.answered)
        found = await self._ask(socket, {"type": "say", "text": text})
        self.unsure.remove(text)
        self.acknowledged.append(text)
        self.session = str(found["session"])
        while len(self.answered) == answers:
            await self._hear(socket)

    async def _ask(self, socket: ClientConnection, message: dict[str, object]) -> dict[str, object]:
        await socket.send(json.dumps({**message, "id": "asked"}))
        while True:
            frame = await self._hear(socket)
            if frame.get("id") == "asked":
                if (
                    frame.get("code") == "unwritable"
                ):  # another host has gone on with the session, which is open there
                    raise ConnectionResetError(frame["message"])
                if frame.get("code") == "rate":  # a fast machine: it says to wait, and to send it again
                    await asyncio.sleep(1)
                    return await self._ask(socket, message)
                assert frame["type"] == "ok", frame
                return frame

    async def _hear(self, socket: ClientConnection) -> dict[str, object]:
        async with asyncio.timeout(_PATIENCE):
            frame = json.loads(await socket.recv())
        if frame["type"] in ("record", "records"):
            for record in frame.get("list", [frame]):
                assert record["n"] == self.last + 1, f"record {record['n']} came behind {self.last}"
                self.last = record["n"]
                if (record["kind"], record["agent"]) == ("reply", "/"):
                    self.answered.append(time.monotonic())
        return dict(frame)

    def check(self, records: Sequence[Record]) -> None:
        """Compare the journal with what this user received."""
        said = Counter(one.body for one in records if one.kind == "say")
        assert max(said.values()) == 1, "something is in the journal twice"
        assert set(self.acknowledged) <= said.keys(), "something that was acknowledged is lost"
        assert said.keys() <= {*self.acknowledged, *self.unsure}

    def pause_after(self, moment: float) -> float:
        """Seconds from a moment to the next answer."""
        return next(at for at in self.answered if at > moment) - moment

    def longest_pause(self) -> float:
        """The most seconds between two answers."""
        return max(
            (after - before for before, after in zip(self.answered, self.answered[1:], strict=False)),
            default=0.0,
        )


@asynccontextmanager
async def crowd(ways_in: Sequence[Server], count: int) -> AsyncIterator[list[Person]]:
    """Run `count` users, who leave at the end."""
    people = [Person([*ways_in[one % len(ways_in) :], *ways_in]) for one in range(count)]
    leave = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for one in people:
            group.create_task(one.live(leave))
        try:
            await all_of(people, lambda one: len(one.answered) >= 2)
            yield people
        finally:
            leave.set()


async def all_of(people: Sequence[Person], what: Callable[[Person], bool], within: float = 300.0) -> None:
    """Wait until a condition is true for all users."""
    async with asyncio.timeout(within):
        while not all(map(what, people)):  # noqa: ASYNC110 - hosts and people act in between
            await asyncio.sleep(0.02)
