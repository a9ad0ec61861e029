"""Background jobs of the shell in its real container: they keep it from resting, and die with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from iact.core.gate.gate import Denial, decide
from iact.core.gate.grant import Grant, Scope
from iact.core.modules.client import Completed
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.ports import JSON
from iact.sandbox.docker.engine import connect
from iact.sandbox.owner import SESSION
from tests.core.modules.clock import HeldClock
from tests.sandbox.calling import until
from tests.sandbox.test_rest import IDLE, Starts, _drop

PATIENCE = 300.0


async def call(invoker: Invoker, function: str, arguments: dict[str, JSON]) -> Completed:
    made = FunctionCall("/", f"shell.{function}", 1, arguments, {}, 60, states=("ready", "jobs"))
    ticket = decide(made.request, 1, Grant(Scope("all", (("*",),)), 1))
    assert not isinstance(ticket, Denial)
    outcome = await invoker.call(
        ticket,
        made,
        on_output=lambda _: None,
        on_artifact=_drop,
        report=lambda _: None,
    )
    assert isinstance(outcome, Completed), outcome
    return outcome


def test_a_job_keeps_its_module_and_ends_with_it(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        clock, host = HeldClock(), Starts(tmp_path)
        host.started = []
        invoker = Invoker(host, "jobs", workspace, clock=clock, idle=IDLE)
        try:
            begun = await call(invoker, "run", {"command": "sleep 4711", "background": True})
            assert begun.state is not None
            assert begun.state.state == "jobs"
            (shell,) = host.started
            clock.advance(IDLE + 1)
            assert "job 1: runs" in (await call(invoker, "jobs", {})).output
            assert not shell.ended
            stopped = await call(invoker, "stop", {"job": 1})
            assert stopped.state is not None
            assert stopped.state.state == "ready"
            clock.advance(IDLE + 1)

            async def ended() -> bool:
                return shell.ended

            await until(ended, seconds=PATIENCE)
            again = await call(invoker, "run", {"command": "sleep 4712", "background": True})
            assert again.data["job"] == 1
        finally:
            await invoker.close()
            await host.close()
        engine = connect()
        left = engine.containers.list(all=True, filters={"label": f"{SESSION}=jobs"})
        engine.close()
        assert left == []

    loop.run(scenario())
