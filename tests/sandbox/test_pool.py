"""Modules that run before they are called: given to one session, whole and once, and to no other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import docker
import pytest

from iact.core.ports import Right
from iact.sandbox import BubblewrapHost, DockerHost, reaper
from iact.sandbox.docker.host import DockerInstance
from tests.sandbox.backends import Backend, on
from tests.sandbox.calling import need_bubblewrap, shell, until
from tests.sandbox.conftest import sweep
from tests.sandbox.test_lifecycle import containers, folders, volumes

PATIENCE = 300.0
RIGHTS: tuple[Right, ...] = ("look", "work")


@pytest.fixture(autouse=True)
def _nothing_stays(engine: docker.DockerClient, tmp_path: Path) -> Iterator[None]:
    yield
    left = containers(engine, tmp_path), volumes(engine, tmp_path), folders(tmp_path)
    sweep(engine, tmp_path)
    assert left == ([], [], [])


@asynccontextmanager
async def pooling(data: Path, *, size: int = 1, runtime: str = "auto") -> AsyncIterator[DockerHost]:
    """A host whose pool is full."""
    host = DockerHost(data, pool=size, runtime=runtime)
    try:
        host.pool.fill()
        await full(host, size)
        yield host
    finally:
        await host.close()


async def full(host: DockerHost, size: int = 1) -> None:
    async def filled() -> bool:
        return host.pool.ready == size

    await until(filled, seconds=PATIENCE)


def place(data: Path, session: str) -> Path:
    """The workspace of a session, as the tree makes it."""
    folder = data / "sessions" / session / "workspace"
    folder.mkdir(parents=True)
    return folder


async def start(
    host: DockerHost,
    name: str,
    session: str,
    workspace: Path,
    said: list[str] | None = None,
    *,
    right: Right = "work",
    agent: str = "",
) -> DockerInstance:
    digest = next(entry.digest for entry in await host.catalogue() if entry.name == name)
    report = (said if said is not None else []).append
    return await host.start(
        name, session=session, workspace=workspace, report=report, digest=digest, right=right, agent=agent
    )


def test_a_set_is_one_sessions_with_its_workspace(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            before = {item["Id"] for item in engine.api.containers()}
            workspace, said = place(tmp_path, "one"), list[str]()
            first = await start(host, "shell", "one", workspace, said)
            assert first.container.id in before
            assert first.session == "one"
            assert said == [], "there is nothing to wait for"
            assert (await shell(first, "pwd; echo hello > note")).output == "/workspace\n"
            assert (workspace / "note").read_text() == "hello\n"
            files = await start(host, "files", "one", workspace)
            assert files.container.id in before, "the session has the whole set"
            assert await start(host, "shell", "one", workspace) is first

            async def renamed() -> bool:
                await asyncio.to_thread(first.container.reload)
                return str(first.container.name).endswith("-one-shell")

            await until(renamed, seconds=PATIENCE)
            await first.stop()
            again = await start(host, "shell", "one", workspace, said)
            assert again.container.id not in before
            assert said == ["starting the module shell"]
            assert (await shell(again, "cat note")).output == "hello\n"

    loop.run(scenario())


def test_the_first_agent_that_asks_has_the_viewer_and_the_worker_of_a_set(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            before = {one.container.id for one in host.pool.waiting}
            workspace, said = place(tmp_path, "one"), list[str]()
            look = await start(host, "shell", "one", workspace, said, right="look", agent="/a")
            other = await start(host, "shell", "one", workspace, said, right="look", agent="/b")
            work = await start(host, "shell", "one", workspace, said, agent="/a")
            files = [await start(host, "files", "one", workspace, said, right=right) for right in RIGHTS]
            assert {one.container.id for one in (look, work, *files)} == before
            assert other.container.id not in before
            assert said == ["starting the module shell"], "the other agent's alone"
            assert (await shell(work, "echo a > /tmp/mine; echo a > /workspace/ours")).exit_status == 0
            assert (await shell(look, "cat /tmp/mine /workspace/ours")).output == "a\na\n"
            assert (await shell(look, "touch /tmp/x || touch /workspace/x")).exit_status != 0
            assert (await shell(other, "cat /workspace/ours; ls /tmp")).output == "a\n"
            await look.stop()
            again = await start(host, "shell", "one", workspace, right="look", agent="/a")
            assert (await shell(again, "cat /tmp/mine")).output == "a\n", "cold, and the same agent's"

    loop.run(scenario())


def test_a_viewer_that_was_not_the_pools_has_a_worker_that_is_not_either(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    """Both see the same temporary files, and those of a set stand for nobody else's."""

    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            ours = {one.key.right: one for one in host.pool.waiting if one.name == "shell"}
            workspace = place(tmp_path, "one")
            await start(host, "files", "one", workspace)  # takes the set
            await asyncio.to_thread(ours["look"].container.kill)
            await asyncio.to_thread(ours["look"].container.wait)
            look = await start(host, "shell", "one", workspace, right="look", agent="/a")
            work = await start(host, "shell", "one", workspace, agent="/a")
            assert look not in ours.values()
            assert (await shell(work, "echo a > /tmp/mine")).exit_status == 0
            assert (await shell(look, "cat /tmp/mine")).output == "a\n"

    loop.run(scenario())


