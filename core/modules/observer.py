"""Observes changes of state that modules make on their own, between the calls of an agent or a step."""

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
"""How many changes of one module under one name are read at most; only the newest is reported."""
_TOLD: Final = 200
"""How many changes are reported at most; then observing ends."""

OnState = Callable[[StateChange], Awaitable[None]]
_Who = tuple[InstanceKey, str]


class Observer:
    """One listener for each instance and name (`core.modules.state_names`) whose calls reported a state. A state that a
    call reported is not reported again."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._background = Background(supervisor)
        self._tasks: dict[_Who, asyncio.Task[None]] = {}
        """The listeners."""
        self._told: dict[_Who, StateChange] = {}
        """The newest state that was reported."""
        self._calls: Counter[_Who] = Counter()
        """How many calls are under way."""
        self._ended = asyncio.Event()
        """Set, and replaced by a new one, when a call ends."""

    @contextmanager
    def calling(self, key: InstanceKey, whose: str) -> Iterator[None]:
        """Treat changes inside the context as the call's own."""
        self._calls[key, whose] += 1
        try:
            yield
        finally:
            self._calls[key, whose] -= 1
            if self._tasks:  # only they wait for it
                self._ended.set()
                self._ended = asyncio.Event()

    def told(self, key: InstanceKey, whose: str, state: StateChange) -> None:
        """Note the state that a call under this name reported."""
        self._told[key, whose] = state

    def listen(
        self, key: InstanceKey, whose: str, stream: AsyncIterator[StateChange], on_state: OnState
    ) -> None:
        """Report the changes on `stream` to `on_state`, unless there is already a listener."""
        who = key, whose
        if who not in self._tasks:
            listening = partial(self._listen, who, stream, on_state)
            self._tasks[who] = self._background.begin(listening, f"changes of {whose or key}")

    async def forget(self, key: InstanceKey) -> None:
        """Stop listening to an instance."""
        await self._end([who for who in self._tasks if who[0] == key])

    async def close(self) -> None:
        """Stop listening to all instances."""
        await self._end(list(self._tasks))

    async def _end(self, whose: list[_Who]) -> None:
        tasks = [self._tasks.pop(who) for who in whose]
        for who in whose:
            self._told.pop(who, None)
        await self._background.end(*tasks)

    async def _listen(self, who: _Who, stream: AsyncIterator[StateChange], on_state: OnState) -> None:
        """Report changes until there are no more, or too many."""
        changes: asyncio.Queue[StateChange | None] = asyncio.Queue()
        reading = self._background.begin(partial(_read, stream, changes), f"stream of {who[1] or who[0]}")
        try:
            for _ in range(_TOLD):
                state = await self._next(who, changes)
                if state is None:
                    return
                self._told[who] = state
                await on_state(state)
        finally:
            await self._background.end(reading)

    async def _next(self, who: _Who, changes: asyncio.Queue[StateChange | None]) -> StateChange | None:
        """The next change to a new state, while no call is under way; None if there will be none."""
        while True:
            state = await changes.get()
            while self._calls[who]:
                await self._ended.wait()

            # What came while a call was under way is its own, and only the newest counts.
            while not changes.empty():
                state = changes.get_nowait()
            if state is None or state != self._told.get(who):
                return state


async def _read(stream: AsyncIterator[StateChange], changes: asyncio.Queue[StateChange | None]) -> None:
    """Put the changes into a queue, followed by None."""
    count = 0
    with suppress(SandboxError, ModuleFault):  # the next call reports what happened to the module
        async for state in stream:
            changes.put_nowait(state)
            count += 1
            if count == _READ:
                break
    changes.put_nowait(None)
