"""A request for a chat completion, and its reply chunk by chunk.

The SDK determines the address and the headers of requests. They are sent over our own transport, which takes a fraction
of the time. What our transport does not support (proxies, redirects, encoded bodies, users in addresses) goes through
the SDK's own, from its first occurrence on. Both fail in the same ways.

Import this module only if an endpoint is in use: the SDK takes half a second to load.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

import httpx2
import openai

from iact.core.models import requests
from iact.core.models.caller import HEADER, trace_of_caller
from iact.core.models.server_events import EventReader
from iact.core.models.transport import BrokenOff, ConnectTimeout, HttpConnection, HttpPool
from iact.core.ports import JSON

_PATH: Final = "/chat/completions"
_WRITING: Final = 60.0
"""For how many seconds the SDK's transport may take to send a request."""

_REPLY: Final = 256 * 1024 * 1024
"""The largest reply in bytes: enough for a million tokens in separate chunks."""

_REFUSAL: Final = 64 * 1024
"""How many bytes are read of the reason for a refusal."""

_REFUSAL_SECONDS: Final = 10.0
_DONE: Final = b"[DONE]"


class HttpRefusal(Exception):
    """The endpoint answered with a status other than success. `body`: its message, decoded if it is JSON."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers


class ErrorChunk(Exception):
    """The stream reports an error. `body`: its message."""

    def __init__(self, body: object) -> None:
        super().__init__("an error in the stream")
        self.body = body


class Overlong(Exception):
    """The endpoint sends more than is allowed. The text says what."""


class _NeedsSdk(Exception):
    """The response needs the SDK's transport."""


class ChunkStream(Protocol):
    """The chunks of a reply."""

    async def next(self, seconds: float) -> object | None:
        """The next chunk, decoded; None at the end.

        Raises:
            TimeoutError: none came for that many seconds.
            ErrorChunk: the endpoint says that it failed.
            OSError: the connection broke off.
            ValueError: the data is not JSON, or not text.
            Overlong: there is too much data.
        """
        ...

    async def close(self) -> None:
        """Stop reading: nothing more is wanted."""
        ...


class Completions:
    """Sends requests for chat completions. `connect`: seconds for a connection; `direct`: ignore the environment's
    proxies."""

    def __init__(self, *, base_url: str, key: str | None, connect: float, direct: bool) -> None:
        secure = httpx2.create_ssl_context(trust_env=not direct)

        # Silence is bounded by the caller, not by the transport: a keep-alive comment is not a token.
        waits = openai.Timeout(None, connect=connect, write=_WRITING)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=0,
            timeout=waits,
            http_client=openai.DefaultAsyncHttpxClient(timeout=waits, trust_env=not direct, verify=secure),
        )
        self._destination = requests.destination_of(str(self._client.base_url).rstrip("/") + _PATH)
        self._head: bytes | None = None

        self._pool: HttpPool | None = None
        self._speaks_http = False
        """Whether our own transport is used; False for good once the endpoint needed something that it does not support."""
        if self._destination is None:
            return
        origin = self._destination.origin
        if not direct and _has_proxy(origin):
            return

        secure.set_alpn_protocols(["http/1.1"])
        own_secure = secure if origin.secure else None
        self._pool = HttpPool(origin, connect=connect, secure=own_secure)
        self._speaks_http = True

    async def open(self, fields: Mapping[str, JSON], seconds: float) -> ChunkStream:
        """Send a request and wait for the beginning of the reply.

        Raises:
            HttpRefusal: the endpoint refuses to reply.
            ConnectTimeout: there is no connection in time.
            TimeoutError: nothing came for that many seconds.
            OSError: there is no connection, or it broke off.
            ValueError: a field can't be sent.
        """
        if self._pool is not None and self._speaks_http:
            try:
                return await self._open(self._pool, fields, seconds)
            except _NeedsSdk:
                self._speaks_http = False

        with _translated():
            async with asyncio.timeout(seconds):
                # Send the body as it is: the SDK's own method walks through every field of every message by its type.
                stream = await self._client.post(
                    _PATH,
                    body=dict(fields),
                    cast_to=object,
                    stream=True,
                    stream_cls=openai.AsyncStream[object],
                    options={"headers": _for_caller()},
                )
        return _SdkReply(stream)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        await self._client.close()

    async def _open(self, pool: HttpPool, fields: Mapping[str, JSON], seconds: float) -> ChunkStream:
        """The same over our own transport; raises `_NeedsSdk` if that does not support the response."""
        until = asyncio.get_running_loop().time() + seconds
        if self._head is None:
            self._head = self._written_head()
        # The request is in no variable: a waiting agent need not hold everything that it sent.
        connection = await pool.ask(
            requests.whole(self._head, requests.body(fields), _for_caller()), until=until
        )

        try:
            if 200 <= connection.status < 300:
                if connection.headers.get("content-encoding", "identity").lower() != "identity":
                    raise _NeedsSdk
                return _OwnReply(pool, connection)

            if 300 <= connection.status < 400 and "location" in connection.headers:
                raise _NeedsSdk

            body = await _refusal(connection, until)
            raise HttpRefusal(connection.status, body, connection.headers)
        except HttpRefusal:
            pool.done(connection, keep=True)
            raise
        except BaseException:
            pool.done(connection, keep=False)
            raise

    def _written_head(self) -> bytes:
        """The headers of each request; made with the first one, because the SDK names the running async library in
        them."""
        assert self._destination is not None
        of_sdk = {**self._client.auth_headers, **self._client.default_headers, "X-Stainless-Retry-Count": "0"}
        headers = {name.lower(): value for name, value in of_sdk.items() if isinstance(value, str)}
        fixed = {"Accept-Encoding": "identity", "Connection": "keep-alive"}

        head = requests.head(self._destination, {**fixed, **headers})
        if head is None:
            raise _NeedsSdk
        return head


