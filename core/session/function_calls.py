"""Calls of module functions: one outcome each.

The order of a function call is law 3: the gate's decision and the intent are in the journal, and are durable if the
call can change anything, before it is dispatched; its outcome follows. A call that a crash left without an outcome is
repeated only if that is harmless.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import (
    JournalUnwritable,
    ModuleFault,
    ModuleWithdrawn,
    SandboxError,
    WorkspaceError,
)
from iact.core.gate.gate import Denial, Ticket
from iact.core.journal.spool import Spool
from iact.core.language.actions import FRONTEND, SKILL, ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import Value
from iact.core.modules.client import Completed, Outcome, Raised, TimedOut
from iact.core.modules.error_text import error_text
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.outcome import StateChange
from iact.core.modules.quota import FolderUse
from iact.core.modules.registry import Start
from iact.core.modules.state_names import step_of
from iact.core.ports import JSON
from iact.core.records.calls import Call, Result, State
from iact.core.records.parts import Artifact, Blob
from iact.core.session.effects import Underway
from iact.core.session.files import SessionFiles
from iact.core.session.forms import Forms
from iact.core.session.front_end import FrontEndTools
from iact.core.session.live import StoredText
from iact.core.session.long_texts import read_values_beside, stored_beside
from iact.core.session.module_loader import ModuleLoader
from iact.core.session.monitor import Monitor
from iact.core.session.person_waits import PersonWaits
from iact.core.session.printed import Printed
from iact.core.session.race_copies import Copies
from iact.core.session.reader_layers import ReaderLayers
from iact.core.session.results import record_result, result_of, settle
from iact.core.session.scheduler import Scheduler
from iact.core.session.skill_offers import SkillOffers
from iact.core.stored.workspace import NO_VERSION, NewVersion
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.apply_shared_state import beside
from iact.core.tree.call_cache import key_of
from iact.core.tree.interpret import digest_of
from iact.core.tree.module_states import module_state
from iact.core.views.events import NoticeEvent, OutputEvent

_PLAIN: Final = "text/plain"
"""The type of an output for which a record names none."""
_LAST_WORDS: Final = 2.0
"""How many seconds are added to a step's own time limit when it is passed to the module."""

_LONGEST_TRACE: Final = 8_000
"""The most characters of a module's trace that are kept with its error, for people."""

NotRun = Literal["cancelled", "incomplete"]
"""Why a call has no outcome of its own."""


@dataclass(slots=True)
class _Traces:
    """What is known of a call beside its outcome."""

    fresh: bool = False
    """Whether it was served by an instance of its module that had just been started."""
    aside: tuple[str, ...] = ()
    """The paths that it changed in its agent's throw-away layer, if it ended there."""

    def note_fresh(self) -> None:
        """Note that the instance was just started."""
        self.fresh = True


