"""An engine that fails, hangs or loses its answer at each of its requests: a sentence, in bounded time, and nothing is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import docker
import pytest

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.sandbox import DockerHost, leftovers
from iact.sandbox.docker import engine as engine_connection
from iact.sandbox.docker import host as docker_host
from iact.sandbox.docker import refused, removal
from tests.sandbox.calling import shell, until
from tests.sandbox.faulty_engine import FAULTS, Fault, FaultyEngine
from tests.sandbox.test_lifecycle import containers, folders, volumes

_ANSWERS = 2
"""Seconds that a request may take here. A hanging engine is waited for as often as it is asked."""
_BOUND = 120
"""Seconds in which a start, a call and a removal must be over, whatever the engine does."""


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = engine_connection.connect
    monkeypatch.setattr(docker_host, "connect", lambda: connect(timeout=_ANSWERS))
    monkeypatch.setattr(removal, "_ENGINE_PATIENCE", 3 * _ANSWERS)
    monkeypatch.setattr(removal, "_ENDS_ANYWAY", _ANSWERS)
    monkeypatch.setattr(refused, "_FIRST_WAIT", 0.1)
    monkeypatch.setattr(refused, "_LONGEST_WAIT", 0.5)


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultyEngine:
    made = FaultyEngine(tmp_path / "engine.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.path}")
    return made


async def _used(data: Path) -> list[str]:
    """Start a module, call it, and remove it; twice, the second time without what went wrong. What was said of it."""
    workspace = data / "sessions" / "one" / "workspace"
    workspace.mkdir(parents=True)
    host = DockerHost(data)
    said = list[str]()
    try:
        for _ in range(2):
            try:
                instance = await host.start(
                    "shell", session="one", workspace=workspace, report=lambda line: None
                )
                assert (await shell(instance, "echo here")).output == "here\n"
            except (SandboxUnavailable, ModuleLost) as error:
                said.append(str(error))
            else:
                await instance.stop()
        await until(lambda: _settled(host))
    finally:
        await host.close()
    return said


async def _settled(host: DockerHost) -> bool:
    """Whether what the engine refused has been removed."""
    return host._refused.empty


def _is_a_sentence(said: str) -> bool:
    return "\n" not in said and said.endswith(".") and "Traceback" not in said and len(said) < 500


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("fault", FAULTS)
def test_one_request_goes_wrong(
    loop: asyncio.Runner, engine: docker.DockerClient, tmp_path: Path, door: FaultyEngine, fault: Fault
) -> None:
    async def scenario() -> None:
        async with door.open():
            door.begin()
            assert await _used(tmp_path / "well") == []
            requests = list(door.asked)
            for number in range(1, len(requests) // 2 + 1):
                data = tmp_path / str(number)
                door.begin(fault, number)
                async with asyncio.timeout(_BOUND):
                    said = await _used(data)
                where = f"{fault} at {number}, {requests[number - 1]}"
                assert len(said) <= 1, (where, said)
                assert all(_is_a_sentence(one) for one in said), (where, said)
                left = containers(engine, data), volumes(engine, data), folders(data)
                assert left == ([], [], []), where

    loop.run(scenario())


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("part", ["start", "call", "removal"])
def test_an_engine_that_goes_wrong_from_one_request_on_leaves_what_the_doctor_removes(
    loop: asyncio.Runner,
    engine: docker.DockerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    door: FaultyEngine,
    fault: Fault,
    part: str,
) -> None:
    workspace = tmp_path / "sessions" / "one" / "workspace"
    workspace.mkdir(parents=True)

    async def scenario() -> None:
        async with door.open(), asyncio.timeout(_BOUND):
            host = DockerHost(tmp_path)
            await host.open()
            if part == "start":
                door.begin(fault, 1, lasting=True)
                with pytest.raises((SandboxUnavailable, ModuleLost)) as told:
                    await host.start("shell", session="one", workspace=workspace, report=print)
                assert _is_a_sentence(str(told.value))
            else:
                instance = await host.start("shell", session="one", workspace=workspace, report=print)
                door.begin(fault, 1, lasting=True)
                if part == "call":
                    assert (await shell(instance, "echo here")).output == "here\n", "a call needs no engine"
                await instance.stop()
            await host.close()

    loop.run(scenario())
    monkeypatch.delenv("DOCKER_HOST")
    leftovers.remove([tmp_path])
    assert not leftovers.find([tmp_path])
    assert (containers(engine, tmp_path), volumes(engine, tmp_path), folders(tmp_path)) == ([], [], [])
