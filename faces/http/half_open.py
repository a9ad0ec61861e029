"""Connections whose request doesn't arrive: each ends after ten seconds, and the oldest ends when there are too many.

Any program that reaches the server can open connections and send nothing, or half a request. Without a limit on their
time and number they would keep everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SECONDS: Final = 10.0
"""How long the head of a request may take, and how long nothing of its body may arrive."""
MOST: Final = 256
"""The most connections of one server that wait for the head of a request."""

_Protocol: Any = AutoHTTPProtocol


class HalfOpenConnections:
    """The connections of one server that wait for the head of a request, the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[TimelyProtocol, None] = {}

    def add(self, connection: TimelyProtocol) -> None:
        """Add a connection. If there are too many now, the oldest ends."""
        self._waiting[connection] = None
        if len(self._waiting) > MOST:
            next(iter(self._waiting)).give_up()

    def discard(self, connection: TimelyProtocol) -> None:
        """Remove a connection whose request has arrived, or that is gone."""
        self._waiting.pop(connection, None)


class TimelyProtocol(_Protocol):  # type: ignore[misc]
    """uvicorn's protocol, with limits on how long a request may take to arrive."""

    half_open: HalfOpenConnections
    """Set by a subclass for each server."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            # It is between two requests: the next head has begun to arrive.
            if self._timer is None:
                self._wait_for_head()
            return

        self._stop_waiting()
        if self.cycle.more_body:
            self._timer = self.loop.call_later(SECONDS, self._body_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """End the connection at once."""
        self._stop_waiting()
        self.transport.abort()

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(SECONDS, self.give_up)
        self.half_open.add(self)

    def _stop_waiting(self) -> None:
        self.half_open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _body_is_late(self) -> None:
        if self.flow.read_paused:  # we are the ones who don't read
            self._timer = self.loop.call_later(SECONDS, self._body_is_late)
        else:
            self.give_up()


def timely_protocol() -> type[TimelyProtocol]:
    """Return the protocol for the connections of one server."""
    return type("ServerProtocol", (TimelyProtocol,), {"half_open": HalfOpenConnections()})
