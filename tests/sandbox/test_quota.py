"""What the workspace of a session may take on disk: looked at before, during and behind calls in a real container."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from iact.core.gate.gate import Denial, decide
from iact.core.gate.grant import DEFAULT_SCOPE, Grant
from iact.core.modules.client import ArtifactChunk, Completed, Outcome, Raised
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.modules.quota import FolderUse
from iact.sandbox import DockerHost
from tests.sandbox.inside import hosting

MIB = 1 << 20
Run = Callable[[str], Awaitable[Outcome]]
_NUMBERS = itertools.count(1)


@pytest.fixture
def workspace(data: Path) -> Path:
    """A new one for each test, where sessions have theirs, so that it counts as ours."""
    folder = data / "sessions" / f"quota{next(_NUMBERS)}" / "workspace"
    folder.mkdir(parents=True)
    return folder


async def _drop(chunk: ArtifactChunk) -> None:
    return None


def through(invoker: Invoker, workspace: Path) -> Run:
    """Runs scripts in the shell of a session."""

    async def run(script: str) -> Outcome:
        call = FunctionCall(
            "/", "shell.run", next(_NUMBERS), {"command": script}, {}, 300, fills=FolderUse(workspace)
        )
        ticket = decide(call.request, 1, Grant(DEFAULT_SCOPE, 1))
        assert not isinstance(ticket, Denial)
        return await invoker.call(
            ticket, call, on_output=lambda _: None, on_artifact=_drop, report=lambda _: None
        )

    return run


def scene(loop: asyncio.Runner, data: Path, workspace: Path, play: Callable[[Run], Awaitable[None]]) -> None:
    async def scenario(host: DockerHost) -> None:
        invoker = Invoker(host, "s", workspace, workspace_bytes=8 * MIB)
        try:
            await play(through(invoker, workspace))
        finally:
            await invoker.close()

    async def main() -> None:
        async with hosting(data) as host:
            await scenario(host)

    loop.run(main())


def said(outcome: Outcome) -> str:
    assert isinstance(outcome, Raised), outcome
    assert outcome.type == "WorkspaceFull"
    assert outcome.message.startswith("The workspace takes more than the 8 MiB that it may.")
    return outcome.message


def test_a_full_workspace_refuses_until_there_is_room(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def play(run: Run) -> None:
        assert isinstance(await run("echo small > small"), Completed)
        (workspace / "big").write_bytes(b"x" * 16 * MIB)  # as one that was written between two looks
        assert "It was not run. Delete files first" in said(await run("echo more > more"))
        assert not (workspace / "more").exists()
        for _ in range(3):
            assert isinstance(await run("true"), Completed)
        assert "Ask the user" in said(await run("rm big")), "it did not make room when it could"
        (workspace / "big").unlink()
        assert isinstance(await run("echo more > more"), Completed)
        (workspace / "big").write_bytes(b"x" * 16 * MIB)
        assert "Delete files first" in said(await run("true"))
        assert isinstance(await run("rm big"), Completed)
        assert isinstance(await run("echo again > more"), Completed)
        assert (workspace / "more").read_text() == "again\n"

    scene(loop, tmp_path, workspace, play)


def test_a_call_is_stopped_once_it_takes_too_much(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def play(run: Run) -> None:
        writing = "for i in $(seq 3000); do head -c 1M /dev/zero >> big; sleep 0.05; done; echo over > over"
        assert "It was stopped" in said(await run(writing))
        assert (workspace / "big").stat().st_size > 8 * MIB
        assert isinstance(await run("rm big"), Completed), "it was told already"
        assert "It was stopped" in said(await run("seq 4000 | xargs touch; sleep 600")), "files count too"
        assert not (workspace / "over").exists()

    scene(loop, tmp_path, workspace, play)
