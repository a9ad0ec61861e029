"""A real engine, one host and one shell for the tests of a file, because starting containers takes most of the time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import docker
import pytest
from docker.errors import APIError

from iact.core.errors import SandboxUnavailable
from iact.sandbox import owner, reaper, socket_folder
from iact.sandbox.docker.engine import connect
from iact.sandbox.live import collect
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, OwnEngine, present


def sweep(engine: docker.DockerClient, data: Path) -> None:
    """Remove every container and socket folder of data directory `data`, whoever owns them."""
    chosen = {"label": f"{owner.OWNER}={owner.data_digest(data)}"}
    for item in engine.api.containers(all=True, filters=chosen):
        with suppress(APIError):
            engine.api.remove_container(item["Id"], force=True, v=True)
    for item in engine.api.volumes(filters=chosen)["Volumes"] or []:
        with suppress(APIError):
            engine.api.remove_volume(item["Name"], force=True)
    place = reaper.sockets(data)
    for folder in place.iterdir() if place.is_dir() else ():
        socket_folder.remove(folder)


_ABANDONED = 3600.0
"""Seconds after which a container without the name of a folder is abandoned, if its process is gone."""


def _live_runs(runs: Path) -> set[Path]:
    """The folders below `runs` of running test runs. Pytest writes its process id to `.lock` in each."""
    found = set()
    for lock in runs.glob("*/.lock"):
        with suppress(OSError, ValueError):
            if owner.start_time(int(lock.read_text(encoding="ascii"))):
                found.add(lock.parent)
    return found


@pytest.fixture(scope="session", autouse=True)
def _no_leftovers_of_killed_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Remove what earlier runs of these tests left behind when they were killed. Their data is never opened again.

    Other workers of this run, and other runs, may be in the middle of a test that kills a process itself.
    """
    base = tmp_path_factory.getbasetemp()
    runs = base.parent.parent if "PYTEST_XDIST_WORKER" in os.environ else base.parent
    going_on = _live_runs(runs)

    def left(place: Path) -> bool:
        return place.is_relative_to(runs) and not any(place.is_relative_to(run) for run in going_on)

    for run in runs.iterdir():
        if run not in going_on and not run.is_symlink():
            collect(run)
    with suppress(SandboxUnavailable):
        client = connect()
        for item in client.api.containers(all=True, filters={"label": owner.OWNER}):
            process = owner.process_of(item["Labels"])
            mounted = any(left(Path(str(mount.get("Source", "")))) for mount in item["Mounts"])
            if mounted and process is not None and not process.alive:
                with suppress(APIError):
                    client.api.remove_container(item["Id"], force=True, v=True)
        for item in client.api.volumes(filters={"label": owner.OWNER})["Volumes"] or []:
            process = owner.process_of(item["Labels"])
            age = time.time() - datetime.fromisoformat(item["CreatedAt"]).timestamp()
            if process is not None and not process.alive and age > _ABANDONED:
                with suppress(APIError):
                    client.api.remove_volume(item["Name"], force=True)
        client.close()
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        folder = Path(line.split()[1])
        claim, numbered, _ = folder.name.partition("@")
        if left(folder) and numbered and not owner.holds(folder.parent.parent, claim):
            socket_folder.remove(folder)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all tests of a file, so that they can share objects on it."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def own_engine() -> Iterator[OwnEngine]:
    made = OwnEngine()
    yield made
    made.close()


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest, own_engine: OwnEngine) -> Iterator[Backend]:
    """The machine's own engine. In files marked with `each_backend`, one backend after another."""
    with present(getattr(request, "param", "docker"), own_engine) as found:
        yield found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Path:
    return tmp_path_factory.mktemp(f"data-{backend.name}")


@pytest.fixture(scope="module")
def workspace(data: Path) -> Path:
    """A workspace in the place where sessions have theirs, so that it counts as ours."""
    folder = data / "sessions" / "one" / "workspace"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def host(loop: asyncio.Runner, data: Path, backend: Backend) -> Iterator[AnyHost]:
    made = backend.host(data)
    yield made
    loop.run(made.close())


@pytest.fixture
def shell_module(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend, request: pytest.FixtureRequest
) -> Iterator[AnyInstance]:
    """One shell for a file. Under gVisor, where a fork bomb may end the sandbox too, one for each test."""
    own = backend.kind == "gvisor"
    session = f"of-{request.node.name}"[:60] if own else "one"
    yield loop.run(backend.start(host, "shell", session=session, workspace=workspace))
    if own:
        loop.run(host.end_session(session))
