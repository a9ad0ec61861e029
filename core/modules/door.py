"""The one way to a module: every call of every function in the product comes through `Door.call`.

It takes a ticket, which only the gate makes, and redeems it for exactly this call. Modules are
started on first use, one instance per session, and dropped when they are lost or the session rests,
so that the next call starts afresh, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from core.errors import ModuleFault, ModuleLost, SandboxError
from core.gate.gate import CallRequest, Ticket, arguments_digest
from core.language.variables import Value
from core.modules.client import (
    ArtifactChunk,
    Attached,
    Completed,
    Invocation,
    ModuleClient,
    OnArtifact,
    Outcome,
)
from core.modules.holding import Holding
from core.modules.manifest import Manifest
from core.modules.observer import Observer, OnState
from core.modules.outcome import StateChange
from core.modules.pulse import Pulse
from core.modules.quota import Quota
from core.modules.registry import Start
from core.modules.rest import Rest
from core.modules.scrub import Scrub, ScrubBytes
from core.ports import JSON, Clock, ModuleHost, ModuleInstance, Report


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call, ready to be made. `call`: number of its journal record; `timeout` in seconds.

    `start`: how the module is to run. `fills`: it may write in a workspace of the session's own, which is bounded.
    """

    agent: str
    function: str
    call: int
    arguments: Mapping[str, JSON]
    attached: Mapping[str, Value]
    timeout: float
    start: Start = field(default_factory=Start)
    fills: bool = False
    initial: str = ""
    """The state in which the module holds nothing, if it has states."""
    on_state: OnState | None = None
    """Told of the states that the module comes to by itself later, once a call of this agent told of one."""

    @property
    def request(self) -> CallRequest:
        """What is really to be called, with what is really to be sent: a ticket must be for this."""
        values = {name: value.sha256 for name, value in self.attached.items()}
        return CallRequest(self.agent, self.function, arguments_digest(self.arguments, values))


class Modules(Protocol):
    """The modules of one session, as the tree uses them. `Door` is the real thing."""

    @property
    def running(self) -> int:
        """How many run now."""
        ...

    def on_change(self, tell: Callable[[], None]) -> None:
        """Have `tell` called, on the loop, whenever another number of them runs."""
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

    async def warm(self, module: str, report: Report, start: Start) -> None: ...

    async def drop(self, module: str) -> None: ...

    async def close(self) -> None: ...


HELD: Final = 16
"""How many times longer a module rests before it is stopped, while it is in use."""
_CONNECTING: Final = 10.0
"""Seconds that a module which was just started has to take our connection."""

OpenModules = Callable[[ModuleHost, str, Path], Modules]
"""Makes the modules of one session: host, session id, workspace."""


@dataclass(slots=True)
class _Running:
    instance: ModuleInstance
    client: ModuleClient
    start: Start
    calls: int = 0
    """How many are under way."""


