"""The replies of a scripted endpoint, the gates at which they stop, and the choice of the reply to a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from iact.core.ports import JSON

CHARACTERS_PER_TOKEN: Final = 4


def tokens(text: str) -> int:
    """The number of tokens that this endpoint reports for `text`."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class Gate:
    """Holds a stream until the test releases it. Each gate is for one reply; all methods are thread-safe."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.arrived: Future[None] = Future()
        self.released: Future[None] = Future()

    def wait(self, timeout: float = 300.0) -> bool:
        """Block until a stream waits at this gate. Returns False after `timeout` seconds."""
        return bool(wait([self.arrived], timeout).done)

    async def reached(self, within: float = 300.0) -> None:
        """Like `wait`, for a test on an event loop. Raises TimeoutError."""
        async with asyncio.timeout(within):
            await asyncio.shield(asyncio.wrap_future(self.arrived))

    def release(self) -> None:
        """Let the stream continue."""
        settle(self.released)

    async def pass_through(self) -> None:
        """For the endpoint: report that the stream is here, and wait for the release."""
        settle(self.arrived)
        await asyncio.shield(asyncio.wrap_future(self.released))


def settle(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class HttpError(NamedTuple):
    """An HTTP status other than 200. A `body` that is text becomes the `message` of an OpenAI error object."""

    status: int
    body: JSON = "scripted error"
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request. Positions are in characters of `text`.

    `chunk` characters per event, `delay` seconds before each event, `first_delay` before the headers.
    `deltas`: sent unchanged after the text, one event each, for function calls.
    `reasoning`: sent first, as `reasoning_content`. `usage`: send usage when the request asks for it;
    `completion`: the reported tokens of the reply, if they differ from those of its text.
    `finish`: the finish reason, or None to leave it out. `done`: whether "[DONE]" closes the stream.
    `error`: an HTTP error instead. `cut_after`: break the connection there. `hang`: take the request and
    never answer; `hang_after`: stop sending there. `garbage`: raw bytes instead of a body, of type
    `content_type`, or, with `garbage_after`, in the middle of the stream, after which the body just ends.
    `gates`: position → gate. `repeat`: also answers every further request.
    """

    text: str = ""
    _: KW_ONLY
    chunk: int = 8
    delay: float = 0.0
    first_delay: float = 0.0
    deltas: Sequence[dict[str, JSON]] = ()
    reasoning: str = ""
    usage: bool = True
    completion: int | None = None
    finish: Literal["stop", "length", "content_filter", "tool_calls"] | None = "stop"
    done: bool = True
    error: HttpError | None = None
    cut_after: int | None = None
    hang: bool = False
    hang_after: int | None = None
    garbage: bytes | None = None
    garbage_after: int | None = None
    content_type: str = "text/event-stream"
    gates: Mapping[int, Gate] = field(default_factory=dict)
    repeat: bool = False


@dataclass(slots=True)
class Request:
    """One chat request as it arrived, and how it ended.

    `agent`: the path in the opening, or "" if there is none. `turn`: the number of the agent's replies in the
    history. `sent`: characters of text that were sent. `disconnected`: the client disconnected before the
    reply was complete. `ended`: set when the endpoint has finished with it.
    """

    number: int
    headers: Mapping[str, str]
    body: Mapping[str, JSON]
    messages: tuple[tuple[str, str], ...]
    agent: str
    turn: int
    prompt_tokens: int
    cached_tokens: int
    sent: int = 0
    disconnected: bool = False
    ended: Future[None] = field(default_factory=Future, repr=False)

    @property
    def last(self) -> str:
        """The content of the newest message."""
        return self.messages[-1][1] if self.messages else ""

    def wait(self, timeout: float = 300.0) -> bool:
        """Block until the endpoint has finished with this request. Returns False after `timeout` seconds."""
        return bool(wait([self.ended], timeout).done)

    async def over(self, within: float = 300.0) -> None:
        """Like `wait`, for a test on an event loop. Raises TimeoutError."""
        async with asyncio.timeout(within):
            await asyncio.shield(asyncio.wrap_future(self.ended))


Script: TypeAlias = Mapping[str, Sequence[Reply | str]] | Callable[[Request], Reply | str]


class Unforeseen(Exception):
    """The script has no reply for a request."""


class Player:
    """Chooses the reply to a request, and keeps track of unused replies."""

    def __init__(self, script: Script, by_turn: bool) -> None:
        self._function = script if callable(script) else None
        self._by_turn = by_turn
        self._replies: dict[str, list[Reply]] = {}
        if not callable(script):
            self._replies = {path: [_reply(item) for item in replies] for path, replies in script.items()}
        self._next = dict.fromkeys(self._replies, 0)
        self._used: set[tuple[str, int]] = set()

    def choose(self, request: Request) -> Reply:
        if self._function is not None:
            return _reply(self._function(request))
        key = request.agent if request.agent in self._replies else "*"
        replies = self._replies.get(key, [])
        index = request.turn if self._by_turn else self._next.get(key, 0)
        if index >= len(replies) and replies and replies[-1].repeat:
            index = len(replies) - 1
        if index >= len(replies):
            raise Unforeseen(f"The script has no reply number {index + 1} for agent {request.agent!r}.")
        self._used.add((key, index))
        if not replies[index].repeat:
            self._next[key] = index + 1
        return replies[index]

    def unused(self) -> list[str]:
        """A line for each reply that was never requested."""
        return [
            f"{path} reply {index + 1}: {reply}"
            for path, replies in self._replies.items()
            for index, reply in enumerate(replies)
            if (path, index) not in self._used
        ]


def _reply(item: Reply | str) -> Reply:
    return Reply(item) if isinstance(item, str) else item
