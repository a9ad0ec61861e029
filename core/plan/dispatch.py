"""Decides which ready node starts now: in order of id, once its resources are free and its endpoint has capacity."""

from __future__ import annotations

from collections.abc import Iterable

from iact.core.plan.execution import NEVER, Attempt, Execution
from iact.core.plan.model import PlanNode
from iact.core.plan.modes.base import LeaveOut
from iact.core.plan.protocol import Firing, FunctionInfo
from iact.core.plan.refs import MissingField, resolve
from iact.core.plan.schedule import Resources
from iact.core.plan.validate import effective_impact
from iact.core.ports import JSON
from iact.core.rates import TokenBucket


class Dispatch:
    """Starts the nodes of one run, and keeps the time limits of running nodes."""

    def __init__(self, run: Execution) -> None:
        self.ended: list[str] = []
        """Nodes that ended without having been started, for the machine to process."""
        self._run = run
        self._resources = Resources()
        self._parked: dict[str, list[str]] = {}
        """The nodes that wait for a resource, by its name."""
        self._prepared: dict[str, tuple[PlanNode, dict[str, JSON]]] = {}
        """The arguments that were prepared for nodes that were set aside."""
        self._buckets = {endpoint: TokenBucket(rate) for endpoint, rate in run.limits.rates.items()}
        self._deadlines: dict[str, float] = {}
        """When the time of an attempt is over, in seconds since the plan's start."""
        self._left: dict[str, float] = {}
        """The seconds left for attempts whose time stands still."""
        self._next_due = NEVER
        """When the earliest timer for time limits is due."""

    def next(self) -> None:
        """Start the first ready node, or set it aside until what it needs is available."""
        run = self._run
        node = run.queue.pop()
        if node is None:
            return

        record = run.state.nodes[node]
        arguments = self._arguments(node)
        if arguments is None:
            return
        # While the plan is still being written, only what has no effect may start.
        if not run.whole and run.impact_of(record.node, arguments) > 0:
            run.unadmitted.append(node)
            return

        info = run.info_of(record.node, arguments)
        if record.node.kind == "tool" and effective_impact(record.node, info, run.catalogue) >= 1:
            run.effects.add(node)

        race = self._race(record.node, info)
        exclusive = self._exclusive(record.node, info)
        # In a race with copies, all that a function itself writes is written in the copy.
        shared = tuple(name for name in exclusive if name not in record.node.writes) if race else ()
        names = tuple(name for name in exclusive if name not in shared)
        for name in (*names, *shared):
            if not self._resources.free(name, shared=name in shared):
                self._parked.setdefault(name, []).append(node)
                return

        wait = self._throttled(record.node, info)
        if wait > 0:
            run.sleeping.add(node)
            run.timer(run.at + wait, "throttled", node)
            return

        del self._prepared[node]
        self._resources.take(names, node)
        self._resources.take(shared, node, shared=True)
        run.emit(node, "dispatched")
        self.fire(Attempt(record.node, arguments, names, shared, race))

    def fire(self, attempt: Attempt) -> None:
        """Make an attempt, the first of a dispatch or a further one."""
        run = self._run
        state = run.state
        node = attempt.node
        record = state.nodes[node.id]

        run.attempts[node.id] = attempt
        record.arguments = attempt.arguments
        self.limit(node.id, self.time_limit(node))

        inputs = {}
        if node.kind in ("agent", "person"):
            inputs = {
                dependency: state.outputs[dependency]
                for dependency in node.dependencies
                if dependency in state.outputs
            }
        labels = state.labels_of(node.id) if node.refs else ()
        run.out.append(
            Firing(
                state.plan.id, record.version, node, record.attempts, attempt.arguments, labels, inputs, attempt.race
            )
        )  # fmt: skip

        if node.kind == "person" and record.state == "running":
            run.emit(node.id, "needs_human")

    def take_up(self, node: str) -> None:
        """Wait for the outcome of an attempt from an earlier run that is still in progress outside."""
        run = self._run
        record = run.state.nodes[node]
        arguments: dict[str, JSON] = {}
        try:
            resolved = resolve(record.node, run.state.outputs, record.winner)
            prepared = run.mode.prepare(run.state, node, resolved)
            if not isinstance(prepared, LeaveOut):
                arguments = prepared
        except MissingField:
            pass

        names = self._exclusive(record.node, run.info_of(record.node, arguments))
        self._resources.take(names, node)
        self.fire(Attempt(record.node, arguments, names))

    def over(self, node: str) -> None:
        """End an attempt. Nodes that waited for what it held are tried again."""
        attempt = self._run.attempts.pop(node)
        self._deadlines.pop(node, None)
        self._left.pop(node, None)
        if attempt.names or attempt.shared:
            self._free((*attempt.names, *attempt.shared), node)

    def _free(self, names: Iterable[str], node: str) -> None:
        """Release what an attempt held, and queue the nodes that waited for it."""
        self._resources.release(names, node)
        for name in names:
            for parked in self._parked.pop(name, ()):
                if self._run.state.nodes[parked].state == "ready":
                    self._run.queue.add(parked)

    def woken(self, node: str) -> None:
        """Queue a node again, because its endpoint's rate may allow it now."""
        self._run.sleeping.discard(node)
        if self._run.state.nodes[node].state == "ready":
            self._run.queue.add(node)

    def _arguments(self, node: str) -> dict[str, JSON] | None:
        """The arguments to fire a node with, decided once when it is ready; None if it ended without firing."""
        run = self._run
        record = run.state.nodes[node]
        before = self._prepared.get(node)
        if before is not None and before[0] is record.node:
            return before[1]

        try:
            resolved = resolve(record.node, run.state.outputs, record.winner)
            prepared = run.mode.prepare(run.state, node, resolved)
        except MissingField as error:
            run.emit(node, "ref_missing", detail=f"{str(error)[:1].upper()}{str(error)[1:]}.")
            self.ended.append(node)
            return None
        if isinstance(prepared, LeaveOut):
            run.emit(node, "dispatched")
            run.succeed(node, None, (), "left_out", prepared.reason)
            self.ended.append(node)
            return None
        self._prepared[node] = (record.node, prepared)
        return prepared

    def _exclusive(self, node: PlanNode, info: FunctionInfo | None) -> tuple[str, ...]:
        """What no other node may hold at the same time: resources that it writes, and the races that it writes in.

        An agent has one dialogue with its caller, so two steps that call it take turns.
        """
        if node.kind == "agent":
            return (f"agent:{node.call}", *node.writes)
        declares_nothing = not node.writes and not node.impact
        if info is None and declares_nothing:
            return ()

        writes = (*node.writes, *(info.writes if info else ()))
        may_change_something = bool(writes or node.impact or (info and info.impact))
        if not may_change_something:
            return ()

        state = self._run.state
        races = [
            f"race:{follower}"
            for follower in state.nodes[node.id].serves
            if state.any_of(follower) and node.id in state.nodes[follower].node.after
        ]
        return tuple(dict.fromkeys((*writes, *races)))

    def _race(self, node: PlanNode, info: FunctionInfo | None) -> str:
        """The node for which it races in a copy of the workspace; empty if it works in the workspace itself.

        If any other node depends on it, that node needs what it writes, regardless of which alternative wins. So it gets
        no copy.
        """
        state = self._run.state
        serves = state.nodes[node.id].serves
        if info is None or not info.copies or len(serves) != 1:
            return ""
        return serves[0] if node.id in state.nodes[serves[0]].node.candidates else ""

    def _throttled(self, node: PlanNode, info: FunctionInfo | None) -> float:
        """Seconds until its endpoint takes another call."""
        if not self._buckets:
            return 0.0

        endpoint = node.endpoint or (info.endpoint if info else "")
        bucket = self._buckets.get(endpoint)
        return bucket.take(self._run.at) if bucket else 0.0

    # --- time limits ------------------------------------------------------------------------------------------

    def time_limit(self, node: PlanNode) -> float:
        """Seconds that an attempt may take, as far as that is watched here.

        A tool's time only begins when its module has the call, after everything that the call may wait for. The code
        that fires it therefore keeps its limit, and reports `timeout` if it took longer. An agent is at work from its
        firing on. A person has the time that the step allows them, which is kept where they are asked.
        """
        if node.kind in ("tool", "person"):
            return NEVER
        limit = node.timeout if node.timeout is not None else self._run.limits.node_timeout
        return limit if limit is not None else NEVER

    def limit(self, node: str, seconds: float) -> None:
        """Limit an attempt to this many seconds from now, or from when its time continues."""
        if node in self._left:
            self._left[node] = seconds
            return
        if seconds == NEVER:
            self._deadlines.pop(node, None)
            return
        due = self._run.at + seconds
        self._deadlines[node] = due
        self._watch(due)

    def stand(self, node: str) -> None:
        """Stop the time of an attempt."""
        if node in self._left:
            return
        due = self._deadlines.pop(node, NEVER)
        self._left[node] = max(0.0, due - self._run.at)

    def go_on(self, node: str) -> None:
        """Let the time of an attempt continue, if it stood still."""
        if node in self._left:
            self.limit(node, self._left.pop(node))

    def _watch(self, due: float) -> None:
        """Keep one timer for the earliest time limit: a timer for each would cost more than the node."""
        if due < self._next_due:
            self._next_due = due
            self._run.timer(due, "overdue")

    def overdue(self) -> list[str]:
        """Return the attempts whose time is over and that were not reported before."""
        now = self._run.at
        self._next_due = NEVER
        over = [node for node, due in self._deadlines.items() if due <= now]
        for node in over:
            del self._deadlines[node]

        self._watch(min(self._deadlines.values(), default=NEVER))
        return [node for node in over if not self._run.attempts[node].ending]
