"""Runs a plan: the thin shell around `PlanState`.

The engine decides which event comes next, and waits for the world. All of its decisions happen
synchronously in the task in which something ended, so a successor starts in the same turn of the loop
as its last predecessor's completion, and a slow node holds nothing but what depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from core.plan import contracts
from core.plan.admission import NOT_STARTED, Admission
from core.plan.alarm import Alarm
from core.plan.attempts import Attempts
from core.plan.deliberation import Deliberation
from core.plan.dispatch import Dispatch
from core.plan.limits import Limits
from core.plan.model import NO_ERROR, WORK, Node, Plan, PlanVersion
from core.plan.modes.base import Mode
from core.plan.recovery import Exhausted, Ladder, LadderBudget, Retry
from core.plan.result import PlanResult, Status, gather
from core.plan.seams import (
    Asker,
    Catalogue,
    Failure,
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
        self._alarm = Alarm(clock)
        self._attempts = Attempts(self, runner, self._alarm)
        self._dispatch = Dispatch(self, self._attempts, self._alarm)
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
        for one in state.in_state(*NOT_STARTED, "running", "waiting_human", "failed_retryable"):
            if state.superfluous(one):
                self.emit(one, "lost_race")
        for one in list(state.entries()):
            self.emit(one, "joined")
        for one in state.in_state("ready"):
            self._became_ready(one)
        for one in state.in_state("running", "waiting_human"):
            if one in self._taken_up:
                self._dispatch.take_up(one)
            else:
                self.emit(one, "interrupted", detail="The program stopped while it ran.")
        unpatched = [one for one in state.work_in("failed") if state.nodes[one].rung == "retried"]
        for one in state.in_state("failed_retryable"):
            self._recovered(one)
        for one in unpatched:
            self.thoughts.recover(one)

    def _recovered(self, node: str) -> None:
        """A node of an earlier run that can't be told to have finished."""
        record = self.state.nodes[node]
        failure = Failure("interrupted", record.error)
        is_work = record.node.kind in WORK  # thoughts are had anew
        exhausted = not is_work or isinstance(self._try_again(record.node, failure), Exhausted)
        if exhausted or self.state.join(node) != "holds":
            self.emit(node, "exhausted", detail=record.error)
            if is_work:
                self._ended_work(node)
        else:
            self.emit(node, "retried")

    def _try_again(self, node: Node, failure: Failure) -> Retry | Exhausted:
        """Rung 1. An agent counts as one that writes, unless the plan says otherwise."""
        info = self.info(node)
        claimed = (1 if node.kind == "agent" else 0) if node.impact is None else node.impact
        impact = max(claimed, info.impact if info else 0)
        idempotent = bool(info.idempotent if info else node.idempotent)
        return self.ladder.attempt_retry(node.id, failure, impact=impact, idempotent=idempotent)

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
            self._dispatch.remove(node)
        if target == "ready":
            self._became_ready(node)
        elif target == "executed" or target == "pending":
            for one, cause in self.state.consequences(change):
                self.emit(one, cause)
        elif target in TERMINAL and change.cause not in ("broke", "exhausted"):
            self._attempts.stop(node)

    def _became_ready(self, node: str) -> None:
        if self.state.nodes[node].node.kind not in WORK:
            return
        if self.holds or not self.mode.admits(self.state, node):
            self.emit(node, "gated")
        else:
            self._dispatch.add(node)

    def release(self) -> None:
        """Let blocked nodes see whether they may start now."""
        for one in self.state.in_state("blocked"):
            self.emit(one, "released")

    def gate_all(self) -> None:
        """Block everything that has not started."""
        for one in self.state.work_in("pending", "ready"):
            self.emit(one, "gated")

    def conclude(self, reason: str, answer: str | None) -> None:
        """Start nothing more; what runs finishes."""
        self.concluded = True
        self.answer = answer if answer is not None else self.answer
        for one in self.state.work_in(*NOT_STARTED, "failed_retryable"):
            if self.state.nodes[one].state not in TERMINAL:
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
                self._dispatch.fill()
                if self._attempts or self._dispatch or self._dispatch.sleeping or self.thoughts.busy:
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
            if self._dispatch:
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

    def info(self, node: Node) -> FunctionInfo | None:
        """What is known of the function that a tool node calls."""
        return self.catalogue.find(node.call) if self.catalogue is not None and node.kind == "tool" else None

    # --- when a node has run --------------------------------------------------------------------------------

    def landed(self, node: Node, outcome: Outcome | None, names: tuple[str, ...]) -> None:
        """An attempt is over (None: it was stopped): free what it held, and record what came of it."""
        if names:
            self._dispatch.free(names, node.id)
        if outcome is not None:
            if isinstance(outcome, Success):
                self._succeed(node.id, outcome, contracts.passed_by(node.contract))
            else:
                self._failed(node, outcome)
            if outcome.tokens:
                self.spend(outcome.tokens)
        self.pump()

    def unresolved(self, node: str, why: str) -> None:
        """A ready node needs a value that its dependency does not have."""
        self.emit(node, "ref_missing", detail=why)
        self._ended_work(node)

    def left_out(self, node: str, why: str) -> None:
        """The mode finds that a ready node need not run."""
        self.emit(node, "dispatched")
        self._succeed(node, Success(None), "left_out", why)

    def expired(self, node: str) -> None:
        """No person decided in time."""
        self.emit(node, "expired", detail="Nobody decided in time.")
        self._ended_work(node)

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
        rung = self._try_again(node, failure)
        if isinstance(rung, Exhausted) or self.concluded:
            why = f" ({rung.why})" if isinstance(rung, Exhausted) and failure.transient else ""
            self.emit(node.id, "broke", detail=f"{failure.message}{why}")
            self._ended_work(node.id)
            return
        self.emit(node.id, "transient", detail=failure.message)
        if self.state.superfluous(node.id):
            self.emit(node.id, "lost_race")
            return
        self._dispatch.sleep(node.id, rung.delay, self._retry)

    def _retry(self, node: str) -> None:
        self._dispatch.sleeping.discard(node)
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

    # --- the end ------------------------------------------------------------------------------------------------

    def _result(self) -> PlanResult:
        ends = gather(self.state, self.superseded)
        result = self.answer if self.answer is not None else ends.result
        status: Status = "concluded"
        if ends.missing or self.bound or not ends.any_done:
            status = "partial" if ends.any_done else "failed"
        if status == "concluded" and (broken := self._contract_broken(result)):
            status = "partial"
            self.warnings.append(f"The plan's own contract does not hold: {broken}")
        return PlanResult(
            status, result, ends.missing, self.state.nodes, tuple(self.state.versions), tuple(self.trail),
            self.thoughts.calls, self.tokens, self.now(), self.bound, tuple(self.warnings), tuple(self.flags),
        )  # fmt: skip

    def _contract_broken(self, result: JSON) -> str | None:
        return None if self.contract is NO_ERROR else contracts.violation(self.contract, Success(result))
