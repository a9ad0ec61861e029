"""A container runs on its owner's lease: with the owner it ends by itself, whoever else is there, and whatever is in it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import APIError
from docker.models.containers import Container
from requests.exceptions import ReadTimeout

from iact import doctor
from iact.core.errors import SandboxUnavailable
from iact.sandbox import DockerHost, leftovers, owner, reaper
from iact.sandbox.docker import first_process, lease, refused, removal, state
from iact.sandbox.docker.image import ensure
from iact.user_folders import USERS
from tests.sandbox.calling import shell, until
from tests.sandbox.conftest import sweep
from tests.sandbox.inside import hosting
from tests.sandbox.test_lifecycle import containers, folders

_OWNER = """
import asyncio, sys
from pathlib import Path
from iact.sandbox import DockerHost
from iact.sandbox.docker import isolation
from tests.sandbox.calling import shell

if "no sockets" in sys.argv:
    isolation._desktop = lambda _: True

async def main():
    host = DockerHost(Path(sys.argv[1]))
    one = await host.start("shell", session="s", workspace=Path(sys.argv[2]), report=lambda line: None)
    running = asyncio.create_task(shell(one, sys.argv[3], seconds=3600))
    while not Path(sys.argv[2], "beats").exists():
        await asyncio.sleep(0.02)
    print(one.container.id, flush=True)
    await running

asyncio.run(main())
"""
_RESISTS = "kill -STOP 1; kill -KILL 1; rm -f /run/iact/*; "
_BEATS = "trap '' TERM HUP INT; while true; do echo >> /workspace/beats; sleep 0.05; done"


@pytest.mark.parametrize("resists", ["", _RESISTS])
@pytest.mark.parametrize("inside", [(), ("unshare", "--pid", "--fork", "--kill-child")])
def test_nothing_goes_on_after_its_owner(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    workspace: Path,
    inside: tuple[str, ...],
    resists: str,
) -> None:
    if inside and os.geteuid() != 0:
        pytest.skip("a PID namespace needs root")
    beats = workspace / "beats"
    beats.unlink(missing_ok=True)
    command = [*inside, sys.executable, "-c", _OWNER, str(tmp_path), str(workspace), resists + _BEATS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        container = engine.containers.get(process.stdout.readline().decode().strip())

        async def another_of_the_same_directory() -> None:
            async with hosting(tmp_path) as host:
                other = await host.start("shell", session="t", workspace=workspace, report=print)
                assert (await shell(other, "echo ours")).output == "ours\n"
            assert leftovers.find([tmp_path]).containers == []

        loop.run(another_of_the_same_directory())
        container.reload()
        assert container.status == "running", "a second process leaves it alone, and it resists nothing"
        process.kill()
    assert container.wait(timeout=10)["StatusCode"] == 143
    seen = beats.stat().st_size
    assert leftovers.find([tmp_path]).containers
    assert leftovers.remove([tmp_path]).containers
    assert not leftovers.find([tmp_path])
    assert (containers(engine, tmp_path), folders(tmp_path)) == ([], [])
    assert beats.stat().st_size == seen


def test_no_process_of_a_container_holds_its_lease_for_the_owner(
    engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    """Where no socket is shared, too: what the module could stop there does not matter."""
    (workspace / "beats").unlink(missing_ok=True)
    stopping = f"kill -STOP -1; {_BEATS}"
    command = [sys.executable, "-c", _OWNER, str(tmp_path), str(workspace), stopping, "no sockets"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        container = engine.containers.get(process.stdout.readline().decode().strip())
        assert container.attrs["Config"]["StdinOnce"]
        process.kill()
    try:
        assert container.wait(timeout=10)["StatusCode"] == 143
    finally:
        sweep(engine, tmp_path)


@pytest.mark.parametrize("shares_sockets", [True, False])
def test_a_module_never_runs_without_a_lease(engine: docker.DockerClient, shares_sockets: bool) -> None:
    """Its owner was killed between the start of the container and the lease."""
    made = engine.containers.create(
        ensure(engine, print).reference,
        lease.held_by(["sh", "-c", "echo ran"], shares_sockets=shares_sockets),
        stdin_open=not shares_sockets,
        tmpfs={"/run/iact": ""},
        network_mode="none",
    )
    try:
        made.start()
        assert made.wait(timeout=60)["StatusCode"] == 143
        assert b"ran" not in made.logs()
        assert "No program took the lease of this container" in str(state.why_ended(made, "shell"))
    finally:
        made.remove(force=True)


def test_the_first_process_ends_though_its_output_is_full(tmp_path: Path) -> None:
    """The module fills it: then a word about the end would wait until somebody reads."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    os.set_blocking(writing, True)

    place = str(tmp_path / "lease")
    command = [sys.executable, "-I", "-S", first_process.__file__, place, "cat"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, stderr=writing) as process,
        socket.socket(socket.AF_UNIX) as ours,
    ):
        while ours.connect_ex(place):
            assert process.poll() is None
        assert ours.recv(1) == first_process.TAKEN
        ours.close()
        try:
            assert process.wait(timeout=20) == 143
        finally:
            process.kill()
    os.close(reading)
    os.close(writing)