def _for_caller() -> dict[str, str]:
    """The header by which an endpoint's own trace continues that of the program that asked us."""
    traceparent = trace_of_caller()
    return {HEADER: traceparent} if traceparent else {}


def _has_proxy(origin: requests.Origin) -> bool:
    """Whether the environment may have a proxy for this address; the SDK understands every form of exclusion."""
    proxies = urllib.request.getproxies()
    scheme = "https" if origin.secure else "http"
    if not proxies.get(scheme) and not proxies.get("all"):
        return False

    excluded = {name.strip().lower() for name in proxies.get("no", "").split(",")}
    return not excluded & {"*", origin.host}


async def _refusal(connection: HttpConnection, until: float) -> object:
    """The content of a refusal, as far as it arrives."""
    content = bytearray()
    until = min(until, asyncio.get_running_loop().time() + _REFUSAL_SECONDS)
    try:
        while not connection.over and len(content) < _REFUSAL:
            await connection.more(until)
            content += connection.take()
    except (BrokenOff, TimeoutError):
        pass  # the status says enough

    text = content[:_REFUSAL].decode("utf-8", "replace").strip()
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return body.get("error", body) if isinstance(body, dict) else body


class _OwnReply:
    """A reply over our own connection."""

    def __init__(self, pool: HttpPool, connection: HttpConnection) -> None:
        self._pool = pool
        self._connection: HttpConnection | None = connection
        self._loop = asyncio.get_running_loop()
        self._reader = EventReader()
        self._events: deque[bytes] = deque()

    async def next(self, seconds: float) -> object | None:
        if not self._events:
            await self._more(self._loop.time() + seconds)
        return self._chunk(self._events.popleft()) if self._events else None

    async def close(self) -> None:
        self._leave(keep=False)

    async def _more(self, until: float) -> None:
        """Wait for events, or the end."""
        while not self._events:
            connection = self._connection
            if connection is None:
                return
            if connection.received > _REPLY:
                raise Overlong("its reply has no end")

            await connection.more(until)
            self._events.extend(self._reader.feed(connection.take()))
            if self._events:
                return

            if self._reader.overlong:
                raise Overlong("an event of it has no end")
            if connection.over:
                self._leave(keep=True)

    def _chunk(self, data: bytes) -> object | None:
        """The chunk that an event holds; None if it says that the reply is complete."""
        if data.startswith(_DONE):
            self._leave(keep=True)
            return None

        try:
            chunk = json.loads(data.decode())
        except RecursionError:
            raise ValueError("an event is nested too deeply") from None
        if isinstance(chunk, dict) and chunk.get("error"):
            raise ErrorChunk(chunk["error"])

        # None would be the end.
        return {} if chunk is None else chunk

    def _leave(self, *, keep: bool) -> None:
        self._events.clear()
        connection = self._connection
        self._connection = None
        if connection is not None:
            self._pool.done(connection, keep=keep)


class _SdkReply:
    """A reply over the SDK's transport."""

    def __init__(self, stream: openai.AsyncStream[object]) -> None:
        self._stream = stream
        self._chunks = aiter(stream)

    async def next(self, seconds: float) -> object | None:
        with _translated():
            async with asyncio.timeout(seconds):
                return await anext(self._chunks, None)

    async def close(self) -> None:
        await self._stream.close()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the SDK's exceptions into those of our own transport."""
    try:
        yield
    except openai.APIStatusError as error:
        raise HttpRefusal(error.status_code, error.body, error.response.headers) from error
    except openai.APITimeoutError as error:
        raise ConnectTimeout from error
    except openai.APIConnectionError as error:
        raise BrokenOff(str(error)) from error
    except openai.APIError as error:
        raise ErrorChunk(error.body or error.message) from error
    except (openai.OpenAIError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error
