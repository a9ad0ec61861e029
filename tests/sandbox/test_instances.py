"""Viewers and workers of the shell behind the invoker: what lasts from one to the other, what doesn't, and what ends."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from iact.core.errors import ModuleLost
from iact.core.gate.gate import Denial, decide
from iact.core.gate.grant import Grant, Scope
from iact.core.modules.client import ArtifactChunk, Completed, Outcome, Raised
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.modules.registry import Start
from iact.core.ports import JSON
from tests.sandbox.backends import Backend, each_backend
from tests.sandbox.calling import until

pytestmark = each_backend

START: Final = Start(views=True, own=True)
_NUMBERS = itertools.count(1)


async def _drop(chunk: ArtifactChunk) -> None:
    return None


class Shell:
    """The shell of one session, as its agents have it."""

    def __init__(self, invoker: Invoker) -> None:
        self.invoker = invoker

    async def outcome(
        self, command: str, *, impact: float, agent: str = "/a", function: str = "run", **more: JSON
    ) -> Outcome:
        arguments: dict[str, JSON] = {"command": command, **more} if function == "run" else dict(more)
        call = FunctionCall(
            agent, f"shell.{function}", next(_NUMBERS), arguments, {}, 60, START,
            exclusive=function == "run", states=("ready", "jobs"),
        )  # fmt: skip
        held = function != "run"
        ticket = decide(call.request, impact, Grant(Scope("all", (("*",),)), 2), held=held)
        assert not isinstance(ticket, Denial)
        return await self.invoker.call(
            ticket, call, on_output=lambda _: None, on_artifact=_drop, report=lambda _: None
        )

    async def look(self, command: str, *, agent: str = "/a") -> str:
        outcome = await self.outcome(command, impact=0, agent=agent)
        assert isinstance(outcome, Completed), outcome
        return outcome.output

    async def work(self, command: str, *, agent: str = "/a", background: bool = False) -> str:
        outcome = await self.outcome(command, impact=1, agent=agent, background=background)
        assert isinstance(outcome, Completed), outcome
        return outcome.output


@asynccontextmanager
async def opened(backend: Backend, tmp_path: Path) -> AsyncIterator[tuple[Shell, Path]]:
    workspace = tmp_path / "sessions" / "s" / "workspace"
    workspace.mkdir(parents=True)
    host = backend.host(tmp_path)
    invoker = Invoker(host, "s", workspace)
    try:
        yield Shell(invoker), workspace
    finally:
        await invoker.close()
        await host.close()


def test_the_place_goes_with_the_call_and_nothing_else_does(
    loop: asyncio.Runner, backend: Backend, tmp_path: Path
) -> None:
    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, _):
            await shell.work("mkdir -p 'a b'; echo one > /tmp/made; cd 'a b'; export A=$'x\ny \\'z\\'' B=1")
            assert await shell.look('pwd; echo "$A$B"; cat /tmp/made') == "/workspace/a b\nx\ny 'z'1\none\n"
            assert "ead-only file system" in await shell.look("touch here; echo no > /tmp/made")
            await shell.look("cd ..; export A=2 PATH=$PATH:/more; unset B")
            assert await shell.work("pwd; echo $A${B-none}; echo ${PATH##*:}") == "/workspace\n2none\n/more\n"
            assert await shell.look("pwd; echo ${A-none}; ls -A /tmp", agent="/b") == "/workspace\nnone\n"
            assert shell.invoker.running == 3

    loop.run(main())


def test_what_is_carried_is_never_run(loop: asyncio.Runner, backend: Backend, tmp_path: Path) -> None:
    """A look writes what it likes where its exports are noted; a worker takes names and values from there alone."""
    trick = (
        "n=$(trap -p EXIT); n=${n##*>&}; trap - EXIT; "
        "printf '/workspace\\ndeclare -x A=\"1\"\\ntouch /workspace/made\\n' >&${n%% *}",
        "export A='$(touch /workspace/made)' PS4='$(touch /workspace/made)' BASH_ENV=/workspace/x",
        "export A='`touch /workspace/made`' SHELLOPTS=xtrace; export B=$'\\'; touch /workspace/made; \\''",
    )

    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, workspace):
            for script in trick:
                await shell.look(script)
                await shell.work("set -x; echo $A $B > seen; eval : 2>/dev/null")
                assert sorted(one.name for one in workspace.iterdir()) == ["seen"]

    loop.run(main())


def test_a_script_can_t_have_its_end_noted_elsewhere(
    loop: asyncio.Runner, backend: Backend, tmp_path: Path
) -> None:
    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, workspace):
            await shell.work("mkdir sub; cd sub; __iact_leave=made IACT_LEAVE=made; export IACT_LEAVE")
            assert await shell.look("pwd") == "/workspace/sub\n"
            assert [one.name for one in workspace.rglob("*")] == ["sub"]

    loop.run(main())


def test_nothing_outlives_a_look(loop: asyncio.Runner, backend: Backend, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, _):
            ways = (
                "sleep 86421 & disown",
                "(env -i setsid sleep 86421 &) ; true",
                "env -i setsid sleep 86421 & kill -9 $PPID; sleep 1",
            )
            left = "mkdir -p $TMPDIR/a/b/c; echo x > $TMPDIR/a/b/file; chmod 0 $TMPDIR/a/b; ln -s /workspace $TMPDIR/to"
            for way in ways:
                await shell.outcome(f"{left}; {way}", impact=0)
                assert await shell.look("ls -A $TMPDIR") == ""
                assert "sleep 86421" not in await shell.look("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            refused = await shell.outcome("true", impact=0, background=True)
            assert isinstance(refused, Raised)
            assert "can't be started where nothing may be changed" in refused.message

    loop.run(main())


def test_what_gets_away_from_a_script_does_not_stay_in_a_worker_either(
    loop: asyncio.Runner, backend: Backend, tmp_path: Path
) -> None:
    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, _):
            await shell.work("echo begun; sleep 86422", background=True)
            await shell.outcome("env -i setsid sleep 86423 & kill -9 $PPID; sleep 1", impact=1)
            running = await shell.work("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            assert "sleep 86423" not in running
            assert "sleep 86422" in running, "a job goes on"

    loop.run(main())


GROWS: Final = "while :; do echo x >> log; sleep 0.02; done"


def size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


async def grows(log: Path) -> None:
    """Wait until the job is at work."""

    async def longer() -> bool:
        return size(log) > 8

    await until(longer, seconds=60)


async def stops(log: Path) -> None:
    """Fail unless the file has stopped growing within a second; the job writes fifty times a second.

    What was frozen may run for an instant when the engine thaws it to kill it.
    """
    sizes = [size(log)]
    for _ in range(5):
        await asyncio.sleep(0.2)
        sizes.append(size(log))
    assert sizes[-1] == sizes[-3] <= sizes[0] + 4, sizes


@pytest.mark.parametrize("most", [math.inf, 0, -math.inf])
def test_a_job_is_ended_and_a_call_goes_on_or_is_lost(
    loop: asyncio.Runner, backend: Backend, tmp_path: Path, most: float
) -> None:
    async def main() -> None:
        async with opened(backend, tmp_path) as (shell, workspace):
            log = workspace / "log"
            idle = most != math.inf
            await shell.work(GROWS, background=True)
            await grows(log)
            await shell.invoker.halt(lambda agent: agent.startswith("/a"), most=most, idle=idle)
            await stops(log)
            jobs = await shell.outcome("", impact=0, function="jobs")
            assert isinstance(jobs, Raised)
            assert "shell.jobs is not offered" in jobs.message, "jobs that are gone are simply gone"

            log.unlink()
            await shell.work(GROWS, background=True)
            await grows(log)
            script = "touch begun; until [ -e go ]; do sleep 0.02; done; echo done"
            foreground = asyncio.ensure_future(shell.outcome(script, impact=1))
            await until(lambda: _is(workspace / "begun"), seconds=60)
            await shell.invoker.halt(lambda agent: agent.startswith("/a"), most=most, idle=idle)
            await stops(log)
            (workspace / "go").touch()
            if idle:
                with pytest.raises(ModuleLost, match="the permissions of its agent were changed"):
                    await foreground
            else:
                done = await foreground
                assert isinstance(done, Completed)
                assert done.output == "done\n"
            assert await shell.work("pwd") == "/workspace\n"

    loop.run(main())


async def _is(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)
