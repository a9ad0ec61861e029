"""Listens to the changes of state that modules come to by themselves, between the calls of an agent or a step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from iact.core.errors import ModuleFault, SandboxError
from iact.core.modules.background import Background, Supervisor
from iact.core.modules.instances import InstanceKey
from iact.core.modules.outcome import StateChange

_READ: Final = 10_000
"""Changes of one module under one name that are read at most; only the newest is told of."""
_TOLD: Final = 200
"""Changes that are told of at most; then nobody listens any more."""

OnState = Callable[[StateChange], Awaitable[None]]
_Who = tuple[InstanceKey, str]


class Observer:
    """One listener for each instance and name (`core.modules.state_names`) whose calls told of a state. What a call told of
    is no news.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._background = Background(supervisor)
        self._tasks: dict[_Who, asyncio.Task[None]] = {}
        self._told: dict[_Who, StateChange] = {}
        self._calls: Counter[_Who] = Counter()
        self._ended = asyncio.Event()

    @contextmanager
    def calling(self, key: InstanceKey, whose: str) -> Iterator[None]:
        """Changes are the call's own within."""
        self._calls[key, whose] += 1
        try:
            yield
        finally:
            self._calls[key, whose] -= 1
            if self._tasks:  # only they wait for it
                self._ended.set()
                self._ended = asyncio.Event()

    def told(self, key: InstanceKey, whose: str, state: StateChange) -> None:
        """A call under this name told of this state."""
        self._told[key, whose] = state

    def listen(
        self, key: InstanceKey, whose: str, stream: AsyncIterator[StateChange], on_state: OnState
    ) -> None:
        """Tell `on_state` of what comes on `stream`, unless somebody listens there already."""
        who = key, whose
        if who not in self._tasks:
            self._tasks[who] = self._background.begin(
                partial(self._listen, who, stream, on_state), f"changes of {whose or key}"
            )

    async def forget(self, key: InstanceKey) -> None:
        """Listen to an instance no more."""
        await self._end([who for who in self._tasks if who[0] == key])

    async def close(self) -> None:
        """Listen to nothing any more."""
        await self._end(list(self._tasks))

    async def _end(self, whose: list[_Who]) -> None:
        tasks = [self._tasks.pop(who) for who in whose]
        for who in whose:
            self._told.pop(who, None)
        await self._background.end(*tasks)

    async def _listen(self, who: _Who, stream: AsyncIterator[StateChange], on_state: OnState) -> None:
        newest: asyncio.Queue[StateChange | None] = asyncio.Queue()
        reading = self._background.begin(partial(_read, stream, newest), f"stream of {who[1] or who[0]}")
        try:
            for _ in range(_TOLD):
                state = await self._next(who, newest)
                if state is None:
                    return
                self._told[who] = state
                await on_state(state)
        finally:
            await self._background.end(reading)

    async def _next(self, who: _Who, newest: asyncio.Queue[StateChange | None]) -> StateChange | None:
        """The next change that is news while no call is under way; None if there will be none."""
        while True:
            state = await newest.get()
            while self._calls[who]:
                await self._ended.wait()
            while not newest.empty():
                state = newest.get_nowait()
            if state is None or state != self._told.get(who):
                return state


async def _read(stream: AsyncIterator[StateChange], newest: asyncio.Queue[StateChange | None]) -> None:
    """Put what comes into a queue, and None behind it."""
    count = 0
    with suppress(SandboxError, ModuleFault):  # its next call says what became of it
        async for state in stream:
            newest.put_nowait(state)
            count += 1
            if count == _READ:
                break
    newest.put_nowait(None)
