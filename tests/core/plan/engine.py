"""A plan run by itself, without a session: a small shell around `PlanMachine`, for tests and benchmarks.

A `Runner` fires nodes, an `Asker` puts questions to a model, an `Observer` is told what happens.

What the machine wants is carried out by tasks, and what comes of it is told to the machine in the very task in which
it ended, so a successor starts in the same turn of the loop as its last predecessor's completion, and a slow node
holds nothing but what depends on it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from iact.core.errors import ModelError
from iact.core.plan.commands import AskModel, PlanNotice, StopAsking, StopFiring
from iact.core.plan.limits import PlanLimits
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import PlanExtension, PlanGraph, PlanVersion
from iact.core.plan.modes.base import Mode
from iact.core.plan.protocol import (
    Firing,
    FunctionCatalogue,
    Outcome,
    PlanQuestion,
    QuestionKind,
    StepFailure,
)
from iact.core.plan.result import PlanResult
from iact.core.plan.state import NodeChange, PlanEvent, PlanState
from iact.core.ports import Clock
from tests.core.plan.alarm import Alarm


class Waiting(Protocol):
    """Tells the engine that a firing waits for a person, so that its time limit stands still."""

    def waits_for_person(self) -> None: ...
    def goes_on(self) -> None: ...


class Runner(Protocol):
    """Fires tool and agent nodes: through the gate, and cancellation reaches the container."""

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        """Run once; `waiting` is told when it waits for a person. An error of the tool is a `StepFailure`; an exception is taken for one (`crashed`).

        It may be cancelled at any time.
        """
        ...


class Asker(Protocol):
    """The one way to a model."""

    def ask(self, question: PlanQuestion) -> AsyncGenerator[str]:
        """Stream the reply's text.

        Raises:
            ModelError: no reply could be had; the engine goes on with the safe default.
        """
        ...


class Observer(Protocol):
    """Takes every event of the plan, in order; the journal's `plan` and `node` records are written from them."""

    def on_change(self, change: NodeChange) -> None: ...
    def on_version(self, version: PlanVersion) -> None: ...
    def on_text(self, question: PlanQuestion, text: str) -> None:
        """A piece of a reply that people may watch; passing, not an event."""
        ...

    def on_notice(self, text: str) -> None:
        """Something for a person: a warning of the validation, a deadlock report."""
        ...


