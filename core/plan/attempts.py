"""The attempts that run now: each is one task, from its start to its outcome, with a time limit.

A firing that waits for a person stands still: its own time limit does, and the person's runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from core.plan import contracts
from core.plan.alarm import Alarm
from core.plan.model import Node
from core.plan.questions import excerpt
from core.plan.seams import Failure, Firing, Outcome, Runner, Success
from core.ports import JSON

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine

_SAID: Final = 1000
_STOPPED: Final = Failure("timeout", "It was stopped before it began.")


class Attempts:
    """The running attempts of one `PlanEngine`, which is told of each one's end (`landed`)."""

    def __init__(self, engine: PlanEngine, runner: Runner, alarm: Alarm) -> None:
        self._engine = engine
        self._runner = runner
        self._alarm = alarm
        self._monotonic = engine.clock.monotonic
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._begun: set[str] = set()
        self._ended: dict[str, Literal["timeout", "stopped"]] = {}
        self._deadlines: dict[str, float] = {}
        self._next_due = float("inf")

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, node: Node, arguments: dict[str, JSON], names: tuple[str, ...]) -> None:
        """Fire a node. `names`: what it holds meanwhile, for `landed`."""
        self._tasks[node.id] = self._engine.group.create_task(self._fire(node, arguments, names))

    def stop(self, node: str) -> None:
        """Stop the attempt of a node, if one runs; nothing comes of it."""
        if node in self._tasks:
            self._end(node, "stopped")

    def _end(self, node: str, why: Literal["timeout", "stopped"]) -> None:
        """Stop an attempt. A task that has not begun would never come to its end if it were cancelled."""
        self._ended[node] = why
        if node in self._begun:
            self._tasks[node].cancel()

    async def _fire(self, node: Node, arguments: dict[str, JSON], names: tuple[str, ...]) -> None:
        """One attempt, from start to its outcome."""
        engine = self._engine
        self._begun.add(node.id)
        try:
            outcome = _STOPPED if node.id in self._ended else await self._attempt(node, arguments)
            while isinstance(outcome, Failure) and node.id not in self._ended:
                again = engine.mode.recover(engine.state, node.id, outcome, arguments)
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
        self._tasks.pop(node.id, None)
        self._begun.discard(node.id)
        self._deadlines.pop(node.id, None)
        stopped = self._ended.pop(node.id, None) == "stopped"
        engine.landed(node, None if stopped else outcome, names)

    async def _attempt(self, node: Node, arguments: dict[str, JSON]) -> Outcome:
        state, record = self._engine.state, self._engine.state.nodes[node.id]
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
        if node.contract.judgement is not None and not await self._engine.thoughts.judged(
            node, outcome.output
        ):
            return Failure(
                "contract",
                f"The result was judged not to hold: {node.contract.judgement}",
                tokens=outcome.tokens,
            )
        return outcome

    # --- time limits ------------------------------------------------------------------------------------------

    def _time_limit(self, node: Node) -> float:
        limit = node.timeout if node.timeout is not None else self._engine.limits.node_timeout
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
        if self._engine.state.nodes[node].state == "waiting_human":
            self._engine.expired(node)
            return
        self._end(node, "timeout")

    def waits_for_person(self, node: str) -> None:
        """A firing waits for a person: its own time limit stands still, the person's runs."""
        if self._engine.state.nodes[node].state == "running":
            self._engine.emit(node, "needs_human")
            self._set_deadline(node, self._engine.limits.human_timeout)

    def goes_on(self, node: str) -> None:
        """The person has decided."""
        if self._engine.state.nodes[node].state == "waiting_human":
            self._engine.emit(node, "approved")
            self._set_deadline(node, self._time_limit(self._engine.state.nodes[node].node))


def _said(success: Success) -> str:
    """What an output that broke its contract holds, for whoever is to repair the step."""
    text = excerpt(success.output, _SAID).strip() if not contracts.is_empty(success.output) else ""
    return f" Its output: {text}" if text else ""


class _Waiting:
    """A firing's way to say that it waits for a person."""

    __slots__ = ("_attempts", "_node")

    def __init__(self, attempts: Attempts, node: str) -> None:
        self._attempts = attempts
        self._node = node

    def waits_for_person(self) -> None:
        self._attempts.waits_for_person(self._node)

    def goes_on(self) -> None:
        self._attempts.goes_on(self._node)