class FunctionCalls:
    """The calls of module functions that are under way in one session."""

    def __init__(
        self,
        scheduler: Scheduler,
        modules: Modules,
        monitor: Monitor,
        loader: ModuleLoader,
        files: SessionFiles,
        copies: Copies,
        layers: ReaderLayers,
        forms: Forms,
        waits: PersonWaits,
        offers: SkillOffers,
        front_end: FrontEndTools,
    ) -> None:
        self._live = scheduler.live
        self._scheduler = scheduler
        self._modules = modules
        self._monitor = monitor
        self._loader = loader
        self._files = files
        self._copies = copies
        self._layers = layers
        self._forms = forms
        self._waits = waits
        self._offers = offers
        self._front_end = front_end
        self._unkept: set[str] = set()
        """Reasons why files were not kept that people were already told."""

    async def call(self, agent: Agent, calls: Sequence[Pending]) -> None:
        """Make calls that may overlap. Each outcome is recorded after the outcomes of all earlier calls."""
        if len(calls) == 1:
            await self._call_function(agent, calls[0])
            return

        try:
            async with asyncio.TaskGroup() as group:
                for pending in calls:
                    group.create_task(self._call_function(agent, pending))
        except ExceptionGroup as several:
            stopped = several.subgroup(JournalUnwritable)
            raise stopped.exceptions[0] if stopped else several from None

    async def _in_turn(self, agent: Agent, pending: Pending) -> bool:
        """Wait until every action before this one has its outcome. Returns False if this one was given an outcome in
        the meantime.

        Steps of a plan are ordered by the plan.
        """
        while pending in agent.actions and agent.actions[0] is not pending and agent.plan is None:
            await self._live.moved()
        return pending in agent.actions

    async def _call_function(self, agent: Agent, pending: Pending) -> None:
        """Make one call, from the question whether it may be made to the record of its outcome."""
        live = self._live
        spec = pending.spec
        bound = pending.bound
        assert bound is not None
        self._loader.review(spec.module or "")

        was_dispatched = pending.call > 0  # before a crash
        if was_dispatched and not self._may_be_repeated(spec):
            settle(self._live, agent, pending, "interrupted")
            return

        if not self._is_decided_at_once(agent, pending) and not await self._in_turn(agent, pending):
            return

        decision = await self._monitor.decide(agent, pending)
        if decision is None:
            return
        if isinstance(decision, Denial):
            # A denied call must not be told from an unreachable module, not even by how long it takes.
            await self._monitor.linger(spec.name)
            if await self._in_turn(agent, pending):
                settle(self._live, agent, pending, "incomplete")
            return

        decided = live.clock.monotonic()
        with self._files.effects.underway(works=decision.impact > 0) as underway:
            if not pending.call:
                intent = Call(
                    turn=agent.turn,
                    action=pending.index,
                    function=spec.name,
                    impact=decision.impact,
                    args=digest_of(bound),
                )
                call = live.record(intent, agent.path)
                if decision.impact > 0:
                    await live.durable(call)
            await self._dispatch(agent, pending, bound, decision, decided, underway)

    def _may_be_repeated(self, spec: ActionSpec) -> bool:
        """Whether a call does no harm if it is made a second time: it only reads, or its function may be called twice."""
        return self._live.tree.believed(spec) and (spec.impact == 0 or spec.idempotent)

    def _is_decided_at_once(self, agent: Agent, pending: Pending) -> bool:
        """Whether the gate decides about a call before earlier actions have their outcomes.

        One that would be asked about is not: the question goes to a person with the first action, and the call is made in
        its turn.
        """
        is_first = agent.actions[0] is pending or agent.plan is not None
        if is_first:
            return True

        was_asked_about = pending.ahead is not None
        return not was_asked_about and not self._monitor.would_ask(agent, pending)

    async def _dispatch(
        self,
        agent: Agent,
        pending: Pending,
        bound: Bound,
        ticket: Ticket,
        decided: float,
        underway: Underway,
    ) -> None:
        """Make a call that may be made, and record its outcome. `decided`: when it was decided about."""
        live = self._live
        started = live.clock.monotonic()
        loaded = live.tree.modules.get(pending.spec.module or "")
        writes = ticket.impact > 0 and loaded is not None and loaded.manifest.needs.workspace == "write"
        copy = self._copies.of(agent, pending)
        traces = _Traces()
        call = self._function_call(agent, pending, bound, copy, traces, writes=writes)

        live.printed[pending.call] = Printed()
        with Spool(live.journal.directory) as spool:
            await underway.begin()
            try:
                outcome = await self._invoke(agent, pending, ticket, call, spool, traces)
            finally:
                self._forms.end(pending.call)
            took = round((live.clock.monotonic() - started) * 1000)

            # What it did is looked at before its outcome is recorded, also if it has none.
            kept = NO_VERSION
            unkept = False
            if writes:
                kept, unkept = await self._keep_files(agent, copy)
            unchanged = await underway.end(agent.path)

            if outcome != "cancelled":
                taken = live.clock.monotonic() - decided - self._waits.waited(pending.call)
                self._monitor.took(pending.spec.name, taken, lost=outcome == "incomplete")

            output = await stored_beside(outcome.output) if isinstance(outcome, Completed) else StoredText("")
            await read_values_beside(self._brought(outcome, output, spool))
            if await self._in_turn(agent, pending):
                result = result_of(
                    agent,
                    pending,
                    "ok",
                    ms=took,
                    version=kept.id,
                    unkept=unkept,
                    unchanged=unchanged,
                    beside=beside(live.tree, pending, kept.id),
                    fresh=traces.fresh,
                    aside=traces.aside,
                    changed=kept.changed,
                )
                self._record_outcome(agent, result, outcome, output, spool, call.timeout, key_of(pending))

    def _function_call(
        self,
        agent: Agent,
        pending: Pending,
        bound: Bound,
        copy: Path | None,
        traces: _Traces,
        *,
        writes: bool,
    ) -> FunctionCall:
        """What the module is sent of a call, and what is done meanwhile. `copy`: the copy of the workspace in which it works,
        if it does. `writes`: it can write to the workspace."""
        spec = pending.spec
        loaded = self._live.tree.modules.get(spec.module or "")
        function = loaded.manifest.function(spec.name.split(".", 1)[1]) if loaded else None

        timeout = _timeout(bound, spec.timeout or self._live.tree.bounds.tool)
        told = None
        if pending.limit is not None and pending.limit < timeout:
            # A module that says a last word before its time is over must not begin with it too early.
            timeout = pending.limit
            told = pending.limit + _LAST_WORDS

        return FunctionCall(
            agent.path,
            spec.name,
            pending.call,
            bound.arguments,
            bound.attached,
            timeout,
            loaded.start if loaded is not None else Start(),
            told=told,
            cached=self._cached(pending),
            waited=partial(self._waits.waited, pending.call),
            on_ask=partial(self._forms.ask, agent, pending),
            on_fresh=traces.note_fresh,
            fills=self._room(copy) if writes else None,
            exclusive=function is not None and function.exclusive,
            states=tuple(state.name for state in loaded.manifest.states) if loaded else (),
            # Changes of state that a call leaves in a module that works in a copy disappear with the copy.
            on_state=partial(self._on_state, agent, spec, pending.step) if copy is None else None,
            step=pending.step,
            copy=copy,
        )

    def _brought(self, outcome: Outcome | NotRun, output: StoredText, spool: Spool) -> list[Value]:
        """The value that an agent reads of the outcome of a call, if it is stored as a blob."""
        if not isinstance(outcome, Completed):
            return []

        media = outcome.media or _PLAIN
        if output.blob is not None:
            digest = output.blob.sha256
            return [Value(digest, output.blob.size, media, partial(output.blobs.__getitem__, digest))]

        sent = next((artifact for artifact in outcome.artifacts if artifact.id == outcome.artifact), None)
        if sent is None:
            return []
        kept = spool.kept[sent.id]
        return [Value(kept.sha256, kept.size, sent.media, partial(self._live.journal.blob, kept.sha256))]

    def _cached(self, pending: Pending) -> Value | None:
        """What a call of the module with the same key returned, from the session's blobs."""
        cached = self._live.tree.cached.get((pending.spec.module or "", key_of(pending)))
        if cached is None:
            return None
        return Value(
            cached.sha256, cached.size, cached.media, partial(self._live.journal.blob, cached.sha256)
        )

    def _printed(self, agent: Agent, call: int, text: str) -> None:
        """Show what a running tool prints; if the call does not finish, its agent sees it as well."""
        printed = self._live.printed.get(call)
        if printed is not None:
            printed.feed(text)
        self._live.publish(OutputEvent(agent.path, call, text))

    def _room(self, copy: Path | None) -> FolderUse | None:
        """The folder whose size limits calls that write; None for the user's own disk, which is not limited."""
        if copy is not None:
            return FolderUse(copy)
        if self._live.tree.workspace == "scratch":
            return FolderUse(self._files.workspace.folder)
        return self._files.effects.room

    async def _on_state(self, agent: Agent, spec: ActionSpec, step: str, change: StateChange) -> None:
        """Handle a change of state; called from the task that listens to the module."""
        await self._scheduler.supervise(
            f"state of {spec.module}", partial(self._moved_by_itself, agent, spec, step, change)
        )

    async def _moved_by_itself(self, agent: Agent, spec: ActionSpec, step: str, change: StateChange) -> None:
        """Record that a module changed its state outside of a call, after the outcomes of calls that ended before.

        `spec`: the function through which its agent uses the module; `step`: the step of a plan, if any.
        """
        while any(
            action.call and action.spec.module == spec.module and action.step == step
            for action in agent.actions
        ):
            await self._live.moved()

        with contextlib.suppress(JournalUnwritable):
            state = State(function=spec.name, state=module_state(change), node=step_of(step))
            self._live.record(state, agent.path)

    async def _keep_files(self, agent: Agent, copy: Path | None) -> tuple[NewVersion, bool]:
        """Keep a version of the workspace, or of a copy, after a call that may have written. Returns it, and whether
        keeping failed."""
        workspace = self._files.workspace
        tree = self._live.tree
        # What changed is of interest where it can be another agent's.
        since = tree.shared.version if len(tree.agents) > 1 else None

        try:
            if copy is None:
                version = await workspace.keep(since=since)
            else:
                version = NewVersion(await workspace.keep_copy(copy))
        except WorkspaceError as error:
            if str(error) not in self._unkept:  # once, although each call that writes fails the same way
                self._unkept.add(str(error))
                self._live.notice(agent.path, "workspace", str(error))
            return NO_VERSION, True
        return version, False

    async def _invoke(
        self,
        agent: Agent,
        pending: Pending,
        ticket: Ticket,
        call: FunctionCall,
        spool: Spool,
        traces: _Traces,
    ) -> Outcome | NotRun:
        """Invoke the call. Faults that keep it from ending are reported to people only."""
        live = self._live
        try:
            async with self._scheduler.cancellable(agent):
                if pending.spec.name == SKILL.name:
                    copy = self._copies.of(agent, pending)
                    return await self._offers.carry_out(ticket, call, agent, pending, copy)
                if pending.spec.name == FRONTEND.name:
                    return await self._front_end.carry_out(ticket, call, agent, pending)
                if pending.spec.core:
                    return await self._loader.carry_out(ticket, call)

                invoke = partial(
                    self._modules.call,
                    ticket,
                    on_output=partial(self._printed, agent, pending.call),
                    on_artifact=lambda chunk: spool.take(chunk.id, chunk.data, last=chunk.last),
                    report=lambda line: live.publish(NoticeEvent(line)),
                )
                if not self._layers.works_in_one(agent, ticket, call.start):
                    return await invoke(call)

                async with self._layers.of(agent) as visit:
                    outcome = await invoke(replace(call, layer=visit.folder))
                traces.aside = visit.changed
                return outcome
        except TimeoutError:
            return "cancelled"
        except (SandboxError, ModuleFault) as error:
            if pending in agent.actions:
                live.notice(agent.path, "module", str(error))
            if isinstance(error, ModuleWithdrawn) and pending.spec.module is not None:
                await self._loader.forget(pending.spec.module, "withdrawn", str(error))
            return "incomplete"

    def _record_outcome(
        self,
        agent: Agent,
        result: Result,
        outcome: Outcome | NotRun,
        output: StoredText,
        spool: Spool,
        limit: float,
        key: str,
    ) -> None:
        """Record the outcome of a call.

        `result`: what the call left in the files, and how long it took with all waits; `output`: the text of a completed
        call; `limit`: seconds that its module had; `key`: identifies the result if it is cached.
        """
        match outcome:
            case Completed():
                media = None if outcome.media == _PLAIN else outcome.media or None
                if media is not None or outcome.data:
                    result = replace(result, media=media, data=dict(outcome.data) or None)
                self._record_completed(agent, result, outcome, output, spool, key)
            case Raised():
                facts: dict[str, JSON] = {"type": outcome.type}
                if outcome.trace:
                    facts["trace"] = outcome.trace[-_LONGEST_TRACE:]
                raised = replace(result, status="error", data=facts)
                text = error_text(outcome, shipped=self._is_shipped(result))
                record_result(self._live, agent, raised, text)
            case TimedOut():
                late = replace(result, status="error", data={"type": "TimeoutError"})
                text = f"{outcome.output}\nIt was stopped after {limit:g} s, its time limit."
                record_result(self._live, agent, late, text.lstrip("\n"))
            case status:  # it may have printed something before that
                printed = self._live.printed.get(result.call)
                text = printed.text() if printed is not None else ""
                record_result(self._live, agent, replace(result, status=status), text)

    def _is_shipped(self, result: Result) -> bool:
        """Whether a call was of a module that comes with the product. An action of the core is of no module."""
        loaded = self._live.tree.modules.get(result.function.partition(".")[0])
        return loaded is not None and loaded.origin == "shipped"

    def _record_completed(
        self, agent: Agent, result: Result, outcome: Completed, output: StoredText, spool: Spool, key: str
    ) -> None:
        """Record what a call returned. Of the files that it sent, one may be its value, and one is for the cache."""
        artifacts: list[Artifact] = []
        for artifact in outcome.artifacts:
            kept = spool.kept[artifact.id]
            if artifact.id == outcome.artifact:
                blob = Blob(sha256=kept.sha256, size=kept.size)
                result = replace(result, media=artifact.media, blob=blob)
            elif artifact.id == outcome.cached:
                cached = Artifact(name=key, media=artifact.media, sha256=kept.sha256, size=kept.size)
                result = replace(result, cached=cached if key else None)
            else:
                artifacts.append(
                    Artifact(name=artifact.name, media=artifact.media, sha256=kept.sha256, size=kept.size)
                )

        if artifacts:
            result = replace(result, artifacts=tuple(artifacts))
        if outcome.state is not None:
            result = replace(result, state=module_state(outcome.state))
        record_result(self._live, agent, result, output)


def _timeout(bound: Bound, default: float) -> float:
    """When to give up a call: a little later than the function's own `timeout` argument says, if it has one."""
    own = bound.arguments.get("timeout")
    if isinstance(own, (int, float)) and not isinstance(own, bool) and own > 0:
        return min(float(own), 86_400.0) + 5.0
    return default + 5.0
