"""Jobs of `shell.run background=true`: they run on, are read in pieces, end by themselves or are stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from ext_modules.sdk.testing import Bench, Done
from ext_modules.shell.jobs import BUSY, MOST, READY
from ext_modules.shell.module import module
from tests.ext_modules.test_shell import processes

_SLEEPS = 700_000 + os.getpid()
PATIENCE = 300.0


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IACT_WORKSPACE", str(tmp_path))
    return tmp_path


def playing(workspace: Path, scene: Callable[[Bench], Coroutine[None, None, None]]) -> None:
    """Play a scene, and stop every job that is left."""

    async def main() -> None:
        bench = Bench(module, session=str(workspace))
        try:
            await scene(bench)
        finally:
            for number in range(1, MOST + 2):
                await bench.call("stop", {"job": number})

    asyncio.run(main())


async def begin(bench: Bench, command: str) -> Done:
    return await bench.call("run", {"command": command, "background": True})


async def until_end(bench: Bench, job: int) -> str:
    """All that a job wrote from now on, and how it ended."""
    done = await bench.call("output", {"job": job, "wait": PATIENCE}, timeout=PATIENCE + 30)
    assert done.error is None, done
    return done.output


def test_a_job_runs_on_and_is_read_to_its_end(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        os.mkfifo(workspace / "go")
        begun = await begin(bench, "echo one; read line < go; echo $line; exit 3")
        assert begun.output.startswith("Job 1 runs in the background;")
        assert [state.state for state in begun.states] == [BUSY]
        listed = await bench.call("jobs")
        assert "job 1: runs" in listed.output
        (await bench.call("run", {"command": "echo two > go"}))
        text = await until_end(bench, 1)
        assert text == "one\ntwo\n[Job 1 ended with exit status 3.]\n"
        assert (await bench.call("jobs")).error is not None, "no job, no function for it"
        assert module.agent(str(workspace), "/").name == READY

    playing(workspace, scene)


def test_the_end_of_a_job_is_told(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        told = asyncio.Event()
        state = module.agent(str(workspace), "/")
        stop = state.watch(lambda change: told.set() if "ended" in change.note else None)
        await begin(bench, "true")
        async with asyncio.timeout(PATIENCE):
            await told.wait()
        stop()
        assert state.now.note == "job 1 ended with exit status 0"
        assert state.name == BUSY, "until somebody has read it"
        assert await until_end(bench, 1) == "[Job 1 ended with exit status 0.]\n"

    playing(workspace, scene)


def test_stopping_kills_all_its_processes(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        os.mkfifo(workspace / "up")
        await begin(bench, f"setsid sleep {_SLEEPS} & echo up > up; wait")
        await bench.call("run", {"command": "read line < up"})
        stopped = await bench.call("stop", {"job": 1})
        assert stopped.error is None
        assert "[Job 1 ended with exit status 1" in stopped.output
        assert processes(str(_SLEEPS)) == []
        again = await bench.call("stop", {"job": 1})
        assert again.error is not None

    playing(workspace, scene)


def test_what_is_read_once_is_not_read_again(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        os.mkfifo(workspace / "go")
        await begin(bench, "echo first; read line < go; echo second")
        text = ""
        async with asyncio.timeout(PATIENCE):
            while "first" not in text:
                text += (await bench.call("output", {"job": 1})).output
        await bench.call("run", {"command": "echo > go"})
        rest = await until_end(bench, 1)
        assert rest == "second\n[Job 1 ended with exit status 0.]\n"

    playing(workspace, scene)


def test_jobs_are_each_agents_own_and_bounded(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        for number in range(1, MOST + 1):
            assert (await begin(bench, f"sleep {_SLEEPS}")).data["job"] == number
        refused = await begin(bench, "true")
        assert refused.error is not None
        assert "stop one" in refused.error.message
        other = await bench.call("output", {"job": 1}, agent="/other")
        assert other.error is not None
        wrong = await bench.call("output", {"job": 99})
        assert wrong.error is not None
        assert "There is no job 99; there is 1, 2" in wrong.error.message

    playing(workspace, scene)
    assert processes(str(_SLEEPS)) == []


def test_a_job_has_the_agents_place_and_leaves_it_alone(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        await bench.call("run", {"command": "mkdir deep; cd deep; export MINE=1"})
        await begin(bench, "pwd; echo $MINE; cd /; export MINE=2")
        assert await until_end(bench, 1) == f"{workspace}/deep\n1\n[Job 1 ended with exit status 0.]\n"
        assert (await bench.call("run", {"command": "pwd; echo $MINE"})).output == f"{workspace}/deep\n1\n"

    playing(workspace, scene)
