"""Modules whose sockets can't be shared, reached through the standard streams of a relay in their container."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.core.modules.client import Attached, Completed
from iact.sandbox.docker import isolation, relay, stdio
from tests.sandbox.calling import shell, write_module
from tests.sandbox.inside import called, hosting
from tests.sandbox.test_hostile_more import ARCHIVES
from tests.sandbox.test_lifecycle import folders


@pytest.fixture
def _shares_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is the machine's own; we take it for one that shares no sockets."""
    monkeypatch.setattr(isolation, "_desktop", lambda _: True)


pytestmark = pytest.mark.usefixtures("_shares_none")


def test_calls_stream_and_nothing_is_left(loop: asyncio.Runner, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def scenario() -> None:
        async with hosting(tmp_path / "data") as host:
            instance = await host.start("shell", session="s", workspace=workspace, report=print)
            mounts = instance.container.attrs["HostConfig"]["Mounts"]
            assert "/run/iact" not in {mount["Target"] for mount in mounts}
            outcome = await shell(instance, "echo out; seq 1000 > /workspace/numbers; exit 3")
            assert (outcome.output, outcome.exit_status) == ("out\n", 3)
            several = [shell(instance, f"echo {number}") for number in range(4)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each) for each in several]
            assert [task.result().output for task in tasks] == ["0\n", "1\n", "2\n", "3\n"]
        assert instance.stdio is not None
        assert not instance.stdio._connections

    loop.run(scenario())
    assert len((workspace / "numbers").read_text(encoding="ascii").split()) == 1000
    assert folders(tmp_path / "data") == []


def test_large_values_pass_in_both_directions(loop: asyncio.Runner, tmp_path: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "packing", ARCHIVES)
    content = bytes(range(256)) * (8 << 12)  # 8 MiB

    async def scenario() -> None:
        async with hosting(tmp_path / "data", shipped=shipped) as host:
            instance = await host.start("packing", session="s", workspace=tmp_path, report=print)
            async with called(instance) as caller:
                attached = (Attached("content", "application/zip", content, "archive"),)
                outcome = await caller.outcome("give", {"media": "application/zip"}, attached=attached)
                assert isinstance(outcome, Completed), outcome
                assert caller.artifacts == {outcome.artifact: content}

    loop.run(scenario())


def test_a_module_that_dies_is_lost_and_started_again(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            first = await host.start("shell", session="s", workspace=tmp_path, report=print)
            async with called(first) as caller:
                await asyncio.to_thread(first.container.kill)
                with pytest.raises(ModuleLost):
                    await caller.client.describe()
            assert "was killed (status 137)" in str(await first.why_lost())
            second = await host.start("shell", session="s", workspace=tmp_path, report=print)
            assert (await shell(second, "echo again")).output == "again\n"

    loop.run(scenario())


def test_what_needs_another_socket_is_refused(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            with pytest.raises(SandboxUnavailable, match="module app needs a socket that this engine"):
                await host.start("app", session="s", workspace=tmp_path, report=print)

    loop.run(scenario())


def test_an_engine_behind_tls_is_refused(
    loop: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://there:2376")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    assert not stdio.possible()
    with pytest.raises(SandboxUnavailable, match="can't carry"):
        loop.run(stdio._dial())


def test_the_engines_frames() -> None:
    assert stdio.frames(b"\x01\0\0\0\0\x01\0\x02") == (1, 65538)


def test_the_relay_passes_on_all_that_comes_before_either_end(tmp_path: Path) -> None:
    """Without a container: half-closed by the one end, it brings what the other still says."""
    path = str(tmp_path / "s")
    asked = b"x" * 300_000

    async def scenario() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            data = await reader.read()
            writer.write(data[::-1] + b"end")
            writer.close()

        async with await asyncio.start_unix_server(answer, path):
            command = [sys.executable, "-I", "-S", relay.__file__, path]
            done = await asyncio.to_thread(subprocess.run, command, input=asked, capture_output=True)
        return done.stdout

    assert asyncio.run(scenario()) == asked + b"end"
