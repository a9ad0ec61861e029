"""Containers come, serve, are lost and go; nothing of them stays behind, whatever happens on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import APIError
from docker.models.containers import Container

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.sandbox import DisabledHost, DockerHost, open_host, owner, reaper
from iact.sandbox.docker.host import DockerInstance
from iact.sandbox.docker.removal import free_name
from tests.sandbox.calling import shell, until, write_module
from tests.sandbox.conftest import sweep
from tests.sandbox.inside import hosting


def containers(engine: docker.DockerClient, data: Path) -> list[str]:
    """Names of all containers of data directory `data`."""
    chosen = {"label": f"{owner.OWNER}={owner.data_digest(data)}"}
    return [item["Names"][0] for item in engine.api.containers(all=True, filters=chosen)]


def volumes(engine: docker.DockerClient, data: Path) -> list[str]:
    """Names of all volumes of data directory `data`."""
    chosen = {"label": f"{owner.OWNER}={owner.data_digest(data)}"}
    return [item["Name"] for item in engine.api.volumes(filters=chosen)["Volumes"] or []]


def folders(data: Path) -> list[str]:
    """The socket folders that exist, and those that are mounted."""
    place = reaper.sockets(data)
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    present = [entry.name for entry in place.iterdir()] if place.is_dir() else []
    return present + [path for path in mounted if path.startswith(str(place.resolve()))]


@pytest.fixture(autouse=True)
def _nothing_stays(
    request: pytest.FixtureRequest, loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path
) -> Iterator[None]:
    descriptors = set(os.listdir("/proc/self/fd"))
    yield
    left = containers(engine, tmp_path), volumes(engine, tmp_path), folders(tmp_path)
    sweep(engine, tmp_path)  # first, so that a test that fails costs no container
    assert left == ([], [], [])
    sockets = {
        name for name in os.listdir("/proc/self/fd") if name not in descriptors and is_module_socket(name)
    }
    assert sockets == set()


def is_module_socket(descriptor: str) -> bool:
    try:
        return "module.sock" in os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return False


async def started(host: DockerHost, name: str, workspace: Path, session: str = "s") -> DockerInstance:
    return await host.start(name, session=session, workspace=workspace, report=print)


def test_a_name_is_free_again_whoever_else_removes_its_container(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    """A removal goes on in the engine when nobody waits for it any more; the next start of a session meets it."""

    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            instance = await started(host, "shell", workspace)
            name = instance.container.name
            assert name is not None
            await asyncio.gather(*(asyncio.to_thread(free_name, engine, name) for _ in range(4)))
            assert containers(engine, tmp_path) == []
            await instance.stop()

    loop.run(scenario())


def test_start_serves_and_stop_removes(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        begun = time.perf_counter()
        instance = await started(host, "shell", workspace)
        print(f"a module is up after {time.perf_counter() - begun:.2f} s")
        assert (await shell(instance, "echo hello")).output == "hello\n"
        assert await instance.why_lost() is None
        assert len(containers(engine, tmp_path)) == 1
        await instance.stop()
        await instance.stop()
        assert containers(engine, tmp_path) == []
        assert await instance.why_lost() == "The module shell was stopped."
        await host.close()

    loop.run(scenario())


def test_one_container_per_session_and_module(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(started(host, "shell", workspace)) for _ in range(3)]
        assert len({id(task.result()) for task in tasks}) == 1
        assert len(containers(engine, tmp_path)) == 1
        await host.close()

    loop.run(scenario())


def test_sessions_do_not_see_each_other(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path / "data")
        one, two = tmp_path / "one", tmp_path / "two"
        one.mkdir()
        two.mkdir()
        first = await started(host, "shell", one, "first")
        second = await started(host, "shell", two, "second")
        await shell(first, "echo secret > /tmp/mine; echo secret > /workspace/mine; sleep 300 & disown")
        seen = await shell(second, "ls /tmp /workspace /run/iact; ps axo args")
        assert "mine" not in seen.output
        assert "sleep 300" not in seen.output
        await host.end_session("first")
        assert len(containers(engine, tmp_path / "data")) == 1
        assert (await shell(second, "echo still here")).output == "still here\n"
        await host.close()
        assert containers(engine, tmp_path / "data") == []
        assert folders(tmp_path / "data") == []

    loop.run(scenario())


def test_a_killed_module_is_lost_with_a_reason_and_can_be_started_again(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        instance = await started(host, "shell", workspace)
        await asyncio.to_thread(instance.container.kill)

        async def noticed() -> bool:
            return await instance.why_lost() is not None

        await until(noticed)
        assert "shell was killed (status 137)" in str(await instance.why_lost())
        again = await started(host, "shell", workspace)
        assert again is not instance
        assert (await shell(again, "echo back")).output == "back\n"
        await host.close()

    loop.run(scenario())


def test_a_frozen_module_is_noticed_and_stopped_in_time(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        begun = time.perf_counter()
        instance = await started(host, "shell", workspace)
        to_start = time.perf_counter() - begun
        top = await asyncio.to_thread(instance.container.top)
        for process in top["Processes"] or []:
            with suppress(ProcessLookupError):  # a look at the module's health is over soon
                os.kill(int(process[1]), signal.SIGSTOP)
        assert await instance.why_lost() == "The module shell runs but no longer answers."
        begun = time.perf_counter()
        await instance.stop()
        # A second that it is given, and the engine's work, which takes as long here and now as what it did before.
        assert time.perf_counter() - begun < 1 + 5 * to_start
        await host.close()

    loop.run(scenario())


def test_a_module_that_fails_to_start_says_why(loop: asyncio.Runner, tmp_path: Path, workspace: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "broken", "raise RuntimeError('no such luck')\n")

    async def scenario() -> None:
        host = DockerHost(tmp_path, shipped=shipped)
        with pytest.raises(ModuleLost, match=r"The module broken ended with status 1.*no such luck"):
            await started(host, "broken", workspace)
        await host.close()

    loop.run(scenario())


def test_a_module_that_never_serves_is_given_up(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    source = "import time\nprint('warming up', flush=True)\ntime.sleep(3600)\n"
    shipped = write_module(tmp_path / "shipped", "silent", source)

    async def scenario() -> None:
        host = DockerHost(tmp_path, shipped=shipped, patience=1)
        with pytest.raises(ModuleLost, match=r"did not start within \d seconds.*warming up") as lost:
            await started(host, "silent", workspace)
        assert "warming up" in lost.value.log
        await host.close()

    loop.run(scenario())


@pytest.mark.parametrize(
    "trick",
    [
        "os.symlink('/var/run/docker.sock', path)",
        "os.symlink('/proc/1/fd/0', path)",
        "os.mkfifo(path)",
        "open(path, 'w').close()",
    ],
)
def test_a_false_socket_is_refused(loop: asyncio.Runner, tmp_path: Path, workspace: Path, trick: str) -> None:
    source = f"import os, time\npath = '/run/iact/module.sock'\n{trick}\ntime.sleep(3600)\n"
    shipped = write_module(tmp_path / "shipped", "liar", source)

    async def scenario() -> None:
        host = DockerHost(tmp_path, shipped=shipped)
        with pytest.raises(ModuleLost, match=r"The module.*socket"):
            await started(host, "liar", workspace)
        await host.close()

    loop.run(scenario())


def test_swapping_the_socket_later_changes_nothing(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    """The core holds the socket itself, not its name: a link put there later leads it nowhere."""

    async def scenario() -> None:
        host = DockerHost(tmp_path)
        instance = await started(host, "shell", workspace)
        swapped = await shell(
            instance, "rm /run/iact/module.sock && ln -s /var/run/docker.sock /run/iact/module.sock"
        )
        assert swapped.exit_status == 0
        assert (await shell(instance, "echo mine")).output == "mine\n"
        assert await instance.why_lost() is None
        await host.close()

    loop.run(scenario())


def test_a_cancelled_start_leaves_nothing(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        await host.open()
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(delay):
                    await started(host, "shell", workspace)
            assert containers(engine, tmp_path) == []
            assert folders(tmp_path) == []
        await host.close()

    loop.run(scenario())


def test_what_the_engine_can_t_freeze_is_killed(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With control groups of the first version, a busy container now and then resists."""

    def pause(container: Container) -> None:
        raise APIError("OCI runtime pause failed: unable to freeze")

    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            one = await host.start("shell", session="s", workspace=workspace, report=print)
            monkeypatch.setattr(Container, "pause", pause)
            await one.freeze()
            assert one.container.wait(timeout=60)["StatusCode"] == 137
            await one.stop()

    loop.run(scenario())


