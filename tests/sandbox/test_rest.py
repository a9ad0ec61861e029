"""The modules of a session that makes no calls are stopped, start again at its next call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from iact.core.gate.gate import Denial, decide
from iact.core.gate.grant import Grant, Scope
from iact.core.modules.client import ArtifactChunk, Completed
from iact.core.modules.health_monitor import EVERY
from iact.core.modules.invoker import HELD, FunctionCall, Invoker
from iact.core.ports import Permit, Report, Right
from iact.sandbox import DockerHost
from iact.sandbox.docker.host import DockerInstance
from tests.core.modules.clock import HeldClock
from tests.sandbox.calling import until, write_module

NOTES = """
from ext_modules.sdk import Module

module = Module("notes", "Holds one note.")
held = []

@module.function(impact=0)
def put(text: str) -> str:
    held.append(text)
    return " ".join(held)
"""
LAMP = """
from ext_modules.sdk import Call, Module

module = Module("lamp", "A lamp.", states={"off": "Dark.", "on": "Light."})

@module.function(impact=0)
def put(call: Call, text: str) -> str:
    call.move(text)
    return text
"""
IDLE = 900.0


class Starts(DockerHost):
    """Remembers what it started."""

    started: list[DockerInstance]

    async def start(
        self,
        name: str,
        *,
        session: str,
        workspace: Path,
        report: Report,
        digest: str | None = None,
        egress: Sequence[str] = (),
        secrets: Sequence[str] = (),
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> DockerInstance:
        instance = await super().start(
            name,
            session=session,
            workspace=workspace,
            report=report,
            digest=digest,
            right=right,
            agent=agent,
            copy=copy,
        )
        self.started.append(instance)
        return instance


async def _drop(chunk: ArtifactChunk) -> None:
    return None


async def put(invoker: Invoker, module: str, text: str) -> Completed:
    call = FunctionCall(
        "/", f"{module}.put", 1, {"text": text}, {}, 60, states=("off", "on") if module == "lamp" else ()
    )
    ticket = decide(call.request, 0, Grant(Scope("all", (("*",),)), 1))
    assert not isinstance(ticket, Denial)
    outcome = await invoker.call(
        ticket, call, on_output=lambda _: None, on_artifact=_drop, report=lambda _: None
    )
    assert isinstance(outcome, Completed), outcome
    return outcome


def test_a_session_that_rests_holds_no_container(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    shipped = write_module(tmp_path / "shipped", "notes", NOTES)
    write_module(shipped, "lamp", LAMP)

    async def main() -> None:
        clock, host = HeldClock(), Starts(tmp_path, shipped=shipped)
        host.started = []
        invoker = Invoker(host, "s", workspace, clock=clock, idle=IDLE)
        try:
            await put(invoker, "lamp", "on")
            assert (await put(invoker, "notes", "a")).output == "a"
            clock.advance(IDLE - 1)
            again = await put(invoker, "notes", "b")
            assert again.output == "a b"

            lamp, notes = host.started
            clock.advance(IDLE)
            await until(lambda: _is(notes.ended), seconds=60)
            fresh = await put(invoker, "notes", "c")
            assert fresh.output == "c"
            assert not lamp.ended, "it is on, so it may be in use"
            assert [one.name for one in host.started] == ["lamp", "notes", "notes"]

            clock.advance(HELD * IDLE)
            await until(lambda: _is(lamp.ended), seconds=60)
            await put(invoker, "lamp", "on")
            await put(invoker, "lamp", "off")
            clock.advance(IDLE)
            await until(lambda: _is(host.started[-1].ended), seconds=60)
            assert host.started[-1].name == "lamp", "it is off again, so it rests as any other"
        finally:
            await invoker.close()
            await host.close()
        assert all(one.ended for one in host.started)

    loop.run(main())


def test_a_module_that_dies_between_two_calls_is_let_go(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    shipped = write_module(tmp_path / "shipped", "notes", NOTES)

    async def main() -> None:
        clock, host = HeldClock(), Starts(tmp_path, shipped=shipped)
        host.started = []
        told: list[int] = []
        invoker = Invoker(host, "s", workspace, clock=clock, idle=0)
        invoker.on_change(lambda: told.append(invoker.running))
        try:
            await put(invoker, "notes", "a")
            (notes,) = host.started
            clock.advance(EVERY)
            assert not notes.ended
            await asyncio.to_thread(notes.container.kill)
            await asyncio.to_thread(notes.container.wait)

            async def noticed() -> bool:
                clock.advance(EVERY)
                return notes.ended

            await until(noticed, seconds=120)
            assert told == [1, 0], "nobody called it, and it is known"
            fresh = await put(invoker, "notes", "b")
            assert fresh.output == "b"
        finally:
            await invoker.close()
            await host.close()

    loop.run(main())


async def _is(value: bool) -> bool:
    return value