class PlanEngine:
    """One run of one plan. `run` is called once; the other methods control it meanwhile, from the same loop."""

    def __init__(
        self,
        plan: PlanGraph,
        *,
        runner: Runner,
        clock: Clock,
        asker: Asker | None = None,
        catalogue: FunctionCatalogue | None = None,
        observer: Observer | None = None,
        mode: Mode | None = None,
        limits: PlanLimits | None = None,
        growing: bool = False,
        history: Sequence[PlanEvent] = (),
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
        self.machine: Final = PlanMachine(
            plan, mode=mode, limits=limits, catalogue=catalogue, asks=asker is not None, growing=growing,
            history=history, answers=answers, taken_up=taken_up,
        )  # fmt: skip
        self._runner = runner
        self._asker = asker
        self._observer = observer
        self._monotonic = clock.monotonic
        self._alarm = Alarm(clock)
        self._set: float | None = None
        """The time for which the alarm is set."""
        self._firings: dict[str, asyncio.Task[None]] = {}
        self._limits: dict[str, tuple[asyncio.Timeout, float]] = {}
        """The time limits of the tools that run, which a session's modules keep."""
        self._seconds = (limits or PlanLimits()).node_timeout
        self._askings: dict[int, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._doing = False
        self._done = asyncio.Event()
        self._begin = 0.0

    @property
    def state(self) -> PlanState:
        """The plan and its nodes, as they are now."""
        return self.machine.run.state

    @property
    def answer(self) -> str | None:
        """The plan's answer in words, if it has one."""
        return self.machine.run.answer

    async def run(self) -> PlanResult:
        """Run to the end; an outcome always comes back. Cancelling it aborts everything at once."""
        self._begin = self._monotonic() - self.machine.began
        async with asyncio.TaskGroup() as group:
            self._group = group
            alarm = group.create_task(self._alarm.run())
            self.machine.begin(self._now())
            self._do()
            await self._done.wait()
            alarm.cancel()
        return self.machine.result()

    # --- control --------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Start nothing and ask nothing until `resume`; what runs goes on, the plan's own clock stands still."""
        self._tell(self.machine.pause)

    def resume(self) -> None:
        """Go on."""
        self._tell(self.machine.resume)

    def cancel(self, *, abort: bool = False, reason: str = "") -> None:
        """End the plan: what has not started is cancelled; what runs finishes, or is cancelled too (`abort`)."""
        self._tell(lambda at: self.machine.cancel(at, abort=abort, reason=reason))

    def cancel_node(self, node: str, *, reason: str = "") -> None:
        """End one node and leave the rest to the plan."""
        self._tell(lambda at: self.machine.cancel_node(node, at, reason=reason))

    def interject(self, text: str) -> None:
        """A person's message to the running plan: what runs finishes, the rest waits for its reflection."""
        self._tell(lambda at: self.machine.interject(text, at))

    def write(self, piece: str) -> None:
        """The next piece of a plan that is still being written (`growing`); complete steps start at once."""
        self._tell(lambda at: self.machine.write(piece, at))

    def written(self) -> None:
        """The plan is complete."""
        self._tell(self.machine.written)

    # --- between the machine and the world --------------------------------------------------------------

    def _now(self) -> float:
        """Seconds since the plan's start."""
        return self._monotonic() - self._begin

    def _tell(self, happened: Callable[[float], None]) -> None:
        happened(self._now())
        self._do()

    def _do(self) -> None:
        """Carry out what the machine wants."""
        if self._doing:  # an observer has told the machine of something: what follows is done behind this
            return
        self._doing = True
        observer, machine = self._observer, self.machine
        try:
            while commands := machine.take():
                for command in commands:
                    kind = type(command)
                    if kind is NodeChange:
                        if observer is not None:
                            observer.on_change(command)  # type: ignore[arg-type]
                    elif kind is Firing:
                        self._fire(command)  # type: ignore[arg-type]
                    else:
                        self._do_other(command)  # type: ignore[arg-type]
        finally:
            self._doing = False
        if machine.over:
            self._done.set()
        elif machine.due != self._set and machine.due is not None:
            self._set = machine.due
            self._alarm.at(self._begin + machine.due, self._wake, "")

    def _do_other(
        self, command: PlanVersion | PlanExtension | StopFiring | AskModel | StopAsking | PlanNotice
    ) -> None:
        """The commands that are seldom."""
        match command:
            case PlanVersion():
                if self._observer is not None:
                    self._observer.on_version(command)
            case PlanNotice():
                if self._observer is not None:
                    self._observer.on_notice(command.text)
            case StopFiring():
                self._stop(self._firings[command.node])
            case AskModel():
                self._askings[command.thought] = self._group.create_task(self._ask(command))
            case StopAsking():
                task = self._askings.pop(command.thought, None)
                if task is not None:
                    self._stop(task)

    def _fire(self, firing: Firing) -> None:
        self._firings[firing.node.id] = self._group.create_task(self._attempt(firing))

    async def _attempt(self, firing: Firing) -> None:
        """One attempt, from start to its outcome; None if it was stopped before it had one."""
        node = firing.node.id
        task = self._firings[node]
        outcome: Outcome | None = None
        if task not in self._stopping:
            seconds = firing.node.timeout if firing.node.timeout is not None else self._seconds
            scope = asyncio.timeout(seconds if firing.node.kind == "tool" else None)
            if seconds is not None and firing.node.kind == "tool":
                self._limits[node] = scope, seconds
            try:
                async with scope:
                    outcome = await self._runner.run(firing, _Waiting(self, node))
            except TimeoutError:
                said = f"It took longer than {seconds or 0:g} seconds and was stopped."
                outcome = StepFailure("timeout", said)
            except asyncio.CancelledError:
                if task not in self._stopping:
                    raise
            except Exception as error:
                outcome = StepFailure(
                    "crashed", f"The step could not be run ({type(error).__name__}: {error})."
                )
        if self._stopping:
            self._stopping.discard(task)
        self._limits.pop(node, None)
        del self._firings[node]
        self.machine.attempt_ended(node, outcome, self._monotonic() - self._begin)
        self._do()

    async def _ask(self, command: AskModel) -> None:
        """One answer, from the question to its last piece."""
        number = command.thought
        task = self._askings[number]
        text: list[str] = []
        failed: str | None = None
        if task in self._stopping or self._asker is None:
            self._stopping.discard(task)
            return
        try:
            async with aclosing(self._asker.ask(command.question)) as pieces:
                async for piece in pieces:
                    text.append(piece)
                    if self._observer is not None:
                        self._observer.on_text(command.question, piece)
                    if command.pieces:
                        self.machine.piece(number, piece, self._now())
                        self._do()
        except asyncio.CancelledError:
            if task not in self._stopping:
                raise
            return
        except ModelError as error:
            failed = str(error)
        except Exception as error:
            failed = f"({type(error).__name__}: {error})"
        finally:
            self._stopping.discard(task)
            if self._askings.get(number) is task:
                del self._askings[number]
        answer = "".join(text) if failed is None else None
        self.machine.answered(number, answer, failed or "", self._now())
        self._do()

    def _stop(self, task: asyncio.Task[None]) -> None:
        """Stop a task. One that has not begun would never come to its end if it were cancelled: it looks itself."""
        self._stopping.add(task)
        if inspect.getcoroutinestate(task.get_coro()) != inspect.CORO_CREATED:  # type: ignore[arg-type]
            task.cancel()

    def _wake(self, about: str) -> None:
        self._set = None
        self._tell(self.machine.wake)

    def waits_for_person(self, node: str) -> None:
        """The runner says that an attempt waits for a person."""
        if node in self._limits:
            self._limits[node][0].reschedule(None)
        self._tell(lambda at: self.machine.waits_for_person(node, at))

    def goes_on(self, node: str) -> None:
        """The person has decided."""
        if node in self._limits:
            scope, seconds = self._limits[node]
            scope.reschedule(asyncio.get_running_loop().time() + seconds)
        self._tell(lambda at: self.machine.person_decided(node, "approved", at))


class _Waiting:
    """An attempt's way to say that it waits for a person."""

    __slots__ = ("_engine", "_node")

    def __init__(self, engine: PlanEngine, node: str) -> None:
        self._engine = engine
        self._node = node

    def waits_for_person(self) -> None:
        self._engine.waits_for_person(self._node)

    def goes_on(self) -> None:
        self._engine.goes_on(self._node)