CHILD = """
import asyncio, sys
from pathlib import Path
from iact.sandbox import DockerHost

async def main():
    host = DockerHost(Path(sys.argv[1]))
    for right in ("look", "work"):
        one = await host.start("shell", session="child", workspace=Path(sys.argv[2]), report=lambda line: None, right=right)
    await one.freeze()
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_leftovers_of_a_killed_process_are_collected_and_those_of_a_live_one_are_not(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, workspace: Path
) -> None:
    """A viewer, a worker that is frozen, and the temporary files that they share."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"

        async def while_it_lives() -> None:
            host = await open_host(tmp_path, backend="docker")
            assert (len(containers(engine, tmp_path)), len(volumes(engine, tmp_path))) == (2, 1)
            await host.close()

        loop.run(while_it_lives())
        assert (len(containers(engine, tmp_path)), len(volumes(engine, tmp_path))) == (2, 1)
        child.kill()

    async def afterwards() -> None:
        other = DockerHost(tmp_path / "other")
        await other.open()
        assert (len(containers(engine, tmp_path)), len(volumes(engine, tmp_path))) == (2, 1), (
            "it belongs to another data directory"
        )
        await other.close()
        host = await open_host(tmp_path, backend="docker")
        assert containers(engine, tmp_path) == []
        assert volumes(engine, tmp_path) == []
        assert folders(tmp_path) == []
        await host.close()

    loop.run(afterwards())


