"""HTTP/1.1 as a model call needs it: one request, one response whose body is read as it comes.

A request goes out in one piece, over a connection that is kept for the next one. What the other side sends is taken
apart by llhttp, in C, and it is never trusted: what is no part of a body is bounded, a body is taken only as fast as
it is read, and whatever ends too early is an error with a reason. Time is bounded by whoever waits.

Not here: redirects, encodings of a body, proxies, HTTP/2. Why this stands beside the SDK: docs/design/transport.md.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Literal

import httptools

from iact.core.models.requests import Origin

_MOST: Final = 1000
"""Requests at a time; who has one more waits."""

_KEPT_SECONDS: Final = 5.0
"""How long a connection is kept without a request: servers and routers let go of it after more than that."""

_KEPT_MOST: Final = 100
_AROUND: Final = 100 * 1024
"""Bytes of a head, or of what may stand between two pieces of a body."""

_AHEAD: Final = 256 * 1024
"""Bytes of a body that wait to be read before no more are taken."""

_REST_SECONDS: Final = 5.0
_REST: Final = 64 * 1024
"""Bytes of a body that nobody reads any more that are taken for the sake of the connection."""

_NEXT_ADDRESS_SECONDS: Final = 0.25
"""RFC 8305, 8: after so long without a connection, the next address of a name is tried as well."""


class BrokenOff(ConnectionError):
    """The other side went away, or did not speak HTTP."""


class ConnectTimeout(Exception):
    """There is no connection within the time for it."""


class HttpConnection(asyncio.Protocol):
    """One connection and, while it is in use, one response.

    idle ─send→ asked ─head→ answering ─end of the body→ whole ─release→ idle; asked, answering ─fault→ failed;
    answering ─release→ unread ─end of the body→ idle.
    """

    def __init__(self, pool: HttpPool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        # As h11 reads, and so the SDK. Two readings of one response harm nobody here: there is one at a time, and a
        # connection over which more comes is closed.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._state: Literal["idle", "asked", "answering", "whole", "unread", "failed"] = "idle"
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.answered = False
        """The other side has said something since it was asked, if only a byte."""
        self.received = 0
        """Bytes of the body."""
        self._fault: BrokenOff | None = None
        self._pieces: list[bytes] = []
        self._ahead = 0
        self._paused = False
        self._around = 0
        self._named = 0
        self._interim = False
        self._to_the_end = False
        self._keeps = False

    # --- for whoever asks -----------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """All of the body was taken."""
        return self._state == "whole" and not self._pieces

    def send(self, request: bytes) -> None:
        """Ask; what comes from here on is the response."""
        self._stop_timer()
        self._reset()
        self._state = "asked"
        if self._transport is None:
            self._fail("the connection was closed")
        else:
            self._transport.write(request)

    async def head(self, until: float) -> None:
        """Wait for status and headers, until a time of the loop.

        Raises:
            BrokenOff: they do not come.
            TimeoutError: they do not come in time.
        """
        while self._state == "asked":
            await self._change(until)
        if not self.status and self._fault is not None:
            raise self._fault

    async def more(self, until: float) -> None:
        """Wait until there is something to take, or nothing will come. Raises TimeoutError."""
        while self._state == "answering" and not self._pieces:
            await self._change(until)

    def take(self) -> bytes:
        """What came of the body since the last time.

        Raises:
            BrokenOff: nothing did, and the body is not complete.
        """
        if not self._pieces:
            if self._fault is not None:
                raise self._fault
            return b""
        taken = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._ahead = [], 0
        self._resume()
        return taken

    def release(self) -> None:
        """Nothing more is wanted of this response; the connection is kept if that costs little."""
        if self._state == "whole":
            self._rest()
        elif self._state == "answering" and self._keeps:
            self._state, self._pieces, self._ahead = "unread", [], 0
            self._start_timer(_REST_SECONDS)
            self._resume()
        else:
            self.close()

    def close(self) -> None:
        """Let go of the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("the connection was closed")

    async def _change(self, until: float) -> None:
        if self._loop.time() >= until:  # something always comes, but not what is waited for
            raise TimeoutError
        self._waiter = waiter = self._loop.create_future()
        timer = self._loop.call_at(until, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _rest(self) -> None:
        self._state, self._pieces = "idle", []
        if self._keeps and self._transport is not None and self._pool.keep(self):
            self._start_timer(_KEPT_SECONDS)
        else:
            self.close()

    def _resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- from the event loop --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._pool.opened(self)

    def data_received(self, data: bytes) -> None:
        if not self._asked():
            self.close()
            return
        self.answered = True
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._spoil(f"what it sends is not HTTP: {error}")
            return
        if self._around > _AROUND or self._named > _AROUND:
            self._spoil(f"it sends more than {_AROUND // 1024} kB around what it has to say")
        elif (self._state == "unread" and self._ahead > _REST) or not (self._asked() or self._keeps):
            self.close()
        elif self._ahead > _AHEAD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _asked(self) -> bool:
        """Whether anything may come."""
        return self._state in ("asked", "answering", "unread")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._pool.closed(self)
        if error is None and self._state == "answering" and self._to_the_end:
            self._state = "whole"
        self._lose(str(error) if error is not None else self._unended())

    def _unended(self) -> str:
        """What a connection that ends here leaves open, in the words of the SDK's transport."""
        if not self.answered:
            return "Server disconnected without sending a response"
        if not self.status:
            return "peer closed connection without sending a complete head"
        length = self.headers.get("content-length")
        missing = (
            "incomplete chunked read"
            if length is None
            else f"received {self.received} bytes, expected {length}"
        )
        return f"peer closed connection without sending complete message body ({missing})"

    def _spoil(self, why: str) -> None:
        """What came is not what may come. A response that is complete stays so."""
        self._fail(why)
        self.close()

    def _lose(self, why: str) -> None:
        self._stop_timer()
        self._pool.forget(self)
        self._fail(why)
        self._keeps = False
        self._wake()

    def _fail(self, why: str) -> None:
        if self._state in ("asked", "answering"):
            self._state, self._fault = "failed", BrokenOff(why)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- from the parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._state != "asked":
            self._keeps = False  # a second response, for which nobody asked

    def on_header(self, name: bytes, value: bytes) -> None:
        self._named += len(name) + len(value)
        if self._state != "asked" or self._named > _AROUND:  # a trailer; or far too much
            return
        key, said = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {said}" if key in self.headers else said

    def on_headers_complete(self) -> None:
        if self._state != "asked":
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:  # RFC 9110, 15.2: the response comes after it
            self._interim = True
            return
        self.status = status
        self._state = "answering"
        self._keeps = self._parser.should_keep_alive()
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self._to_the_end = not chunked and "content-length" not in self.headers

    def on_body(self, piece: bytes) -> None:
        self._around = 0
        self.received += len(piece)
        self._ahead += len(piece)
        if self._state == "answering":
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim, self.headers = False, {}
        elif self._state == "unread":
            self._rest()
        elif self._state == "answering":
            self._state = "whole"


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class HttpPool:
    """Connections to one origin. `connect`: seconds for a new one; `secure`: how others prove who they are, with TLS."""

    def __init__(self, origin: Origin, *, connect: float, secure: ssl.SSLContext | None) -> None:
        self._origin = origin
        self._connect = connect
        self._secure = secure
        self._places = asyncio.Semaphore(_MOST)
        self._open: set[HttpConnection] = set()
        self._idle: dict[HttpConnection, None] = {}  # the newest last
        self._empty: asyncio.Future[None] | None = None

    async def ask(self, request: bytes, *, until: float) -> HttpConnection:
        """Send a request and wait for the head of the response; whoever gets the connection gives it to `done`.

        A connection that was kept may have been closed by the other side just then: if not a byte came back, the
        request goes out again, over a new one.

        Raises:
            OSError: there is no connection, or it broke off.
            ConnectTimeout: there is none in time.
            TimeoutError: no head by then.
        """
        if self._places.locked():
            async with asyncio.timeout_at(until):
                await self._places.acquire()
        else:
            await self._places.acquire()
        connection: HttpConnection | None = None
        try:
            if self._idle:
                connection, _ = self._idle.popitem()
                connection.send(request)
                try:
                    await connection.head(until)
                except BrokenOff:
                    if connection.answered:
                        raise
                else:
                    return connection
            connection = await self._connected(until)
            connection.send(request)
            request = b""  # an agent that waits need not hold all that it said
            await connection.head(until)
        except BaseException:
            if connection is not None:
                connection.close()
            self._places.release()
            raise
        return connection

    def done(self, connection: HttpConnection, *, keep: bool) -> None:
        """A response is not wanted any more. `keep`: what is still to come of it is little."""
        self._places.release()
        if keep:
            connection.release()
        else:
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.close()
        if self._open:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    async def _connected(self, until: float) -> HttpConnection:
        loop = asyncio.get_running_loop()
        host = self._origin.host
        numbers = ":" in host or host.replace(".", "").isdigit()
        try:
            async with asyncio.timeout_at(min(until, loop.time() + self._connect)):
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self, loop),
                    host,
                    self._origin.port,
                    ssl=self._secure,
                    happy_eyeballs_delay=None if numbers else _NEXT_ADDRESS_SECONDS,
                )
        except TimeoutError:
            if loop.time() >= until:
                raise
            raise ConnectTimeout from None
        return connection

    # --- from connections -----------------------------------------------------------------------------

    def opened(self, connection: HttpConnection) -> None:
        self._open.add(connection)

    def closed(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def keep(self, connection: HttpConnection) -> bool:
        """Whether it may wait here for the next request."""
        if len(self._idle) >= _KEPT_MOST:
            return False
        self._idle[connection] = None
        return True

    def forget(self, connection: HttpConnection) -> None:
        """It is not open any more."""
        self._idle.pop(connection, None)
