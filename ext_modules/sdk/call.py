"""A call in progress, as its function sees it, and the state that lasts between calls.

Events leave through an `Outbox`. A function on the event loop can wait until the reader has caught up (`await
call.drain()`, as with asyncio's writers); a function in a thread is held back automatically.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from ext_modules.sdk.egress import WAITING
from ext_modules.sdk.questions import OPEN, Answer, Ask
from ext_modules.sdk.values import JSON, Value

CHUNK: Final = 256 * 1024
"""The largest piece of text (characters) or of an artifact (bytes) in one event."""

MOST_CARRIED: Final = 256 * 1024
"""The most bytes that can be carried from one call to the next."""

APART: Final = 0.02
"""Seconds between two events of text, unless a whole piece is waiting. Text written meanwhile is joined."""

HIGH_WATER: Final = 4 * 1024 * 1024
"""How much may wait for the reader before writers are held back, in characters and bytes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is, for people."""

    text: str
    fraction: float | None
    """From 0 to 1; None: unknown."""


@dataclass(frozen=True, slots=True)
class Output:
    """Text for the agent."""

    text: str
    stream: str = ""
    """Which of several streams it is from, such as "stderr"; empty: there is only one."""


@dataclass(frozen=True, slots=True)
class ArtifactChunk:
    """A piece of an artifact, in order within the artifact."""

    id: str
    """The artifact, within its call."""
    name: str
    media_type: str
    data: bytes
    last: bool
    """Whether the artifact is complete with this."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A state of the module's state machine."""

    state: str
    entry_points: tuple[str, ...]
    """The functions offered in it; empty: as they are declared."""
    note: str
    """What is said about it, for people."""


Event = Progress | Output | ArtifactChunk | StateChange | Ask


