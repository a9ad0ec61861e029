"""Which ready node starts now: in order of id, once what it needs alone is free and its endpoint takes a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from core.plan.alarm import Alarm
from core.plan.attempts import Attempts
from core.plan.model import Node
from core.plan.modes.base import LeaveOut
from core.plan.refs import MissingField, resolve
from core.plan.schedule import ReadyQueue, Resources, TokenBucket
from core.plan.seams import FunctionInfo
from core.ports import JSON

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine


class Dispatch:
    """The ready nodes of one `PlanEngine`. `sleeping`: nodes that an alarm will wake."""

    def __init__(self, engine: PlanEngine, attempts: Attempts, alarm: Alarm) -> None:
        self.sleeping: set[str] = set()
        self._engine = engine
        self._attempts = attempts
        self._alarm = alarm
        self._queue = ReadyQueue()
        self._resources = Resources()
        self._parked: dict[str, list[str]] = {}
        self._buckets = {one: TokenBucket(rate) for one, rate in engine.limits.rates.items()}

    def __len__(self) -> int:
        """How many may be tried now."""
        return len(self._queue)

    def add(self, node: str) -> None:
        """A node became ready."""
        self._queue.add(node)

    def remove(self, node: str) -> None:
        """It is ready no more."""
        self._queue.remove(node)
        self.sleeping.discard(node)

    def fill(self) -> None:
        """Start what may start, as many as may run at once."""
        most = self._engine.limits.concurrency
        while len(self._attempts) < most:
            node = self._queue.pop()
            if node is None:
                return
            self._try(node)

    def take_up(self, node: str) -> None:
        """An attempt of an earlier run goes on outside: wait for its outcome."""
        engine = self._engine
        record = engine.state.nodes[node]
        names = self._exclusive(record.node, engine.info(record.node))
        self._resources.take(names, node)
        try:
            prepared = engine.mode.prepare(
                engine.state, node, resolve(record.node, engine.state.outputs, record.winner)
            )
        except MissingField:
            prepared = {}
        self._attempts.start(record.node, {} if isinstance(prepared, LeaveOut) else prepared, names)

    def free(self, names: Iterable[str], node: str) -> None:
        """A node holds `names` no more: what waited for them is tried again."""
        self._resources.release(names, node)
        for name in names:
            for parked in self._parked.pop(name, ()):
                if self._engine.state.nodes[parked].state == "ready":
                    self._queue.add(parked)

    def sleep(self, node: str, seconds: float, wake: Callable[[str], None]) -> None:
        """Have `wake(node)` called later; it looks whether that still matters."""
        self.sleeping.add(node)
        self._alarm.after(seconds, wake, node)

    def _try(self, node: str) -> None:
        """Start a ready node, or set it aside until what it lacks is there."""
        engine = self._engine
        record = engine.state.nodes[node]
        info = engine.info(record.node)
        names = self._exclusive(record.node, info)
        for name in names:
            if not self._resources.free((name,)):
                self._parked.setdefault(name, []).append(node)
                return
        wait = self._throttled(record.node, info)
        if wait > 0:
            self.sleep(node, wait, self._woken)
            return
        arguments = self._arguments(node)
        if arguments is None:
            return
        self._resources.take(names, node)
        engine.emit(node, "dispatched")
        self._attempts.start(record.node, arguments, names)

    def _arguments(self, node: str) -> dict[str, JSON] | None:
        """What to fire it with; None if it ended without."""
        engine = self._engine
        record = engine.state.nodes[node]
        try:
            resolved = resolve(record.node, engine.state.outputs, record.winner)
            prepared = engine.mode.prepare(engine.state, node, resolved)
        except MissingField as error:
            engine.unresolved(node, f"{str(error)[:1].upper()}{str(error)[1:]}.")
            return None
        if isinstance(prepared, LeaveOut):
            engine.left_out(node, prepared.reason)
            return None
        return prepared

    def _exclusive(self, node: Node, info: FunctionInfo | None) -> tuple[str, ...]:
        """What no other node may hold meanwhile: resources that it writes, and the races that it writes in.

        An agent has one dialogue with its caller, so two steps that call it take turns.
        """
        if node.kind == "agent":
            return (f"agent:{node.call}", *node.writes)
        if info is None and not node.writes and not node.impact:
            return ()
        writes = (*node.writes, *(info.writes if info else ()))
        if not writes and not node.impact and not (info and info.impact):
            return ()
        state = self._engine.state
        races = [
            f"race:{one}"
            for one in state.nodes[node.id].serves
            if state.any_of(one) and node.id in state.nodes[one].node.after
        ]
        return tuple(dict.fromkeys((*writes, *races)))

    def _throttled(self, node: Node, info: FunctionInfo | None) -> float:
        """Seconds until its endpoint takes another call."""
        if not self._buckets:
            return 0.0
        bucket = self._buckets.get(node.endpoint or (info.endpoint if info else ""))
        return bucket.take(self._engine.clock.monotonic()) if bucket else 0.0

    def _woken(self, node: str) -> None:
        self.sleeping.discard(node)
        if self._engine.state.nodes[node].state == "ready":
            self._queue.add(node)
        self._engine.pump()