class Door:
    """The modules of one session. `workspace`: the folder that they share.

    `workspace_bytes`: what that may take on disk if it is the session's own; 0: it has no bound. `idle`: seconds
    without a call, on `clock`, after which the modules are stopped; 0: never. One that is not in its initial state
    stays `HELD` times as long, since what it is doing (an app that is served) may be in use. With a clock, modules
    that are not called are asked now and then whether they are well.
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
    ) -> None:
        self._host = host
        self._session = session
        self._workspace = workspace
        self._quota = Quota(workspace, workspace_bytes)
        self._running: dict[str, _Running] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._idle = idle
        self._rest = Rest(clock, idle, self._restable, self._stop_resting)
        self._pulse = Pulse(clock, self._running.keys, self._look_after)
        self._gone: set[str] = set()
        """Modules that were lost or stopped since their last call."""
        self._observer = Observer()
        self._holding = Holding()
        self._tell: Callable[[], None] = lambda: None

    @property
    def running(self) -> int:
        """How many modules run now."""
        return len(self._running)

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell`, on the loop, whenever another number of them runs."""
        self._tell = tell

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

        async def run() -> Outcome:
            return await self._run(call, on_output=on_output, on_artifact=on_artifact, report=report)

        return await (self._quota.hold(run) if call.fills else run())

    async def _run(
        self,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        module, agent = call.function.split(".", 1)[0], call.agent
        with self._rest.awake(), self._observer.calling(module, agent):
            running = await self._reach(module, report, call.start)
            anew = module in self._gone
            self._gone.discard(module)
            running.calls += 1
            try:
                outcome = await self._invoke(running, call, on_output, on_artifact)
            finally:
                running.calls -= 1
            if isinstance(outcome, Completed) and outcome.state is not None:
                self._holding.told(module, agent, outcome.state.state, call.initial)
                self._observer.told(module, agent, outcome.state)
                if call.on_state is not None:
                    states = self._watch(module, running, agent, call.initial)
                    self._observer.listen(module, agent, states, call.on_state)
        return replace(outcome, anew=True) if anew else outcome

    async def _watch(
        self, module: str, running: _Running, agent: str, initial: str
    ) -> AsyncIterator[StateChange]:
        async for change in running.client.watch(self._session, agent):
            self._holding.told(module, agent, change.state, initial)
            yield Scrub(running.instance.secrets).state(change)

    async def _invoke(
        self,
        running: _Running,
        call: FunctionCall,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
    ) -> Outcome:
        module, function = call.function.split(".", 1)
        secrets = running.instance.secrets
        scrub = Scrub(secrets)
        invocation = Invocation(
            call_id=f"{self._session}/{call.call}",
            session=self._session,
            agent=call.agent,
            function=function,
            arguments=dict(call.arguments),
            values=tuple(Attached(name, value.media, value.load()) for name, value in call.attached.items()),
        )
        try:
            if not secrets:
                return await running.client.invoke(
                    invocation, on_output=on_output, on_artifact=on_artifact, timeout=call.timeout
                )
            return await self._invoke_scrubbed(
                running, invocation, scrub, call.timeout, on_output, on_artifact
            )
        except ModuleLost as error:
            why = await running.instance.why_lost()
            self._gone.add(module)
            await self.drop(module)
            raise ModuleLost(scrub.text(f"{error} {why}" if why else str(error))) from error

    async def _invoke_scrubbed(
        self,
        running: _Running,
        invocation: Invocation,
        scrub: Scrub,
        timeout: float,  # noqa: ASYNC109
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
    ) -> Outcome:
        """Make one call of a module that knows secrets: what it says is searched for them on its way out."""
        artifacts: dict[str, ScrubBytes] = {}

        async def artifact(chunk: ArtifactChunk) -> None:
            blank = artifacts.setdefault(chunk.id, ScrubBytes(running.instance.secrets))
            data = blank.feed(chunk.data, last=chunk.last)
            await on_artifact(replace(chunk, name=scrub.text(chunk.name), data=data))

        try:
            outcome = await running.client.invoke(
                invocation,
                on_output=lambda text: on_output(scrub.feed(text)),
                on_artifact=artifact,
                timeout=timeout,
            )
        except ModuleFault as error:
            raise ModuleFault(scrub.text(str(error))) from error
        on_output(scrub.flush())
        return scrub.outcome(outcome)

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        """Start a module (its version `digest`) if need be, and ask what it offers; the host keeps the answer.

        Raises:
            SandboxError: it can't be reached.
            ModuleFault: what it says of itself breaks the rules.
        """
        with self._rest.awake():
            running = await self._reach(module, report, Start(digest))
            manifest = await running.client.describe()
        if digest is not None:
            await self._host.remember_manifest(digest, manifest.to_proto())
        return manifest

    async def warm(self, module: str, report: Report, start: Start) -> None:
        """Start a module, so that its first call need not wait for that.

        Raises:
            SandboxError: it can't be reached.
        """
        with self._rest.awake():
            running = await self._reach(module, report, start)
            await running.client.wait_serving(_CONNECTING)

    async def _reach(self, module: str, report: Report, start: Start) -> _Running:
        async with self._starting.setdefault(module, asyncio.Lock()):
            running = self._running.get(module)
            if running is not None and running.start == start:
                if await _well(running):
                    return running
                self._gone.add(module)
            if running is not None:
                await self.drop(module)
            instance = await self._host.start(
                module,
                session=self._session,
                workspace=self._workspace,
                report=report,
                digest=start.digest,
                egress=start.egress,
                secrets=start.secrets,
            )
            running = self._running[module] = _Running(instance, ModuleClient(instance.target), start)
            self._tell()
            self._pulse.begin()
            return running

    async def drop(self, module: str) -> None:
        """Stop a module of the session, if it runs; its next call starts it again."""
        running = self._running.pop(module, None)
        await self._observer.forget(module)
        self._holding.forget(module)
        if running is not None:
            self._tell()
            await running.client.close()
            await running.instance.stop()

    def _restable(self) -> dict[str, float]:
        """What runs, and after how many seconds without a call it may be stopped."""
        return {module: self._idle * (HELD if self._holding.holds(module) else 1) for module in self._running}

    async def _stop_resting(self, module: str) -> None:
        """Stop a module unless it is called meanwhile; a call that comes later waits, and starts it anew."""
        async with self._starting[module]:
            if module in self._running and self._rest.due(module):
                await self._give_up(module)

    async def _look_after(self, module: str) -> None:
        """Let go of a module that serves no longer. While one is called, that call's time limit is what counts:
        a function may keep its module from answering anything else.
        """
        async with self._starting[module]:
            running = self._running.get(module)
            if running is not None and not running.calls and not await _well(running):
                await self._give_up(module)

    async def _give_up(self, module: str) -> None:
        """Stop a module whose next call is to know that."""
        self._gone.add(module)
        with suppress(SandboxError):  # the host removes what is left at the end of the session
            await self.drop(module)

    async def close(self) -> None:
        """Stop every module of the session."""
        await self._rest.close()
        await self._pulse.close()
        await self._observer.close()
        for module in list(self._running):
            try:
                await self.drop(module)
            except SandboxError:
                continue  # the host removes what is left at the end of the session
        await self._host.end_session(self._session)


async def _well(running: _Running) -> bool:
    """Whether a module can be called. It is asked, and at last its host, unless it has just answered."""
    client = running.client
    return client.fresh or await client.serves() or await running.instance.why_lost() is None