def test_an_unknown_module_and_a_closed_host_are_named(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path)
        with pytest.raises(SandboxUnavailable, match=r"There is no module 'nonsense'; there are: .*shell"):
            await started(host, "nonsense", workspace)
        await host.close()
        with pytest.raises(SandboxUnavailable, match="closed"):
            await started(host, "shell", workspace)

    loop.run(scenario())


class EngineDoor:
    """A second door to the real engine, which can be shut as if the engine had gone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def shut(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection("/var/run/docker.sock")
        self._writers |= {writer, far_writer}
        with suppress(OSError):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(reader, far_writer))
                group.create_task(self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


def test_an_engine_that_goes_is_told_apart_from_a_failed_command(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        invoker = EngineDoor(tmp_path / "engine.sock")
        await invoker.open()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{invoker.path}")
        host = DockerHost(tmp_path)
        instance = await started(host, "shell", workspace)
        await invoker.shut()
        assert await instance.why_lost() is None, "it still serves"
        assert await started(host, "shell", workspace) is instance
        await asyncio.to_thread(engine.api.kill, instance.container.id or "")
        why = await instance.why_lost()
        assert why == "The Docker engine stopped answering, and so did the module shell."
        with pytest.raises(SandboxUnavailable, match=r"No Docker engine answers.*apt-get install"):
            await started(host, "shell", workspace, "another")
        await host.close()  # it can't remove the container now, and doesn't fail on it

    loop.run(scenario())
    assert len(containers(engine, tmp_path)) == 1
    sweep(engine, tmp_path)


def test_without_an_engine_modules_are_off_and_the_reason_is_told(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("PATH", str(tmp_path))  # no bubblewrap either

    async def scenario() -> None:
        host = await open_host(tmp_path)
        assert host.backend == "off"
        assert isinstance(host, DisabledHost)
        with pytest.raises(SandboxUnavailable, match=r"No Docker engine answers"):
            await host.catalogue()
        with pytest.raises(SandboxUnavailable, match=r"No Docker engine answers.*apt-get install docker\.io"):
            await host.start("shell", session="s", workspace=workspace, report=print)
        with pytest.raises(SandboxUnavailable):
            await open_host(tmp_path, backend="docker")
        await host.close()

    loop.run(scenario())
