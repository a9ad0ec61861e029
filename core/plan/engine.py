"""Runs a plan: the thin shell around `PlanState`.

The engine decides which event comes next, and waits for the world. All of its decisions happen
synchronously in the task in which something ended, so a successor starts in the same turn of the loop
as its last predecessor's completion, and a slow node holds nothing but what depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

from core.plan import contracts
from core.plan.admission import Admission
from core.plan.alarm import Alarm
from core.plan.deliberation import Deliberation
from core.plan.limits import Limits, PlanResult, Status
from core.plan.model import NO_ERROR, WORK, Node, Plan, PlanVersion
from core.plan.modes.base import LeaveOut, Mode
from core.plan.questions import excerpt
from core.plan.recovery import Exhausted, Ladder, LadderBudget
from core.plan.refs import MissingField, resolve
from core.plan.schedule import ReadyQueue, Resources, TokenBucket
from core.plan.seams import (
    Asker,
    Catalogue,
    Failure,
    Firing,
    FunctionInfo,
    Observer,
    Outcome,
    QuestionKind,
    Runner,
    Success,
)
from core.plan.state import NodeChange, PlanState
from core.plan.states import TERMINAL, Cause
from core.plan.validate import check
from core.ports import JSON, Clock

_PLANNING: Final[frozenset[QuestionKind]] = frozenset({"plan", "correct", "profile"})
_SAID: Final = 1000
_STOPPED: Final = Failure("timeout", "It was stopped before it began.")


class PlanEngine:
    """One run of one plan. `run` is called once; the other methods control it meanwhile, from the same loop."""

    def __init__(
        self,
        plan: Plan,
        *,
        runner: Runner,
        clock: Clock,
        asker: Asker | None = None,
        catalogue: Catalogue | None = None,
        observer: Observer | None = None,
        mode: Mode | None = None,
        limits: Limits | None = None,
        growing: bool = False,
        history: Sequence[NodeChange | PlanVersion] = (),
        answers: Sequence[tuple[QuestionKind, str]] = (),
        taken_up: Collection[str] = (),
    ) -> None:
        """`growing`: its steps are still being written; see `write`.

        `history`: the events of an earlier run of this plan, as its journal has them; the plan goes on from
        there. What ran when they end counts as interrupted: it is fired again only if that is safe. Those
        `taken_up` are not interrupted: the runner is asked for the outcome of the attempt that runs.
        `answers`: what models answered in that run.

        Raises:
            PlanInvalid: the plan can't run.
        """
        self.limits = limits or Limits()
        self.mode = mode or Mode()
        self.catalogue = catalogue
        self.observer = observer
        self.clock = clock
        self._monotonic = clock.monotonic
        self.state = PlanState(plan.id, plan.goal)
        self.contract = plan.contract
        self.ladder = Ladder(
            self.state,
            LadderBudget(
                self.limits.patches,
                self.limits.replans if self.mode.max_replans is None else self.mode.max_replans,
            ),
            backoff=self.limits.backoff,
        )
        self.trail: list[NodeChange | PlanVersion] = []
        self.warnings: list[str] = []
        self.flags: list[str] = []
        self.answer: str | None = None
        self.bound = ""
        self.tokens = 0
        self.superseded: set[str] = set()
        self.holds = 0
        self.concluded = False
        self.cancelled = False
        self.goal = plan.goal
        self.admission = Admission(self.state, self.mode, self.limits, catalogue)
        self.thoughts = Deliberation(self, asker, growing=growing)
        self._history = tuple(history)
        self._answers = tuple(answers)
        self._unplanned = not plan.nodes and not any(kind in _PLANNING for kind, _ in answers)
        self._taken_up = frozenset(taken_up)
        self._first = self._checked(plan) if plan.nodes and not history else None
        self._runner = runner
        self._alarm = Alarm(clock)
        self._queue = ReadyQueue()
        self._resources = Resources()
        self._parked: dict[str, list[str]] = {}
        self._buckets: dict[str, TokenBucket] = {
            one: TokenBucket(rate) for one, rate in self.limits.rates.items()
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._begun: set[str] = set()
        self._ended: dict[str, Literal["timeout", "stopped"]] = {}
        self._deadlines: dict[str, float] = {}
        self._next_due = float("inf")
        self._sleeping: set[str] = set()
        self._failures: dict[str, Failure] = {}
        self._paused = False
        self._stood = self._stood_since = 0.0
        self._pumping = False
        self._done = asyncio.Event()
        self._begin = 0.0

    # --- the run ------------------------------------------------------------------------------------

    async def run(self) -> PlanResult:
        """Run to the end; an outcome always comes back. Cancelling it aborts everything at once."""
        self._begin = self.clock.monotonic()
        async with asyncio.TaskGroup() as group:
            self.group = group
            alarm = group.create_task(self._alarm.run())
            if self.limits.wall_clock is not None:
                self._alarm.after(self.limits.wall_clock, self._late, "wall_clock")
            if self._history:
                self._go_on()
            elif self._first is not None:
                self.adopt(self._first)
            else:
                self.thoughts.begin()
            self.pump()
            await self._done.wait()
            alarm.cancel()
        return self._result()

    def _checked(self, plan: Plan) -> PlanVersion:
        checked = check(plan, self.catalogue, max_nodes=self.limits.nodes, agents=self.mode.agents)
        self.warn(*checked.warnings)
        return PlanVersion(1, None, plan.reason, tuple(checked.nodes.values()))

    def _go_on(self) -> None:
        """Fold the history, and bring every node to where it can go on from."""
        state = self.state
        for event in self._history:
            self.trail.append(event)
            if isinstance(event, PlanVersion):
                state.adopt(event)
                if event.reason.startswith("replan"):
                    self.superseded.update(state.in_state("failed"))
            else:
                state.apply(event)
                # Times in the trail go on where they ended.
                self._begin = self._monotonic() - event.at
        replaced = {r.node.spawned_by for r in state.nodes.values() if r.node.kind in WORK}
        self.superseded |= {one for one in replaced if one and state.nodes[one].state == "failed"}
        self.mode.restore(self._answers, self.catalogue)
        self.thoughts.go_on(self._answers, unplanned=self._unplanned)
        for one in state.in_state(
            "pending", "ready", "blocked", "running", "waiting_human", "failed_retryable"
        ):
            if state.superfluous(one):
                self.emit(one, "lost_race")
        for one in list(state.entries()):
            self.emit(one, "joined")
        for one in state.in_state("ready"):
            self._became_ready(one)
        for one in state.in_state("running", "waiting_human"):
            if one in self._taken_up:
                self._take_up(one)
            else:
                self.emit(one, "interrupted", detail="The program stopped while it ran.")
        unpatched = [one for one in state.in_state("failed") if state.nodes[one].rung == "retried"]
        for one in state.in_state("failed_retryable"):
            self._recovered(one)
        for one in unpatched:
            if state.nodes[one].node.kind in WORK:
                self.thoughts.recover(one)

    def _take_up(self, node: str) -> None:
        """An attempt of an earlier run goes on outside: wait for its outcome."""
        record = self.state.nodes[node]
        names = self._exclusive(record.node, self._info(record.node))
        self._resources.take(names, node)
        try:
            prepared = self.mode.prepare(
                self.state, node, resolve(record.node, self.state.outputs, record.winner)
            )
        except MissingField:
            prepared = {}
        arguments = {} if isinstance(prepared, LeaveOut) else prepared
        self._tasks[node] = self.group.create_task(self._fire(record.node, arguments, names))

    def _recovered(self, node: str) -> None:
        """A node of an earlier run that can't be told to have finished."""
        record = self.state.nodes[node]
        failure = Failure("interrupted", record.error)
        rung = (
            self.ladder.attempt_retry(
                node, failure, impact=self.impact(record.node), idempotent=self._idempotent(record.node)
            )
            if record.node.kind in WORK
            else Exhausted("thoughts are had anew")
        )
        if isinstance(rung, Exhausted) or self.state.join(node) != "holds":
            self.emit(node, "exhausted", detail=record.error)
            if record.node.kind in WORK:
                self._ended_work(node)
        else:
            self.emit(node, "retried")

    # --- control --------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Start nothing and ask nothing until `resume`; what runs goes on, the plan's own clock stands still."""
        if not self._paused:
            self._paused, self._stood_since = True, self._monotonic()
        self.thoughts.pause()

    def resume(self) -> None:
        """Go on."""
        if self._paused:
            self._paused = False
            self._stood += self._monotonic() - self._stood_since
        self.thoughts.resume()
        self.pump()

    def cancel(self, *, abort: bool = False, reason: str = "") -> None:
        """End the plan: what has not started is cancelled; what runs finishes, or is cancelled too (`abort`)."""
        self.concluded = self.cancelled = True
        self._paused = False
        self.thoughts.resume()
        spared = () if abort else ("running", "waiting_human")
        if abort:
            self.thoughts.stop()
        for one, record in list(self.state.nodes.items()):
            if record.state not in TERMINAL and record.state not in spared and one in self.state.plan.nodes:
                self.emit(one, "cancelled", detail=reason)
        self.pump()

    def cancel_node(self, node: str, *, reason: str = "") -> None:
        """End one node and leave the rest to the plan."""
        if self.state.nodes[node].state not in TERMINAL:
            self.emit(node, "cancelled", detail=reason)
            self.pump()

    def interject(self, text: str) -> None:
        """A person's message to the running plan: what runs finishes, the rest waits for its reflection."""
        if not self._done.is_set():
            self.thoughts.interject(text)
            self.pump()

    def write(self, piece: str) -> None:
        """The next piece of a plan that is still being written (`growing`); complete steps start at once."""
        self.thoughts.planner.write(piece)
        self.pump()

    def written(self) -> None:
        """The plan is complete."""
        self.thoughts.planner.written()
        self.pump()

    @property
    def paused(self) -> bool:
        return self._paused

    def spend(self, tokens: int) -> None:
        """Count tokens; the bound ends the plan."""
        self.tokens += tokens
        if self.limits.tokens is not None and self.tokens >= self.limits.tokens and not self.bound:
            self._hit("tokens")

    def _late(self, bound: str) -> None:
        """The time of the whole plan is over, unless it stood still for some of it."""
        left = (self.limits.wall_clock or 0.0) + self._stood - self.now()
        if self._paused or left > 0:
            self._alarm.after(max(left, 1.0), self._late, bound)
        else:
            self._hit(bound)

    def _hit(self, bound: str) -> None:
        if self._done.is_set():
            return
        self.bound = bound
        self.cancel(abort=True, reason=f"The bound on {bound.replace('_', ' ')} was hit.")

    # --- events -----------------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the plan's start."""
        return self._monotonic() - self._begin

    def emit(self, node: str, cause: Cause, *, detail: str = "") -> None:
        """Make a change happen, with all that follows from it at once."""
        self._follow(self.state.happen(node, cause, self._monotonic() - self._begin, detail))

    def adopt(self, version: PlanVersion) -> None:
        """Go over to a version; what it drops is cancelled first."""
        for one in version.drop:
            if self.state.nodes[one].state not in TERMINAL:
                self.emit(one, "dropped", detail=f"Dropped by version {version.version}: {version.reason}")
        self.state.adopt(version)
        self.trail.append(version)
        if self.observer is not None:
            self.observer.on_version(version)
        for node in sorted((*version.add, *version.rewire), key=lambda node: node.id):
            record = self.state.nodes[node.id]
            if record.missing == 0 and record.state == "pending" and self.state.join(node.id) == "holds":
                self.emit(node.id, "joined")

    def _apply(self, change: NodeChange) -> None:
        self.state.apply(change)
        self._follow(change)

    def _follow(self, change: NodeChange) -> None:
        """A change has been applied: tell of it, and do what it means for the queue, the tasks and the others."""
        self.trail.append(change)
        if self.observer is not None:
            self.observer.on_change(change)
        node, source, target = change.node, change.source, change.target
        if source == "ready" or source == "failed_retryable":
            self._queue.remove(node)
            self._sleeping.discard(node)
        if target == "ready":
            self._became_ready(node)
        elif target == "executed" or target == "pending":
            for one, cause in self.state.consequences(change):
                self.emit(one, cause)
        elif target in TERMINAL and change.cause not in ("broke", "exhausted"):
            self._stop(node)

    def _became_ready(self, node: str) -> None:
        if self.state.nodes[node].node.kind not in WORK:
            return
        if self.holds or not self.mode.admits(self.state, node):
            self.emit(node, "gated")
        else:
            self._queue.add(node)

    def _stop(self, node: str) -> None:
        task = self._tasks.get(node)
        if task is not None:
            self._end(node, task, "stopped")

    def _end(self, node: str, task: asyncio.Task[None], why: Literal["timeout", "stopped"]) -> None:
        """Stop an attempt. A task that has not begun would never come to its end if it were cancelled."""
        self._ended[node] = why
        if node in self._begun:
            task.cancel()

    def release(self) -> None:
        """Let blocked nodes see whether they may start now."""
        for one in self.state.in_state("blocked"):
            self.emit(one, "released")

    def gate_all(self) -> None:
        """Block everything that has not started."""
        for one in self.state.in_state("pending", "ready"):
            if self.state.nodes[one].node.kind in WORK:
                self.emit(one, "gated")

    def conclude(self, reason: str, answer: str | None) -> None:
        """Start nothing more; what runs finishes."""
        self.concluded = True
        self.answer = answer if answer is not None else self.answer
        for one in self.state.in_state("pending", "ready", "blocked", "failed_retryable"):
            if self.state.nodes[one].node.kind in WORK and self.state.nodes[one].state not in TERMINAL:
                self.emit(one, "concluded", detail=reason)

    def warn(self, *texts: str) -> None:
        """For a person; nothing that a model sees."""
        self.warnings.extend(texts)
        for text in texts:
            if self.observer is not None:
                self.observer.on_notice(text)

    # --- starting nodes -----------------------------------------------------------------------------------

    def pump(self) -> None:
        """Start what may start; when nothing can, think about what is left, or end."""
        if self._pumping or self._done.is_set():
            return
        self._pumping = True
        try:
            while not self._paused:
                while len(self._tasks) < self.limits.concurrency:
                    node = self._queue.pop()
                    if node is None:
                        break
                    self._try_start(node)
                if self._tasks or self._queue or self._sleeping or self.thoughts.busy:
                    return
                if not self._rest():
                    return
        finally:
            self._pumping = False

    def _rest(self) -> bool:
        """Nothing runs and nothing can start. True if there is something to start again."""
        if self.thoughts.at_rest():
            return not self.thoughts.busy
        if self.state.in_state("blocked") and not self.holds:
            self.release()
            if self._queue:
                return True
        self._settle()
        self._done.set()
        return False

    def _settle(self) -> None:
        """Nothing will change any more: what could not run says why (the deadlock report)."""
        open_ = self.state.in_state("pending", "blocked", "ready", "failed_retryable")
        changed = True
        while changed:
            changed = False
            for one in open_:
                if self.state.nodes[one].state in ("pending", "blocked") and self.state.join(one) == "lost":
                    why = "It waited for what did not succeed: " + ", ".join(self.state.waits_for(one)) + "."
                    raced = self.state.any_of(one) and self.state.nodes[one].missing == 0
                    if raced and self.state.nodes[one].state == "blocked":
                        self.emit(one, "released")
                    self.emit(one, "join_failed" if raced else "dependency_failed", detail=why)
                    changed = True
        stuck = [one for one in open_ if self.state.nodes[one].state not in TERMINAL]
        for one in stuck:
            why = ", ".join(self.state.waits_for(one)) or "nothing"
            self.warn(f"Step {one!r} never started; it waited for {why}.")
            self.emit(one, "cancelled", detail=f"It never started; it waited for {why}.")

    def _try_start(self, node: str) -> None:
        """Start a ready node, or set it aside until what it lacks is there."""
        record = self.state.nodes[node]
        info = self._info(record.node)
        names = self._exclusive(record.node, info)
        for name in names:
            if not self._resources.free((name,)):
                self._parked.setdefault(name, []).append(node)
                return
        wait = self._throttled(record.node, info)
        if wait > 0:
            self._sleeping.add(node)
            self._alarm.after(wait, self._woken, node)
            return
        arguments = self._arguments(node)
        if arguments is None:
            return
        self._resources.take(names, node)
        self.emit(node, "dispatched")
        self._tasks[node] = self.group.create_task(self._fire(record.node, arguments, names))

    def _arguments(self, node: str) -> dict[str, JSON] | None:
        record = self.state.nodes[node]
        try:
            resolved = resolve(record.node, self.state.outputs, record.winner)
            prepared = self.mode.prepare(self.state, node, resolved)
        except MissingField as error:
            self.emit(node, "ref_missing", detail=f"{str(error)[:1].upper()}{str(error)[1:]}.")
            self._ended_work(node)
            return None
        if isinstance(prepared, LeaveOut):
            self.emit(node, "dispatched")
            self._succeed(node, Success(None), "left_out", prepared.reason)
            return None
        return prepared

    def _info(self, node: Node) -> FunctionInfo | None:
        return self.catalogue.find(node.call) if self.catalogue is not None and node.kind == "tool" else None

    def impact(self, node: Node) -> int:
        """For retries and races: an agent counts as one that writes, unless the plan says otherwise."""
        info = self._info(node)
        claimed = (1 if node.kind == "agent" else 0) if node.impact is None else node.impact
        return max(claimed, info.impact if info else 0)

    def _idempotent(self, node: Node) -> bool:
        info = self._info(node)
        return bool(info.idempotent if info else node.idempotent)

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
        races = [
            f"race:{one}"
            for one in self.state.nodes[node.id].serves
            if self.state.any_of(one) and node.id in self.state.nodes[one].node.after
        ]
        return tuple(dict.fromkeys((*writes, *races)))

    def _throttled(self, node: Node, info: FunctionInfo | None) -> float:
        if not self._buckets:
            return 0.0
        bucket = self._buckets.get(node.endpoint or (info.endpoint if info else ""))
        return bucket.take(self.clock.monotonic()) if bucket else 0.0

    def _woken(self, node: str) -> None:
        self._sleeping.discard(node)
        if self.state.nodes[node].state == "ready":
            self._queue.add(node)
        self.pump()

    # --- while a node runs ----------------------------------------------------------------------------------

    async def _fire(self, node: Node, arguments: dict[str, JSON], names: tuple[str, ...]) -> None:
        """One attempt, from start to its outcome."""
        self._begun.add(node.id)
        try:
            outcome = _STOPPED if node.id in self._ended else await self._attempt(node, arguments)
            while isinstance(outcome, Failure) and node.id not in self._ended:
                again = self.mode.recover(self.state, node.id, outcome, arguments)
                if again is None:
                    break
                arguments = again
                outcome = await self._attempt(node, arguments)
        except asyncio.CancelledError:
            if node.id not in self._ended:
                raise
            outcome = Failure(
                "timeout", f"It took longer than {self._time_limit(node):g} seconds and was stopped."
            )
        self._landed(node, outcome, names)

    async def _attempt(self, node: Node, arguments: dict[str, JSON]) -> Outcome:
        state, record = self.state, self.state.nodes[node.id]
        self._set_deadline(node.id, self._time_limit(node))
        inputs: Mapping[str, JSON] = {}
        if node.kind == "agent":
            inputs = {one: state.outputs[one] for one in node.dependencies if one in state.outputs}
        labels = state.labels_of(node.id) if node.refs else ()
        firing = Firing(
            state.plan.id,
            record.version,
            node,
            record.attempts,
            arguments,
            labels,
            inputs,
            _Waiting(self, node.id),
        )
        try:
            outcome = await self._runner.run(firing)
        except Exception as error:
            return Failure("crashed", f"The step could not be run ({type(error).__name__}: {error}).")
        if isinstance(outcome, Failure):
            return outcome
        broken = contracts.violation(node.contract, outcome)
        if broken is not None:
            return Failure("contract", f"{broken}{_said(outcome)}", outcome.exit_status, outcome.tokens)
        if node.contract.judgement is not None and not await self.thoughts.judged(node, outcome.output):
            return Failure(
                "contract",
                f"The result was judged not to hold: {node.contract.judgement}",
                tokens=outcome.tokens,
            )
        return outcome

    def _landed(self, node: Node, outcome: Outcome, names: tuple[str, ...]) -> None:
        """An attempt is over: free what it held, and record what came of it."""
        self._tasks.pop(node.id, None)
        self._begun.discard(node.id)
        self._deadlines.pop(node.id, None)
        stopped = self._ended.pop(node.id, None) == "stopped"
        if names:
            self._free(names, node.id)
        if not stopped:
            if isinstance(outcome, Success):
                self._succeed(node.id, outcome, contracts.passed_by(node.contract))
            else:
                self._failed(node, outcome)
            if outcome.tokens:
                self.spend(outcome.tokens)
        self.pump()

    def _succeed(self, node: str, outcome: Success, validation: str, detail: str = "") -> None:
        self._apply(self._success(node, outcome, validation, detail))
        self.thoughts.ended(node)

    def _success(self, node: str, outcome: Success, validation: str, detail: str) -> NodeChange:
        record = self.state.nodes[node]
        return NodeChange(
            node, self.state.versions[-1].version, "succeeded", record.state, "executed", self.now(),
            record.attempts, detail, outcome.output, outcome.labels, validation,
        )  # fmt: skip

    def thought(self, node: str, answer: JSON) -> None:
        """A thinking node has its answer."""
        if self.state.nodes[node].state == "running":
            self._apply(self._success(node, Success(answer, ("model",)), "parsed", ""))

    def _failed(self, node: Node, failure: Failure) -> None:
        self._failures[node.id] = failure
        rung = self.ladder.attempt_retry(
            node.id, failure, impact=self.impact(node), idempotent=self._idempotent(node)
        )
        if isinstance(rung, Exhausted) or self.concluded:
            why = f" ({rung.why})" if isinstance(rung, Exhausted) and failure.transient else ""
            self.emit(node.id, "broke", detail=f"{failure.message}{why}")
            self._ended_work(node.id)
            return
        self.emit(node.id, "transient", detail=failure.message)
        if self.state.superfluous(node.id):
            self.emit(node.id, "lost_race")
            return
        self._sleeping.add(node.id)
        self._alarm.after(rung.delay, self._retry, node.id)

    def _retry(self, node: str) -> None:
        self._sleeping.discard(node)
        if self.state.nodes[node].state == "failed_retryable":
            if self.state.join(node) == "holds":
                self.emit(node, "retried")
            else:
                self.emit(node, "exhausted", detail="What it stands on was lost meanwhile.")
                self._ended_work(node)
        self.pump()

    def _ended_work(self, node: str) -> None:
        self.thoughts.ended(node)
        if self.state.nodes[node].state == "failed":
            self.thoughts.recover(node)

    def _free(self, names: Iterable[str], node: str) -> None:
        self._resources.release(names, node)
        for name in names:
            for parked in self._parked.pop(name, ()):
                if self.state.nodes[parked].state == "ready":
                    self._queue.add(parked)

    # --- time limits ------------------------------------------------------------------------------------------

    def _time_limit(self, node: Node) -> float:
        limit = node.timeout if node.timeout is not None else self.limits.node_timeout
        return limit if limit is not None else float("inf")

    def _set_deadline(self, node: str, seconds: float) -> None:
        if seconds == float("inf"):
            self._deadlines.pop(node, None)
            return
        due = self._monotonic() + seconds
        self._deadlines[node] = due
        self._watch(due)

    def _watch(self, due: float) -> None:
        """One alarm for the earliest time limit: an entry for each would cost more than the node."""
        if due < self._next_due:
            self._next_due = due
            self._alarm.at(due, self._overdue, "")

    def _overdue(self, about: str) -> None:
        now = self._monotonic()
        self._next_due = float("inf")
        for node, due in list(self._deadlines.items()):
            if due <= now:
                self._due(node)
        self._watch(min((due for due in self._deadlines.values() if due > now), default=float("inf")))

    def _due(self, node: str) -> None:
        if node in self._ended:
            return
        if self.state.nodes[node].state == "waiting_human":
            self.emit(node, "expired", detail="Nobody decided in time.")
            self._ended_work(node)
            return
        self._end(node, self._tasks[node], "timeout")

    def waits_for_person(self, node: str) -> None:
        """A firing waits for a person: its own time limit stands still, the person's runs."""
        if self.state.nodes[node].state == "running":
            self.emit(node, "needs_human")
            self._set_deadline(node, self.limits.human_timeout)

    def goes_on(self, node: str) -> None:
        if self.state.nodes[node].state == "waiting_human":
            self.emit(node, "approved")
            self._set_deadline(node, self._time_limit(self.state.nodes[node].node))

    # --- the end ------------------------------------------------------------------------------------------------

    def _result(self) -> PlanResult:
        work = {
            one: self.state.nodes[one] for one, node in self.state.plan.nodes.items() if node.kind in WORK
        }
        missing: dict[str, str] = {}
        last: dict[str, JSON] = {}
        for one, record in work.items():
            followers = (work.get(other) for other in record.serves)
            if one in self.superseded or any(each and each.state != "cancelled" for each in followers):
                continue
            if record.state == "executed":
                last[one] = record.output
            elif record.cause != "concluded":
                missing[one] = record.error or record.state
        result: JSON = self.answer
        if result is None and last:
            result = next(iter(last.values())) if len(last) == 1 else last
        any_done = any(record.state == "executed" for record in work.values())
        status: Status = "failed" if not any_done else "partial" if missing or self.bound else "concluded"
        broken = self._contract_broken(result) if status == "concluded" else None
        if broken:
            status = "partial"
            self.warnings.append(f"The plan's own contract does not hold: {broken}")
        return PlanResult(
            status, result, missing, self.state.nodes, tuple(self.state.versions), tuple(self.trail),
            self.thoughts.calls, self.tokens, self.now(), self.bound, tuple(self.warnings), tuple(self.flags),
        )  # fmt: skip

    def _contract_broken(self, result: JSON) -> str | None:
        return None if self.contract is NO_ERROR else contracts.violation(self.contract, Success(result))


def _said(success: Success) -> str:
    """What an output that broke its contract holds, for whoever is to repair the step."""
    text = excerpt(success.output, _SAID).strip() if not contracts.is_empty(success.output) else ""
    return f" Its output: {text}" if text else ""


class _Waiting:
    """A firing's way to say that it waits for a person."""

    __slots__ = ("_engine", "_node")

    def __init__(self, engine: PlanEngine, node: str) -> None:
        self._engine = engine
        self._node = node

    def waits_for_person(self) -> None:
        self._engine.waits_for_person(self._node)

    def goes_on(self) -> None:
        self._engine.goes_on(self._node)
