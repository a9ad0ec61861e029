"""HTTP/1.1 as a model call needs it: one request, one response whose body is read as it arrives.

A request is sent in one piece, over a connection that is kept for the next one. The response is parsed by llhttp, in C,
and it is never trusted: everything outside of a body is bounded, a body is taken only as fast as it is read, and
everything that ends too early is an error with a reason. Time is bounded by the caller.

Not supported: redirects, encodings of a body, proxies, HTTP/2. docs/design/transport.md explains why this exists next
to the SDK.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Literal

import httptools

from iact.core.models.requests import Origin

_MOST: Final = 1000
"""How many requests run at the same time; further ones wait."""

_KEPT_SECONDS: Final = 5.0
"""How long a connection is kept without a request: servers and routers drop it only later."""

_KEPT_MOST: Final = 100
_AROUND: Final = 100 * 1024
"""The limit in bytes for a head, and for anything between two pieces of a body."""

_AHEAD: Final = 256 * 1024
"""How many bytes of a body may wait to be read before reading from the network pauses."""

_REST_SECONDS: Final = 5.0
_REST: Final = 64 * 1024
"""How many bytes of an unwanted body are still received in order to keep the connection."""

_NEXT_ADDRESS_SECONDS: Final = 0.25
"""RFC 8305, 8: after this many seconds without a connection, the next address of a name is tried as well."""


class BrokenOff(ConnectionError):
    """The other side closed the connection, or did not speak HTTP."""


class ConnectTimeout(Exception):
    """No connection was established in time."""


class HttpConnection(asyncio.Protocol):
    """One connection and, while it is in use, one response.

    idle ─send→ asked ─head→ answering ─end of the body→ whole ─release→ idle; asked, answering ─fault→ failed;
    answering ─release→ unread ─end of the body→ idle.
    """

    def __init__(self, pool: HttpPool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._state: Literal["idle", "asked", "answering", "whole", "unread", "failed"] = "idle"
        self._waiter: asyncio.Future[None] | None = None
        """Set when something changes, while a caller waits for that."""
        self._timer: asyncio.TimerHandle | None = None
        """Closes a connection that is kept, or whose response is left unread."""

        # Parse as h11 does, and so the SDK. Two interpretations of one response do no harm here: there is only one
        # response at a time, and a connection that receives more is closed.
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._reset()

    def _reset(self) -> None:
        """Forget the last response."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.answered = False
        """Whether the other side has sent anything since the request, even a single byte."""
        self.received = 0
        """Bytes of the body received so far."""
        self._fault: BrokenOff | None = None
        """Why the response is not complete, if it failed."""

        # The part of the body that nobody has taken.
        self._pieces: list[bytes] = []
        self._ahead = 0
        """Its bytes."""
        self._paused = False
        """Whether reading from the network is paused because of them."""

        # What bounds everything else.
        self._around = 0
        """Bytes since the last piece of the body."""
        self._named = 0
        """Bytes of headers and trailers."""

        # How the response is framed.
        self._interim = False
        """Whether this is one that precedes the response."""
        self._to_the_end = False
        """Whether the body ends with the connection."""
        self._keeps = False
        """Whether another request may follow over this connection."""

    # --- for callers ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the whole body was taken."""
        return self._state == "whole" and not self._pieces

    def send(self, request: bytes) -> None:
        """Send a request; everything received from here on is the response."""
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
            BrokenOff: they do not arrive.
            TimeoutError: they do not arrive in time.
        """
        while self._state == "asked":
            await self._change(until)
        if not self.status and self._fault is not None:
            raise self._fault

    async def more(self, until: float) -> None:
        """Wait until there is something to take, or nothing more will come. Raises TimeoutError."""
        while self._state == "answering" and not self._pieces:
            await self._change(until)

    def take(self) -> bytes:
        """What arrived of the body since the last call.

        Raises:
            BrokenOff: the connection ended and the body is not complete.
        """
        if not self._pieces:
            if self._fault is not None:
                raise self._fault
            return b""

        taken = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._ahead = 0
        self._resume()
        return taken

    def release(self) -> None:
        """Stop reading this response; the connection is kept if that costs little."""
        if self._state == "whole":
            self._rest()
            return
        if self._state != "answering" or not self._keeps:
            self.close()
            return

        self._state = "unread"
        self._pieces = []
        self._ahead = 0
        self._start_timer(_REST_SECONDS)
        self._resume()

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("the connection was closed")

    async def _change(self, until: float) -> None:
        """Wait for any change."""
        if self._loop.time() >= until:  # data keeps coming, but not what is waited for
            raise TimeoutError

        waiter = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_at(until, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _rest(self) -> None:
        """Be ready for the next request, if the connection can be kept."""
        self._state = "idle"
        self._pieces = []
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
        if not self._expects_data():
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
            return

        # The parser has called back: the state may be another one than before.
        is_costly_rest = self._state == "unread" and self._ahead > _REST
        is_over_for_good = not self._expects_data() and not self._keeps
        if is_costly_rest or is_over_for_good:
            self.close()
        elif self._ahead > _AHEAD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _expects_data(self) -> bool:
        """Whether data may arrive now."""
        return self._state in ("asked", "answering", "unread")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._pool.closed(self)

        ends_the_body = error is None and self._state == "answering" and self._to_the_end
        if ends_the_body:
            self._state = "whole"
        why = self._unended() if error is None else str(error)
        self._lose(why)

    def _unended(self) -> str:
        """What is missing when a connection ends here, in the words of the SDK's transport."""
        if not self.answered:
            return "Server disconnected without sending a response"
        if not self.status:
            return "peer closed connection without sending a complete head"

        length = self.headers.get("content-length")
        missing = "incomplete chunked read"
        if length is not None:
            missing = f"received {self.received} bytes, expected {length}"
        return f"peer closed connection without sending complete message body ({missing})"

    def _spoil(self, why: str) -> None:
        """Handle data that must not arrive here. A complete response stays complete."""
        self._fail(why)
        self.close()

    def _lose(self, why: str) -> None:
        """Give the connection up, and with it a response that is not complete."""
        self._stop_timer()
        self._pool.forget(self)
        self._fail(why)
        self._keeps = False
        self._wake()

    def _fail(self, why: str) -> None:
        if self._state in ("asked", "answering"):
            self._state = "failed"
            self._fault = BrokenOff(why)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- from the parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._state != "asked":
            self._keeps = False  # a second response that was not requested

    def on_header(self, name: bytes, value: bytes) -> None:
        self._named += len(name) + len(value)
        if self._state != "asked" or self._named > _AROUND:  # a trailer; or far too much
            return

        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

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
        is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self._to_the_end = not is_chunked and "content-length" not in self.headers

    def on_body(self, piece: bytes) -> None:
        self._around = 0
        self.received += len(piece)
        self._ahead += len(piece)
        if self._state == "answering":
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            self.headers = {}
        elif self._state == "unread":
            self._rest()
        elif self._state == "answering":
            self._state = "whole"


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class HttpPool:
    """Connections to one origin. `connect`: seconds for a new one; `secure`: how the other side proves its identity,
    for TLS."""

    def __init__(self, origin: Origin, *, connect: float, secure: ssl.SSLContext | None) -> None:
        self._origin = origin
        self._connect = connect
        self._secure = secure
        self._places = asyncio.Semaphore(_MOST)
        self._open: set[HttpConnection] = set()
        self._idle: dict[HttpConnection, None] = {}  # the newest last
        self._empty: asyncio.Future[None] | None = None

    async def ask(self, request: bytes, *, until: float) -> HttpConnection:
        """Send a request and wait for the head of the response. The caller must return the connection with `done`.

        The other side may have just closed a kept connection: if not a single byte came back, the request is sent again
        over a new one.

        Raises:
            OSError: there is no connection, or it broke off.
            ConnectTimeout: no connection was established in time.
            TimeoutError: no head arrived in time.
        """
        # A timeout costs more than the place does, and there nearly always is one.
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
            request = b""  # a waiting agent need not hold everything that it sent
            await connection.head(until)
        except BaseException:
            if connection is not None:
                connection.close()
            self._places.release()
            raise
        return connection

    def done(self, connection: HttpConnection, *, keep: bool) -> None:
        """Return a connection whose response is no longer wanted. `keep`: only little of the response is still to
        come."""
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
        """A new connection; raises as `ask`."""
        loop = asyncio.get_running_loop()
        host = self._origin.host
        is_number = ":" in host or host.replace(".", "").isdigit()
        next_address = None if is_number else _NEXT_ADDRESS_SECONDS

        try:
            async with asyncio.timeout_at(min(until, loop.time() + self._connect)):
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self, loop),
                    host,
                    self._origin.port,
                    ssl=self._secure,
                    happy_eyeballs_delay=next_address,
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
        """Keep a connection for the next request. Returns whether there is room for it."""
        if len(self._idle) >= _KEPT_MOST:
            return False
        self._idle[connection] = None
        return True

    def forget(self, connection: HttpConnection) -> None:
        """Forget a connection that is no longer open."""
        self._idle.pop(connection, None)
