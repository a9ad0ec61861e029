"""Calls a running module over its socket with the bare protocol, as `core` would, but with no check in between."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from iact.core.errors import SandboxUnavailable
from iact.core.ports import ModuleInstance
from iact.sandbox.bubblewrap import system_folder
from iact.sandbox.bubblewrap.host import check as check_bubblewrap
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from protos.iact.ext_module.v1 import ext_module_pb2_grpc as rpc


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of `shell.run` gave. `exit_status`: None if it ended with an error instead."""

    output: str
    exit_status: int | None
    error: str = ""


async def shell(instance: ModuleInstance, script: str, *, seconds: float = 60, agent: str = "/") -> Outcome:
    """Run `script` with bash in the container of a shell module. `agent`: whose call it is; one's come in turn."""
    async with grpc.aio.insecure_channel(instance.target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub = rpc.ExtModuleStub(channel)
        manifest = await stub.Describe(pb.DescribeRequest(), timeout=10)
        function = next(each for each in manifest.functions if each.alias == "BASH")
        request = pb.InvokeRequest(
            call_id="test",
            session="test",
            agent=agent,
            function=function.name,
            arguments_json=json.dumps({function.body_parameter: script}),
            timeout_ms=int(seconds * 1000),
        )
        output: list[str] = []
        async for event in stub.Invoke(request, timeout=seconds):
            kind = event.WhichOneof("event")
            if kind == "output":
                output.append(event.output.text)
            elif kind == "result":
                data = json.loads(event.result.data_json or "{}")
                return Outcome("".join(output), int(data["exit_status"]))
            elif kind == "error":
                return Outcome("".join(output), None, f"{event.error.type}: {event.error.message}")
    raise AssertionError("the stream ended without a result")


async def python(instance: ModuleInstance, script: str) -> str:
    """Run a Python `script` in the container of a shell module; its output, once it ended well."""
    outcome = await shell(instance, f"python3 - <<'END_OF_SCRIPT'\n{script}\nEND_OF_SCRIPT\n")
    assert outcome.exit_status == 0, outcome
    return outcome.output.strip()


def need_bubblewrap() -> None:
    """Skip where there is none: a kernel that gives no name spaces, a user who can't make a system of packages.

    Root can make one (the set-up installs what that takes), so there its failure is a failure.
    """
    try:
        check_bubblewrap()
        if os.geteuid() != 0:
            system_folder.ensure(print)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    system_folder.ensure(print)


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 300) -> None:
    """Wait until `condition` holds, looking again and again, but not for ever."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - what is waited for happens in the engine
            await asyncio.sleep(0.05)


def write_module(
    folder: Path, name: str, source: str, *, needs: str = 'workspace = "none"', requirements: str = "[]"
) -> Path:
    """Write a module of a test's own below `folder`; gives `folder`."""
    (folder / name).mkdir(parents=True)
    (folder / name / "module.py").write_text(source, encoding="utf-8")
    card = f'name = "{name}"\nsummary = "A module for a test."\nrequirements = {requirements}\n\n[needs]\n{needs}\n'
    (folder / name / "module.toml").write_text(card, encoding="utf-8")
    return folder