class AgentState:
    """The state a module keeps for one (session, agent).

    `data` is for the module to fill. `name` is the current state of the state machine, or "" if the module has none.
    """

    def __init__(
        self, session: str, agent: str, *, initial: str = "", known: Mapping[str, str] | None = None
    ) -> None:
        self.session = session
        self.agent = agent
        self.name = initial
        self.data: dict[str, object] = {}
        self.turn = asyncio.Lock()
        """Held by an exclusive call."""
        self._known = known or {}
        self._entry_points: tuple[str, ...] = ()
        self._note = ""
        self._watchers: list[Callable[[StateChange], None]] = []

    @property
    def now(self) -> StateChange:
        """The current state."""
        return StateChange(self.name, self._entry_points, self._note)

    def move(self, name: str, *, note: str = "", entry_points: tuple[str, ...] = ()) -> None:
        """Go to state `name` and notify all watchers.

        Raises:
            ValueError: the module has no such state.
        """
        if name not in self._known:
            raise ValueError(
                f"There is no state {name!r}; the states are: {', '.join(self._known) or 'none'}."
            )

        self.name = name
        self._note = note
        self._entry_points = entry_points
        for watcher in list(self._watchers):
            watcher(self.now)

    def watch(self, watcher: Callable[[StateChange], None]) -> Callable[[], None]:
        """Call `watcher` at every change. Return a function that stops this."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)


@dataclass(slots=True)
class Outbox:
    """Events on their way to the reader, in order. Writers that wait are bounded by `HIGH_WATER`."""

    loop: asyncio.AbstractEventLoop
    begun: Callable[[], object] = lambda: None
    """Called on the loop, once, at the first event."""
    _waiting: deque[Event] = field(default_factory=deque)
    _size: int = 0
    """How much waits, in characters and bytes."""
    _any: bool = False
    """Whether there ever was an event."""
    _closed: bool = False
    _filled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an event is waiting, or when nothing more will come."""
    _enough: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a whole piece is waiting, or an event other than text, or when nothing more will come."""
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while writers need not wait."""

    def __post_init__(self) -> None:
        self._room.set()

    def put(self, event: Event) -> None:
        """Send an event, from the loop or from a thread. A thread waits for room."""
        if _on(self.loop):
            self._put(event)
        else:
            asyncio.run_coroutine_threadsafe(self._put_when_room(event), self.loop).result()

    def _put(self, event: Event) -> None:
        if self._closed:
            return
        if not self._any:
            self._any = True
            self.begun()

        self._waiting.append(event)
        self._size += _size(event)
        self._filled.set()

        if self._size > CHUNK or not isinstance(event, Output):
            self._enough.set()
        if self._size > HIGH_WATER:
            self._room.clear()

    async def _put_when_room(self, event: Event) -> None:
        await self._room.wait()
        self._put(event)

    async def drain(self) -> None:
        """Wait until there is room."""
        await self._room.wait()

    async def gather(self) -> None:
        """Wait a moment for more text, so that a program that writes little at a time does not cause as many events."""
        self._enough.clear()
        if self._closed or self._size > CHUNK:
            return
        if any(not isinstance(event, Output) for event in self._waiting):
            return

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(APART):
                await self._enough.wait()

    async def take(self) -> Event | None:
        """Return the next event, or None once the outbox is closed and empty. Adjacent texts are joined into one."""
        while not self._waiting:
            if self._closed:
                return None
            self._filled.clear()
            await self._filled.wait()

        event = self._pop()
        return self._joined(event) if isinstance(event, Output) else event

    def _pop(self) -> Event:
        event = self._waiting.popleft()
        self._size -= _size(event)
        if self._size <= HIGH_WATER // 2:
            self._room.set()
        return event

    def _joined(self, first: Output) -> Output:
        """A text with those that follow it, as far as they fit into one event."""
        texts = [first.text]
        size = len(first.text)
        while self._waiting:
            following = self._waiting[0]
            if not isinstance(following, Output) or following.stream != first.stream:
                break
            if size + len(following.text) > CHUNK:
                break

            self._pop()
            texts.append(following.text)
            size += len(following.text)
        return Output("".join(texts), first.stream)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Accept no more events. Waiting writers continue, and what they send is dropped."""
        self._closed = True
        self._filled.set()
        self._enough.set()
        self._room.set()


def _size(event: Event) -> int:
    match event:
        case Output():
            return len(event.text) + 64
        case ArtifactChunk():
            return len(event.data) + 64
        case _:
            return 64


def _on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class Call:
    """A call in progress. All methods except `ask` and `drain` may also be called from threads.

    `state`: the module's own dict for this (session, agent), in this instance. `carried`: the data of the agent's last
    call that used `carry`, in whichever instance it ran. `deadline`: on the scale of `time.monotonic()`. While a
    connection waits for a person to decide, the clock stops, and the deadline moves accordingly (`remaining`, `limit`).
    """

    def __init__(
        self,
        *,
        call_id: str,
        agent_state: AgentState,
        function: str,
        deadline: float,
        outbox: Outbox,
        carried: bytes = b"",
        cached: Value | None = None,
    ) -> None:
        self.call_id = call_id
        self.function = function
        self.agent_state = agent_state
        self._outbox = outbox
        self._deadline = deadline
        self._waited = WAITING.seconds()
        """How long connections of this process had waited before the call."""

        # What it has sent.
        self.streamed = False
        self._artifacts = 0
        self._asks = 0

        # What it has from earlier calls, and leaves to later ones.
        self.carried = carried
        self.carries: bytes | None = None
        """The data that this call carries over; None: the earlier data stays."""
        self.cached = cached
        """What an earlier call with this `cache_key` cached in this session, by any agent. Its source is untrusted."""
        self.caches = ""
        """The artifact that this call caches."""

    @property
    def session(self) -> str:
        return self.agent_state.session

    @property
    def agent(self) -> str:
        return self.agent_state.agent

    @property
    def state(self) -> dict[str, object]:
        return self.agent_state.data

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted. A function in a thread should check this from time to time."""
        return self._outbox.closed

    def remaining(self) -> float:
        """Seconds until the deadline, which moves while a connection waits; negative after it."""
        return self._deadline + WAITING.seconds() - self._waited - time.monotonic()

    @contextlib.asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Limit the block to `seconds`. The clock stops while a connection waits.

        Raises:
            TimeoutError: the time is up.
        """
        loop = asyncio.get_running_loop()
        end = time.monotonic() + seconds - WAITING.seconds()
        timer: asyncio.TimerHandle

        def look() -> None:
            """End the block, or look again when it may be over."""
            nonlocal timer
            left = end + WAITING.seconds() - time.monotonic()
            if left > 0:
                timer = loop.call_later(max(left, APART), look)
            else:
                scope.reschedule(loop.time())

        timer = loop.call_later(seconds, look)
        try:
            async with asyncio.timeout(None) as scope:
                yield
        finally:
            timer.cancel()

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Report progress to the user; `fraction` from 0 to 1."""
        self._outbox.put(Progress(" ".join(text.split())[:200], fraction))

    def output(self, text: str, stream: str = "") -> None:
        """Stream text to the agent."""
        if text:
            self.streamed = True
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")
        for start in range(0, len(text), CHUNK):
            self._outbox.put(Output(text[start : start + CHUNK], stream))

    def artifact(self, data: bytes | Value, *, name: str = "", media_type: str = "") -> str:
        """Return content in addition to the result. Returns the artifact's id."""
        value = data if isinstance(data, Value) else Value(data)
        name = name or value.name
        media_type = media_type or value.media_type
        self._artifacts += 1
        artifact_id = str(self._artifacts)

        # An empty one has a piece, too.
        for start in range(0, max(1, len(value.data)), CHUNK):
            piece = value.data[start : start + CHUNK]
            is_last = start + CHUNK >= len(value.data)
            self._outbox.put(ArtifactChunk(artifact_id, name, media_type, piece, is_last))
        return artifact_id

    def move(self, state: str, *, note: str = "", entry_points: tuple[str, ...] = ()) -> None:
        """Go to another state of the module's state machine."""
        self.agent_state.move(state, note=note, entry_points=entry_points)
        self._outbox.put(self.agent_state.now)

    def carry(self, data: bytes) -> None:
        """Leave `data` for the agent's next calls, whichever instance they run in, if this call succeeds.

        Carried data may come from an instance that can only read: check it when it comes back, and never execute it.

        Raises:
            ValueError: it is larger than 256 KiB.
        """
        if len(data) > MOST_CARRIED:
            raise ValueError(
                f"{len(data):,} bytes can't be carried from call to call; the most is {MOST_CARRIED:,}."
            )
        self.carries = bytes(data)

    def cache(self, content: Value) -> None:
        """Leave `content` for later calls with this `cache_key` in this session, by any agent, if this one succeeds."""
        self.caches = self.artifact(content)

    async def ask(self, message: str, schema: Mapping[str, JSON] | None = None, *, url: str = "") -> Answer:
        """Ask the session's user. The call's clock stops until they answer. Only on the loop.

        `schema`: the form to fill in (`Ask.schema_json` in the contract); None: a yes-or-no question. `url`: an address
        for the user to open themselves. The answer is "cancel", with a reason, if no one could be asked.

        Raises:
            AskRefused: the question does not have the form that the contract requires.
        """
        self._asks += 1
        ask = Ask(str(self._asks), message, schema, url)
        with OPEN.asked(self.call_id, ask.id) as answer, WAITING.connection():
            self._outbox.put(ask)
            return await answer

    async def drain(self) -> None:
        """Wait until the reader has caught up."""
        await self._outbox.drain()


_current: ContextVar[Call] = ContextVar("ext_module_call")


def current_call() -> Call:
    """Return the call that is being served.

    Raises:
        LookupError: no call is in progress here.
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError(
            "There is no call in progress here; use it inside a function of a module."
        ) from None


def enter(call: Call) -> None:
    """Make `call` the current call of this task."""
    _current.set(call)