def test_nothing_goes_from_one_session_to_the_next(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            first = await start(host, "shell", "one", place(tmp_path, "one"))
            left = "echo secret | tee /tmp/mine /workspace/mine /dev/shm/mine; export MINE=secret; cd /tmp"
            assert (await shell(first, left)).exit_status == 0
            await full(host)
            second = await start(host, "shell", "two", place(tmp_path, "two"))
            assert second.container.id != first.container.id
            seen = await shell(second, "pwd; ls -A /tmp /workspace; echo [$MINE]; ls /run/iact")
            assert seen.output == "/workspace\n/tmp:\n\n/workspace:\n[]\nmodule.sock\n"
            await host.end_session("one")
            await full(host)
            third = await start(host, "shell", "three", place(tmp_path, "three"))
            assert third.container.id not in (first.container.id, second.container.id)

    loop.run(scenario())


def test_what_holds_something_or_is_not_ours_gets_nothing_from_the_pool(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            old = place(tmp_path, "old")
            (old / "kept").write_text("kept")
            for session, folder in (("old", old), ("live", workspace)):
                inode = folder.stat().st_ino
                instance = await start(host, "shell", session, folder)
                assert folder.stat().st_ino == inode
                assert host.pool.ready == 1
                await shell(instance, "touch new")
                assert (folder / "new").is_file()
            mounted = place(tmp_path, "mounted")
            await host.start(
                "files", session="mounted", workspace=mounted, report=print
            )  # of no known digest
            inode = mounted.stat().st_ino
            await start(host, "shell", "mounted", mounted)
            assert mounted.stat().st_ino == inode, "another module has it mounted"

    loop.run(scenario())


def test_one_that_died_in_the_pool_is_replaced(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with pooling(tmp_path) as host:
            ours = [one for one in host.pool.waiting if one.name == "shell"]
            for one in ours:
                await asyncio.to_thread(one.container.kill)
                await asyncio.to_thread(one.container.wait)
            workspace = place(tmp_path, "one")
            instance = await start(host, "shell", "one", workspace)
            assert instance not in ours
            assert (await shell(instance, "touch here")).exit_status == 0
            files = await start(host, "files", "one", workspace)
            assert (await asyncio.to_thread(files.container.top))["Processes"]
            assert (workspace / "here").is_file()

    loop.run(scenario())


def test_without_an_engine_it_is_the_same(loop: asyncio.Runner, tmp_path: Path) -> None:
    need_bubblewrap()

    async def scenario() -> None:
        host = BubblewrapHost(tmp_path, pool=1)
        try:
            host.pool.fill()

            async def filled() -> bool:
                return host.pool.ready == 1

            await until(filled, seconds=PATIENCE)
            waiting = host.pool.waiting
            workspace = place(tmp_path, "one")
            digest = next(entry.digest for entry in await host.catalogue() if entry.name == "shell")
            first = await host.start("shell", session="one", workspace=workspace, report=print, digest=digest)
            assert first in waiting
            assert (await shell(first, "pwd; echo hello > note")).output == "/workspace\n"
            assert (workspace / "note").read_text() == "hello\n"
        finally:
            await host.close()

    loop.run(scenario())


CHILD = """
import asyncio, sys
from pathlib import Path
from iact.sandbox import DockerHost

async def main():
    host = DockerHost(Path(sys.argv[1]), pool=1)
    host.pool.fill()
    while not host.pool.ready:
        await asyncio.sleep(0.05)
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_killed_process_leaves_nothing_of_its_pool(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert len(containers(engine, tmp_path)) == 4  # a viewer and a worker of files and of shell
        assert len(volumes(engine, tmp_path)) == 2
        child.kill()

    async def afterwards() -> None:
        host = DockerHost(tmp_path)
        await host.open()
        assert containers(engine, tmp_path) == []
        assert volumes(engine, tmp_path) == []
        assert os.listdir(reaper.sockets(tmp_path)) == []
        await host.close()

    loop.run(afterwards())


@on("mapped")
def test_users_that_the_engine_maps_get_theirs_from_the_pool_too(
    loop: asyncio.Runner, tmp_path: Path, backend: Backend
) -> None:
    """The prepared folder belongs to a mapped user by then, and an unused session's workspace still to us."""

    async def scenario() -> None:
        async with pooling(tmp_path, runtime=backend.runtime) as host:
            waiting = {one.container.id for one in host.pool.waiting}
            workspace = place(tmp_path, "s")
            instance = await start(host, "shell", "s", workspace)
            assert instance.container.id in waiting
            assert (await shell(instance, "id -u; echo mine > /workspace/file")).output == "0\n"
            assert (workspace / "file").stat().st_uid >= 65_536

    loop.run(scenario())