def test_what_the_engine_refuses_is_tried_again(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals = []

    def refuse(container: Container, **options: object) -> None:
        refusals.append(container.id)
        raise APIError("driver failed to remove root filesystem")

    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            instance = await host.start("shell", session="s", workspace=workspace, report=print)
            with monkeypatch.context() as patch:
                patch.setattr(Container, "remove", refuse)
                await instance.stop()
            assert refusals == [instance.container.id]

            async def gone() -> bool:
                return not await asyncio.to_thread(containers, engine, tmp_path)

            await until(gone)

    loop.run(scenario())
    sweep(engine, tmp_path)


def test_what_is_refused_until_the_end_is_removed_by_the_next_host(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if that is in the same process: a claim is given up with its host."""

    def refuse(container: Container, **options: object) -> None:
        raise APIError("driver failed to remove root filesystem")

    async def scenario() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Container, "remove", refuse)
            host = DockerHost(tmp_path)
            await host.start("shell", session="s", workspace=workspace, report=print)
            await host.close()
        assert len(containers(engine, tmp_path)) == 1
        assert len(owner.given_up(tmp_path)) == 1
        async with hosting(tmp_path) as host:
            await host.open()
            assert containers(engine, tmp_path) == []
        assert list((tmp_path / owner.CLAIMS).iterdir()) == []
        assert list(reaper.sockets(tmp_path).iterdir()) == []

    loop.run(scenario())


def test_a_container_whose_creation_was_not_answered_is_removed_and_not_the_next_of_its_name(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create: Callable[..., object] = docker.APIClient.create_container

    def not_answered(self: docker.APIClient, *args: object, **options: object) -> None:
        create(self, *args, **options)
        raise ReadTimeout("the engine took too long")

    def no_engine() -> None:
        raise SandboxUnavailable("no engine answers")

    monkeypatch.setattr(refused, "_FIRST_WAIT", 0.05)
    monkeypatch.setattr(refused, "_LONGEST_WAIT", 0.05)

    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            await host.open()
            with monkeypatch.context() as silent:
                silent.setattr(refused, "knock", no_engine)
                silent.setattr(removal, "knock", no_engine)
                with monkeypatch.context() as patch:
                    patch.setattr(docker.APIClient, "create_container", not_answered)
                    for session in ("s", "t"):
                        with pytest.raises(SandboxUnavailable):
                            await host.start("shell", session=session, workspace=workspace, report=print)
                assert len(containers(engine, tmp_path)) == 2
                running = await host.start("shell", session="s", workspace=workspace, report=print)
                assert len(containers(engine, tmp_path)) == 2, "it has the name of the first"

            async def alone() -> bool:
                return len(await asyncio.to_thread(containers, engine, tmp_path)) == 1

            await until(alone)
            assert await running.why_lost() is None
            assert (await shell(running, "echo on")).output == "on\n"

    loop.run(scenario())


def test_the_doctor_says_that_containers_were_not_checked_where_no_engine_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    nothing_else = doctor.leftovers(tmp_path)
    assert nothing_else.ok
    assert "containers were not checked" in nothing_else.detail

    folder = reaper.sockets(tmp_path) / "1-0.0@1"
    folder.mkdir(parents=True)
    found = doctor.leftovers(tmp_path)
    assert not found.ok
    assert "1 folder" in found.detail
    assert "Containers were not checked" in found.detail
    fixed = doctor.leftovers(tmp_path, fix=True)
    assert "removed 1 folder" in fixed.detail
    assert "containers were not checked" in fixed.detail


def test_an_engine_that_stops_answering_is_told_with_what_it_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers_once(client: docker.DockerClient, data: Path) -> dict[str, str]:
        if data != tmp_path:
            raise ReadTimeout("the engine took too long")
        return {"0": "of the first"}

    monkeypatch.setattr(leftovers, "abandoned_containers", answers_once)
    found = leftovers.find([tmp_path, tmp_path / "users" / "a"])
    assert found.containers == ["of the first"]
    assert found.engine_silent


def test_the_doctor_connects_once_for_all_data_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = []

    def connect(timeout: int) -> docker.DockerClient:
        connections.append(timeout)
        return docker.DockerClient.from_env(timeout=timeout)

    monkeypatch.setattr(leftovers, "connect", connect)
    for user in ("a", "b"):
        (tmp_path / USERS / user).mkdir(parents=True)
    found = doctor.leftovers(tmp_path)
    assert found.ok
    assert "not checked" not in found.detail
    assert len(connections) == 1
