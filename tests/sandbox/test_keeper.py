"""An image that a person brings runs on its owner's lease, too, though its system may have nothing that watches one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import docker
import pytest
from docker.errors import APIError
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.core.modules.client import Completed, Invocation, ModuleClient
from iact.core.stored.source import source_of
from iact.sandbox import DockerHost, leftovers
from iact.sandbox.docker import keeper
from tests.sandbox.calling import until
from tests.sandbox.conftest import sweep
from tests.sandbox.test_lifecycle import containers, folders
from tests.sandbox.test_user_image import TAG, brought

__all__ = ["brought"]

_OWNER = """
import asyncio, sys
from pathlib import Path
from iact.core.stored.source import source_of
from iact.sandbox import DockerHost
from iact.sandbox.docker import isolation

if "no sockets" in sys.argv:
    isolation._desktop = lambda _: True

async def main():
    host = DockerHost(Path(sys.argv[1]))
    entry = await host.add(source_of(sys.argv[3]), "user")
    await host.adopt(entry.name, entry.digest, "user")
    one = await host.start(
        entry.name, session="s", workspace=Path(sys.argv[2]), report=lambda line: None, digest=entry.digest)
    print(one.container.id, one.keeper.id, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("more", [[], ["no sockets"]])
def test_it_ends_with_its_owner(
    brought: str, engine: docker.DockerClient, tmp_path: Path, workspace: Path, more: list[str]
) -> None:
    command = [sys.executable, "-c", _OWNER, str(tmp_path), str(workspace), TAG, *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        running = [engine.containers.get(name) for name in process.stdout.readline().decode().split()]
        process.kill()
    try:
        assert len(running) == 2
        for container in running:
            container.wait(timeout=10)
        assert leftovers.find([tmp_path]).containers
        leftovers.remove([tmp_path])
        assert (containers(engine, tmp_path), folders(tmp_path)) == ([], [])
    finally:
        sweep(engine, tmp_path)


async def _started(host: DockerHost, workspace: Path) -> object:
    entry = await host.add(source_of(TAG), "user")
    await host.adopt(entry.name, entry.digest, "user")
    return await host.start(entry.name, session="s", workspace=workspace, report=print, digest=entry.digest)


def test_what_runs_in_it_can_not_end_the_watch(
    brought: str, engine: docker.DockerClient, loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    """The first process is among those that it sees. Without it, nothing of both goes on."""

    async def scenario() -> None:
        host = DockerHost(tmp_path)
        try:
            entry = await host.add(source_of(TAG), "user")
            await host.adopt(entry.name, entry.digest, "user")
            instance = await host.start(
                entry.name, session="s", workspace=workspace, report=print, digest=entry.digest
            )
            inside = "import os, signal; os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGKILL)"
            ran = await asyncio.to_thread(instance.container.exec_run, ["python3", "-c", inside])
            assert ran.exit_code == 0, ran.output
            async with ModuleClient(instance.target) as client:
                await client.wait_serving(60)
                made = await client.invoke(Invocation("s/1", "s", "/", "double", {"n": 21}), timeout=60)
            assert isinstance(made, Completed)

            assert instance.lease is not None
            instance.lease.close()
            await asyncio.to_thread(instance.container.wait, timeout=10)
            await instance.stop()
            assert containers(engine, tmp_path) == []
        finally:
            await host.close()

    loop.run(scenario())


def test_it_is_removed_with_what_the_engine_did_not_start(
    brought: str,
    engine: docker.DockerClient,
    loop: asyncio.Runner,
    tmp_path: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Container.start

    def refuse(container: Container, **options: object) -> None:
        is_keeper = list(container.attrs["Config"]["Cmd"])[-2:] == list(keeper.COMMAND)
        if not is_keeper:
            raise APIError("no such program")
        start(container)

    async def scenario() -> None:
        host = DockerHost(tmp_path)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(Container, "start", refuse)
                with pytest.raises(SandboxUnavailable, match="no such program"):
                    await _started(host, workspace)

            async def gone() -> bool:
                return not await asyncio.to_thread(containers, engine, tmp_path)

            await until(gone)
            await _started(host, workspace)
            assert len(containers(engine, tmp_path)) == 2
        finally:
            await host.close()
        assert (containers(engine, tmp_path), folders(tmp_path)) == ([], [])

    loop.run(scenario())
