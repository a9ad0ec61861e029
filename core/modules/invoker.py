"""The only way to a module: every call of every function in the product goes through `Invoker.call`.

It takes a ticket, which only the gate issues, and redeems it for exactly this call. The ticket says whether the call
may write, and thereby which instance of the module serves it. Instances are started on first use, and dropped when they
are lost or have not been called for a while; the next call starts a new one. What a module wants to keep is carried
from call to call here, as opaque bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from iact.core.errors import JournalError, ModuleFault, ModuleLost
from iact.core.gate.gate import CallRequest, Ticket, TicketError, arguments_digest
from iact.core.language.variables import Value
from iact.core.modules.background import Supervisor
from iact.core.modules.client import (
    ArtifactChunk,
    Attached,
    Completed,
    Invocation,
    OnArtifact,
    Outcome,
)
from iact.core.modules.health_monitor import HealthMonitor
from iact.core.modules.idle_timer import IdleTimer
from iact.core.modules.instance_endings import CallUnderway, InstanceEndings
from iact.core.modules.instance_limit import InstanceLimit
from iact.core.modules.instances import InstanceKey, Instances, Running, key_of
from iact.core.modules.manifest import Manifest
from iact.core.modules.observer import Observer, OnState
from iact.core.modules.outcome import ModuleAsk, ModuleReply, OnAsk, SendReply, StateChange
from iact.core.modules.quota import FolderUse, Quota
from iact.core.modules.registry import Start
from iact.core.modules.scrub import Scrub, ScrubBytes
from iact.core.modules.stateful import StatefulInstances
from iact.core.ports import JSON, Clock, ModuleHost, Permit, Report, Right


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call, ready to be made."""

    # What is called.
    agent: str
    """Whose authority it has."""
    function: str
    """Its name, with the module's."""
    call: int
    """The number of its journal record."""
    arguments: Mapping[str, JSON]
    attached: Mapping[str, Value]
    """Arguments passed as content, by parameter."""
    timeout: float
    """In seconds."""

    # How the module runs.
    start: Start = field(default_factory=Start)
    fills: FolderUse | None = None
    """The folder that it may write to, if its size is limited."""
    exclusive: bool = False
    """Such calls of the module under one name run one after the other, in any instance."""
    states: Sequence[str] = ()
    """The states that the module's manifest names, first the one in which it holds nothing."""
    on_state: OnState | None = None
    """Called with later changes of the module's state outside of calls, once a call under this name has reported a
    state."""
    told: float | None = None
    """The time limit passed to the module, in seconds; None: `timeout`."""
    cached: Value | None = None
    """What an earlier call of the module with the same key returned in this session."""
    waited: Callable[[], float] = lambda: 0.0
    """For how many seconds the call has waited for a person so far."""
    on_ask: OnAsk | None = None
    """Called with questions of the module to a person; None: no person can be asked."""
    on_fresh: Callable[[], None] = lambda: None
    """Called if the instance that serves the call was started after another one had served the same name."""
    step: str = ""
    """The name of the plan step whose state in the module is used (`core.modules.state_names`); empty: the agent's."""
    copy: Path | None = None
    """The copy of the workspace in which the call is made; None: the workspace itself."""
    layer: Path | None = None
    """The layer over the workspace in which the call is made; everything in it is thrown away. None: there is none."""

    @property
    def module(self) -> str:
        """The module that serves the function."""
        return self.function.split(".", 1)[0]

    @property
    def whose(self) -> str:
        """The name under which the module keeps its state from this call to the next."""
        return self.step or self.agent

    @property
    def request(self) -> CallRequest:
        """What is really called, with what is really sent: the ticket must be for exactly this."""
        values = {name: value.sha256 for name, value in self.attached.items()}
        return CallRequest(self.agent, self.function, arguments_digest(self.arguments, values))


