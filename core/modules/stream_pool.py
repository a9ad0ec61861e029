"""Streams that carry the calls of a module one after the other, so that not every call has to open one.

A stream carries one call at a time: a call takes a free stream, or opens one, and returns it if it ended properly.
Otherwise the stream is ended, and with it what the module does on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import grpc.aio

from iact.core.errors import ModuleLost

MOST: Final = 64
"""How many free streams are kept."""


MARK: Final = "iact-converse"
"""The initial metadata by which a module declares that it accepts calls on a stream."""
_OPENING: Final = 2.0
"""How many seconds a module has to send it; a slower module is called without a stream."""


class StreamCall(Protocol):
    """A running call of grpc.aio with a stream of raw messages in each direction."""

    def done(self) -> bool: ...

    def cancel(self) -> bool: ...

    async def initial_metadata(self) -> Iterable[tuple[str, str | bytes]]: ...

    async def read(self) -> object: ...

    async def write(self, request: bytes) -> None: ...


@dataclass(slots=True)
class Stream:
    """One stream."""

    call: StreamCall
    last: str = ""
    """The id of the previous call, so that its late events can be recognized."""

    async def ask(self, request: bytes) -> None:
        """Send a request.

        Raises:
            ModuleLost: the module ended the stream.
        """
        try:
            await self.call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise ModuleLost("The module has ended, or accepts no more calls.") from error


class StreamPool:
    """The streams to one module; `open_stream` makes one."""

    def __init__(self, open_stream: Callable[[], StreamCall]) -> None:
        self._open = open_stream
        self._free: list[Stream] = []
        self._offered = True
        """Whether the module supports streams, as far as is known."""

    async def take(self) -> Stream | None:
        """A stream for one call; None if the module does not support streams."""
        while self._free:
            stream = self._free.pop()
            if not stream.call.done():
                return stream
        if not self._offered:
            return None

        call = self._open()
        is_open = False
        try:
            async with asyncio.timeout(_OPENING) as scope:
                metadata = await call.initial_metadata()
                is_open = MARK in {key for key, _ in metadata}
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            if not is_open:
                call.cancel()

        self._offered = is_open
        return Stream(call) if is_open else None

    def give_back(self, stream: Stream, call: str) -> None:
        """Return a stream whose call ended properly."""
        if len(self._free) < MOST:
            stream.last = call
            self._free.append(stream)
        else:
            stream.call.cancel()
