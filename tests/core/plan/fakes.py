"""Virtual time, a scripted runner and a scripted model, for tests of plans: the engine is the real one."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from iact.core.errors import ModelUnreachable
from iact.core.plan.model import PlanVersion
from iact.core.plan.protocol import Firing, FunctionInfo, Outcome, PlanQuestion, StepSuccess
from iact.core.plan.result import PlanResult
from iact.core.plan.state import NodeChange
from iact.core.ports import JSON
from tests.core.plan.engine import PlanEngine, Waiting

T = TypeVar("T")


class Stuck(Exception):
    """Nothing will ever happen again: what was to be run hangs."""


class _Jumping(selectors.SelectSelector):
    """Never waits: it moves the loop's time instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when everybody waits."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def begin(self) -> None:
        self._jumping.now = 0.0


class VirtualClock:
    """The clock port over the running loop's time."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_LOOP: list[VirtualLoop] = []


def run(task: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time from 0 on, on a loop that all tests share.

    Time begins anew, or sums of floats would come out a little different for equal runs.
    """
    if not _LOOP:
        _LOOP.append(VirtualLoop())
    _LOOP[0].begin()
    try:
        return _LOOP[0].run_until_complete(task)
    except Stuck:
        _LOOP.clear()
        raise


Work = Callable[[Firing, Waiting], Awaitable[Outcome]]


@dataclass
class ScriptedRunner:
    """Does what `script` says for a node: an outcome, a list of them (one per attempt), or a coroutine function.

    Nodes without a script succeed with their arguments. `seconds`: how long each takes.
    """

    script: Mapping[str, Outcome | Sequence[Outcome] | Work | Exception] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    log: list[tuple[str, float]] = field(default_factory=list)
    firings: list[Firing] = field(default_factory=list)
    active: int = 0
    most: int = 0
    cancelled: list[str] = field(default_factory=list)

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        self.firings.append(firing)
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            if firing.node.id in self.seconds:
                await asyncio.sleep(self.seconds[firing.node.id])
            return await self._outcome(firing, waiting)
        except asyncio.CancelledError:
            self.cancelled.append(firing.node.id)
            raise
        finally:
            self.active -= 1
            self.log.append((firing.node.id, asyncio.get_running_loop().time()))

    async def _outcome(self, firing: Firing, waiting: Waiting) -> Outcome:
        said = self.script.get(firing.node.id)
        if said is None:
            return StepSuccess(dict(firing.arguments) or firing.node.id)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Sequence):
            return said[min(firing.attempt, len(said)) - 1]
        if callable(said):
            return await said(firing, waiting)
        return said

    @property
    def fired(self) -> list[str]:
        return [firing.node.id for firing in self.firings]


@dataclass
class ScriptedAsker:
    """Answers questions by kind, one reply after another; the last is repeated. No reply: unreachable."""

    replies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    asked: list[PlanQuestion] = field(default_factory=list)
    seconds: float = 0.0
    pieces: int = 1_000_000
    """Characters per piece."""

    async def ask(self, question: PlanQuestion) -> AsyncGenerator[str]:
        self.asked.append(question)
        replies = self.replies.get(question.kind, ())
        nth = sum(one.kind == question.kind for one in self.asked)
        if not replies:
            raise ModelUnreachable("Nobody answers.")
        text = replies[min(nth, len(replies)) - 1]
        for at in range(0, max(1, len(text)), self.pieces):
            if self.seconds:
                await asyncio.sleep(self.seconds)
            yield text[at : at + self.pieces]

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.asked]


@dataclass
class Functions:
    """A catalogue of functions."""

    infos: Mapping[str, FunctionInfo]

    @classmethod
    def of(cls, *infos: FunctionInfo) -> Functions:
        return cls({info.name: info for info in infos})

    def find(self, name: str) -> FunctionInfo | None:
        return self.infos.get(name)

    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        """As its parameter `impact` says, where there is one."""
        info, impact = self.infos.get(name), arguments.get("impact")
        return replace(info, impact=impact) if info is not None and isinstance(impact, int) else info

    def all(self) -> Sequence[FunctionInfo]:
        return list(self.infos.values())


@dataclass
class Recorder:
    """Keeps every event."""

    events: list[NodeChange | PlanVersion] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    text: list[tuple[str, str]] = field(default_factory=list)

    def on_change(self, change: NodeChange) -> None:
        self.events.append(change)

    def on_version(self, version: PlanVersion) -> None:
        self.events.append(version)

    def on_text(self, question: PlanQuestion, text: str) -> None:
        self.text.append((question.kind, text))

    def on_notice(self, text: str) -> None:
        self.notices.append(text)


def states(result: PlanResult) -> dict[str, str]:
    """The state that each node ended in."""
    return {one: record.state for one, record in result.nodes.items()}


async def drive(engine: PlanEngine, *controls: tuple[float, Callable[[], None]]) -> PlanResult:
    """Run a plan while controls act at their times (seconds from the start)."""

    async def later(seconds: float, control: Callable[[], None]) -> None:
        await asyncio.sleep(seconds)
        control()

    async with asyncio.TaskGroup() as group:
        plan = group.create_task(engine.run())
        waiting = [group.create_task(later(*one)) for one in controls]
        result = await plan
        for one in waiting:
            one.cancel()
    return result