class Modules(Protocol):
    """The modules of one session, as the tree uses them. `Invoker` is the real implementation."""

    @property
    def running(self) -> int:
        """How many instances are running."""
        ...

    def supervise(self, group: asyncio.TaskGroup) -> None:
        """Run tasks that begin from now on in this group, which lasts as long as the session."""
        ...

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` on the event loop whenever the number of running instances changes."""
        ...

    def permit_by(self, permit: Callable[[str, str], Permit]) -> None:
        """Use `permit` to decide, by module and the agent that its instance serves alone (or ""), which hosts may be reached."""
        ...

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome: ...

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest: ...

    async def warm(
        self, module: str, report: Report, start: Start, *, right: Right = "work", agent: str = ""
    ) -> None: ...

    async def halt(self, agents: Callable[[str], bool], *, most: float, idle: bool) -> None: ...

    async def end_background(self, agents: Callable[[str], bool]) -> None: ...

    async def drop(self, module: str) -> None: ...

    async def leave(self, copy: Path) -> None: ...

    async def close(self) -> None: ...


HELD: Final = 16
"""How many times longer an instance that is in use may be idle before it is stopped."""
_CONNECTING: Final = 10.0
"""How many seconds a module that was just started has to accept our connection."""

OpenModules = Callable[[ModuleHost, str, Path], Modules]
"""Makes the modules of one session: host, session id, workspace."""


@dataclass(slots=True, eq=False)
class _Turn:
    """The queue of exclusive calls under one name."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    """How many there are, including the running one."""


class Invoker:
    """The modules of one session. `workspace`: the folder that they share.

    `workspace_bytes`: how much disk space calls may fill; 0 for no limit. `idle`: seconds without a call, by `clock`,
    after which an instance is stopped; 0 for never. An instance outside its initial state stays `HELD` times as long,
    because its work (such as serving an app) may be in use. With a clock, idle instances are regularly asked whether
    they are well. `limit`: shared by all sessions.
    """

    def __init__(
        self,
        host: ModuleHost,
        session: str,
        workspace: Path,
        *,
        workspace_bytes: int = 0,
        clock: Clock | None = None,
        idle: float = 0,
        limit: InstanceLimit | None = None,
    ) -> None:
        self._host = host
        self._session = session
        self._workspace_bytes = workspace_bytes
        self._quotas: dict[FolderUse, Quota] = {}

        # What runs.
        self._supervisor = Supervisor()
        self._stateful = StatefulInstances()
        self._observer = Observer(self._supervisor)
        self._instances = Instances(
            host,
            session,
            workspace,
            self._stateful.holds,
            self._forget,
            held_once=self._stateful.held_once,
        )
        if limit is not None:
            limit.hold(self._instances)
        self._underway: set[CallUnderway] = set()
        self._endings = InstanceEndings(
            session, self._underway, self._instances, self._stateful, self._observer, self._supervisor
        )

        # What is done regularly.
        self._idle = idle
        self._idle_timer: IdleTimer[InstanceKey] = IdleTimer(
            self._supervisor, clock, idle, self._idle_times, self._stop_idle
        )
        self._health: HealthMonitor[InstanceKey] = HealthMonitor(
            self._supervisor, clock, self._instances.running.keys, self._instances.look_after
        )

        # What is kept from call to call, for each module or instance, and each name.
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._carried: dict[tuple[str, str], bytes] = {}
        """What each module wants to keep."""
        self._served: set[tuple[InstanceKey, str]] = set()
        """Which instances have served which names, whether or not they are still running."""

    @property
    def running(self) -> int:
        """How many instances are running."""
        return len(self._instances.running)

    def supervise(self, group: asyncio.TaskGroup) -> None:
        """Run tasks that begin from now on in this group, which lasts as long as the session."""
        self._supervisor.group = group

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` on the event loop whenever the number of running instances changes."""
        self._instances.tell = tell

    def permit_by(self, permit: Callable[[str, str], Permit]) -> None:
        """Use `permit` to decide, by module and the agent that its instance serves alone (or ""), which hosts may be reached by instances started from now on."""
        self._instances.permit = permit

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        """Make one call.

        Raises:
            TicketError: the ticket is not for this call; nothing was sent.
            SandboxError: the module can't be reached, or was lost during the call.
            ModuleFault: the module broke the protocol.
        """
        ticket.redeem(call.request)
        call, key = _placed(call, ticket)

        async def run() -> Outcome:
            async with self._turn(call):
                return await self._run(key, call, on_output=on_output, on_artifact=on_artifact, report=report)

        underway = CallUnderway(key, call.agent, ticket.impact)
        self._underway.add(underway)
        try:
            async with underway.scope:
                if call.fills is None:
                    return await run()
                return await self._quota(call.fills).hold(run)
        except TimeoutError:
            if not underway.scope.expired():
                raise
            raise ModuleLost("It was stopped, because the permissions of its agent were changed.") from None
        finally:
            self._underway.discard(underway)

    def _quota(self, room: FolderUse) -> Quota:
        return self._quotas.setdefault(room, Quota(room, self._workspace_bytes))

    @asynccontextmanager
    async def _turn(self, call: FunctionCall) -> AsyncIterator[None]:
        """Run exclusive calls under one name one after the other. This is done here because several instances may serve
        them, and because a call's time limit begins when its module has received it."""
        if not call.exclusive:
            yield
            return

        name = call.module, call.whose
        turn = self._turns.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[name]

    async def _run(
        self,
        key: InstanceKey,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        with self._idle_timer.awake(key), self._observer.calling(key, call.whose):
            running = await self._reach(key, report, call.start)
            self._instances.began(running)
            self._note_served(key, running, call)
            try:
                outcome = await self._invoke(key, running, call, on_output, on_artifact)
                if isinstance(outcome, Completed):
                    self._take(key, running, call, outcome)
            finally:
                await self._instances.ended(key, running)
        return outcome

    def _note_served(self, key: InstanceKey, running: Running, call: FunctionCall) -> None:
        """Note whom an instance serves, and tell the caller if what an earlier one held for it is gone."""
        was_served = (key, call.whose) in self._served
        if was_served and call.whose not in running.served:
            call.on_fresh()
        self._served.add((key, call.whose))
        running.served.add(call.whose)

    def _take(self, key: InstanceKey, running: Running, call: FunctionCall, outcome: Completed) -> None:
        """Take note of what a call left behind."""
        if outcome.carried is not None:
            self._carried[call.module, call.whose] = outcome.carried
        if outcome.state is None:
            return

        initial = _checked(outcome.state, call.states)
        self._stateful.told(key, call.whose, outcome.state.state, initial)
        self._observer.told(key, call.whose, outcome.state)
        if call.on_state is not None:
            changes = self._watch(key, running, call.whose, call.states)
            self._observer.listen(key, call.whose, changes, call.on_state)

    async def _watch(
        self, key: InstanceKey, running: Running, whose: str, known: Sequence[str]
    ) -> AsyncIterator[StateChange]:
        """The changes of an instance's state under one name, outside of calls. `known`: the states of its manifest."""
        async for change in running.client.watch(self._session, whose):
            self._stateful.told(key, whose, change.state, _checked(change, known))
            yield Scrub(running.instance.secrets).state(change)

    async def _invoke(
        self,
        key: InstanceKey,
        running: Running,
        call: FunctionCall,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
    ) -> Outcome:
        """Have an instance run a function. One that is lost is dropped, so that the next call starts another."""
        invocation = self._invocation(call)
        try:
            if running.instance.secrets:
                return await self._invoke_scrubbed(running, invocation, call, on_output, on_artifact)
            return await running.client.invoke(
                invocation,
                on_output=on_output,
                on_artifact=on_artifact,
                timeout=call.timeout,
                told=call.told,
                waited=call.waited,
                on_ask=call.on_ask,
            )
        except ModuleLost as error:
            reason = await running.instance.why_lost()
            if self._instances.running.get(key) is running:
                await self._instances.drop(key)

            again = "It is started again at the next call."
            message = f"{reason} {again}" if reason else str(error)
            raise ModuleLost(Scrub(running.instance.secrets).text(message)) from error

    def _invocation(self, call: FunctionCall) -> Invocation:
        """A call, as its module is told."""
        return Invocation(
            call_id=f"{self._session}/{call.call}",
            session=self._session,
            agent=call.whose,
            function=call.function.split(".", 1)[1],
            arguments=dict(call.arguments),
            values=tuple(Attached(name, value.media, value.load()) for name, value in call.attached.items()),
            carried=self._carried.get((call.module, call.whose), b""),
            cached=_attached(call.cached),
        )

    async def _invoke_scrubbed(
        self,
        running: Running,
        invocation: Invocation,
        call: FunctionCall,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
    ) -> Outcome:
        """Make one call of a module that knows secrets: its output is searched for them on the way out."""
        secrets = running.instance.secrets
        scrub = Scrub(secrets)
        artifacts: dict[str, ScrubBytes] = {}

        async def artifact(chunk: ArtifactChunk) -> None:
            blank = artifacts.setdefault(chunk.id, ScrubBytes(secrets))
            data = blank.feed(chunk.data, last=chunk.last)
            await on_artifact(replace(chunk, name=scrub.text(chunk.name), data=data))

        async def ask(question: ModuleAsk, reply: SendReply) -> None:
            if call.on_ask is None:
                await reply(ModuleReply("cancel", reason="There is nobody to ask."))
                return
            scrubbed = ModuleAsk(
                id=question.id,
                message=scrub.text(question.message),
                schema=scrub.text(question.schema),
                url=scrub.text(question.url),
            )
            await call.on_ask(scrubbed, reply)

        try:
            outcome = await running.client.invoke(
                invocation,
                on_output=lambda text: on_output(scrub.feed(text)),
                on_artifact=artifact,
                timeout=call.timeout,
                told=call.told,
                waited=call.waited,
                on_ask=ask,
            )
        except ModuleFault as error:
            raise ModuleFault(scrub.text(str(error))) from error

        on_output(scrub.flush())
        return scrub.outcome(outcome)

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        """Ask a module (its version `digest`) for its manifest, and start it if necessary; the host keeps the answer.

        Until its needs are known, it has read-only access.

        Raises:
            SandboxError: the module can't be reached.
            ModuleFault: its manifest breaks the rules.
        """
        first = Start(digest, views=True)
        key = key_of(module, first, "look", "")
        with self._idle_timer.awake(key):
            running = await self._reach(key, report, first)
            manifest = await running.client.describe()

            # What was started can serve calls, unless each agent has its own.
            needs = manifest.needs
            start = replace(first, views=needs.workspace == "write", own=needs.own_instances)
            if start.own:
                await self._instances.drop(key)
            else:
                self._instances.move(key, key_of(module, start, "look", ""), start)

        if digest is not None:
            await self._host.remember_manifest(digest, manifest.to_proto())
        return manifest

    async def warm(
        self, module: str, report: Report, start: Start, *, right: Right = "work", agent: str = ""
    ) -> None:
        """Start the instance for an agent's call with this right, so that the first call need not wait for it.

        Raises:
            SandboxError: the module can't be reached.
        """
        key = key_of(module, start, right, agent)
        with self._idle_timer.awake(key):
            running = await self._reach(key, report, start)
            await running.client.wait_serving(_CONNECTING)

    async def _reach(self, key: InstanceKey, report: Report, start: Start) -> Running:
        running = await self._instances.reach(key, report, start)
        self._health.begin()
        return running

    # --- ending -----------------------------------------------------------------------------------

    async def halt(self, agents: Callable[[str], bool], *, most: float, idle: bool) -> None:
        """End whatever some agents may no longer run; see `InstanceEndings.halt`."""
        await self._endings.halt(agents, most=most, idle=idle)

    async def end_background(self, agents: Callable[[str], bool]) -> None:
        """End what calls of these agents have left running; see `InstanceEndings.end_background`."""
        await self._endings.end_background(agents)

    async def drop(self, module: str) -> None:
        """Stop all instances of a module, and discard what it carries; the next call starts it again."""
        for key in list(self._instances.of(module)):
            await self._instances.drop(key)

        self._carried = {name: carried for name, carried in self._carried.items() if name[0] != module}
        self._served = {(key, whose) for key, whose in self._served if key.module != module}

    async def leave(self, copy: Path) -> None:
        """Stop everything that works in a copy of the workspace that will be removed."""
        async with asyncio.TaskGroup() as group:
            for key in list(self._instances.running):
                if key.copy == copy:
                    group.create_task(self._instances.give_up(key))

        self._served = {(key, whose) for key, whose in self._served if key.copy != copy}
        self._quotas = {room: quota for room, quota in self._quotas.items() if room.folder != copy}

    async def _forget(self, key: InstanceKey) -> None:
        """Forget the state of an instance that is gone."""
        await self._observer.forget(key)
        self._stateful.forget(key)

    def _idle_times(self) -> dict[InstanceKey, float]:
        """The running instances, and after how many seconds without a call each may be stopped."""
        return {key: self._idle_time(key) for key in self._instances.running}

    def _idle_time(self, key: InstanceKey) -> float:
        return self._idle * HELD if self._stateful.holds(key) else self._idle

    async def _stop_idle(self, key: InstanceKey) -> None:
        """Stop an idle instance unless it is called meanwhile; a later call waits, and starts it again."""
        async with self._instances.lock(key):
            if key in self._instances.running and self._idle_timer.due(key):
                await self._instances.give_up(key)

    async def close(self) -> None:
        """Stop every instance of the session."""
        await self._idle_timer.close()
        await self._health.close()
        await self._observer.close()

        for key in list(self._instances.running):
            await self._instances.give_up(key)
        await self._endings.finish()
        await self._host.end_session(self._session)


def _placed(call: FunctionCall, ticket: Ticket) -> tuple[FunctionCall, InstanceKey]:
    """The call as it is made, and the instance that serves it. In a layer, nothing can be reached, and no secret is
    known.

    Raises:
        TicketError: it may be made only in a layer, and has none; or it may do more than look, and has one.
    """
    if call.layer is None:
        if ticket.layer:
            raise TicketError(f"The ticket for {call.function} is for a layer that is thrown away.")
        return call, key_of(call.module, call.start, ticket.right, call.agent, call.copy)

    if ticket.right != "look":
        raise TicketError(f"The ticket for {call.function} is not for a layer that is thrown away.")
    closed = replace(call, start=replace(call.start, egress=(), secrets=()))
    return closed, key_of(call.module, closed.start, "try", call.agent, call.layer)


def _attached(cached: Value | None) -> Attached | None:
    """The cached value; None if it was lost, so that the module computes it again."""
    if cached is None:
        return None
    try:
        return Attached("", cached.media, cached.load())
    except JournalError:
        return None


def _checked(change: StateChange, known: Sequence[str]) -> str:
    """The initial state, if the manifest names the state of `change`.

    Raises:
        ModuleFault: it does not.
    """
    if change.state in known:
        return known[0]

    names = f"it names {', '.join(known)}" if known else "it names none"
    raise ModuleFault(
        f"The module reported the state {change.state!r}, which is not in its manifest; {names}."
    )
