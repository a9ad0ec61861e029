"""`python -m ext_modules.sdk serve`, as the sandbox starts it, driven by the core's own client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import grpc.aio
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from iact.core.modules.client import (
    ArtifactChunk,
    Attached,
    Completed,
    Invocation,
    ModuleClient,
    Outcome,
    Progress,
    Raised,
    SentArtifact,
    StateChange,
    TimedOut,
)
from iact.core.modules.outcome import ModuleAsk, ModuleReply, SendReply
from iact.core.ports import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from protos.iact.ext_module.v1 import ext_module_pb2_grpc as stubs

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "ext_modules/shell/module.py"
PROBE = ROOT / "tests/ext_modules/probe.py"


@contextlib.contextmanager
def served(module: Path) -> Iterator[str]:
    """A module in a process of its own, with nothing of ours in its environment; gives its target."""
    with tempfile.TemporaryDirectory() as directory:
        target = f"{directory}/s"
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "IACT_WORKSPACE": directory}
        process = subprocess.Popen(
            [sys.executable, "-m", "ext_modules.sdk", "serve", str(module), "--socket", target],
            stdout=subprocess.PIPE, text=True, env=environment, cwd=directory,
        )  # fmt: skip
        try:
            yield f"unix:{target}"
        finally:
            process.terminate()
            output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert f"serving on {target}" in output


@pytest.fixture(scope="module")
def shell() -> Iterator[str]:
    with served(SHELL) as target:
        yield target


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    with served(ROOT / "ext_modules/files/module.py") as target:
        yield target


@pytest.fixture(scope="module")
def probe() -> Iterator[str]:
    with served(PROBE) as target:
        yield target


def through(target: str, play: Callable[[ModuleClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with asyncio.timeout(300), ModuleClient(target) as client:
            await client.wait_serving(20)
            return await play(client)

    return asyncio.run(run())


def invoke(
    target: str,
    function: str,
    arguments: dict[str, JSON] | None = None,
    *,
    agent: str = "/",
    timeout: float = 20,
) -> Outcome:
    invocation = Invocation("1", "s", agent, function, arguments or {})
    return through(target, lambda client: client.invoke(invocation, timeout=timeout))


def test_the_shell_from_description_to_result(shell: str) -> None:
    heard: list[str] = []

    async def play(client: ModuleClient) -> Outcome:
        manifest = await client.describe()
        function = manifest.functions[0]
        assert (manifest.name, manifest.version, function.name, function.alias) == (
            "shell",
            "0.1.0",
            "run",
            "BASH",
        )
        assert (function.body, function.impact, function.exclusive, function.idempotent) == (
            "command",
            1,
            True,
            False,
        )
        assert manifest.needs.workspace == "write"
        assert manifest.needs.memory_bytes == 512 << 20
        assert {"disk", "file", "kernel", "date", "count"} <= set(manifest.keywords)
        invocation = Invocation("1", "s", "/", "run", {"command": "echo hello; exit 3"})
        return await client.invoke(invocation, timeout=20, on_output=heard.append)

    outcome = through(shell, play)
    assert isinstance(outcome, Completed)
    assert outcome.output == "".join(heard) == "hello\n"
    assert outcome.data["exit_status"] == 3


def test_cancelling_kills_what_the_call_started(shell: str) -> None:
    mark = str(500_000 + os.getpid())

    async def play(client: ModuleClient) -> float:
        begun = asyncio.Event()
        invocation = Invocation(
            "1", "s", "/c", "run", {"command": f"echo begun; env -i setsid sleep {mark} & sleep {mark}"}
        )
        task = asyncio.ensure_future(client.invoke(invocation, timeout=20, on_output=lambda _: begun.set()))
        await begun.wait()
        await _until(lambda: _running(mark) == 2)
        task.cancel()
        at = time.monotonic()
        await _until(lambda: _running(mark) == 0)
        return time.monotonic() - at

    assert through(shell, play) < 2


def _running(mark: str) -> int:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes())
    return sum(line == f"sleep\0{mark}\0".encode() for line in lines)


async def _until(true: Callable[[], bool]) -> None:
    """Wait for a fact of the system, ten seconds at most."""
    async with asyncio.timeout(300):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_reflection_lists_the_services(shell: str) -> None:
    async def list_services() -> set[str]:
        async with grpc.aio.insecure_channel(shell) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            requests = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            async for response in stub.ServerReflectionInfo(requests, wait_for_ready=True, timeout=20):
                return {service.name for service in response.list_services_response.service}
        return set()

    names = asyncio.run(list_services())
    assert {"iact.ext_module.v1.ExtModule", "grpc.health.v1.Health"} <= names


def test_content_goes_in_and_out_by_value(probe: str) -> None:
    content = os.urandom(3_000_000)
    pieces: list[ArtifactChunk] = []
    progress: list[Progress] = []

    async def keep(chunk: ArtifactChunk) -> None:
        pieces.append(chunk)

    async def play(client: ModuleClient) -> Outcome:
        values = (
            Attached("content", "application/x-any", content, "in.bin"),
            Attached("text", "text/plain", "é".encode() * 1000),
            Attached("numbers", "application/json", b"[1, 2, 3]"),
        )
        invocation = Invocation("1", "s", "/", "measure", {}, values)
        return await client.invoke(invocation, timeout=20, on_artifact=keep, on_progress=progress.append)

    outcome = through(probe, play)
    assert isinstance(outcome, Completed)
    assert outcome.artifacts == (SentArtifact("1", "copy.bin", "application/x-copy", len(content)),)
    assert (outcome.artifact, outcome.output, outcome.data) == ("1", "", {"text": 1000, "sum": 6})
    assert b"".join(piece.data for piece in pieces) == content
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert progress == [Progress("measuring", 0.5)]


def asked(probe: str, reply: ModuleReply, on: list[ModuleAsk]) -> Outcome:
    """What comes of a call that asks a person."""

    async def ask(said: ModuleAsk, send: SendReply) -> None:
        on.append(said)
        await send(reply)
        await send(ModuleReply("accept", {"town": "late"}))  # the first answer counts

    async def play(client: ModuleClient) -> Outcome:
        invocation = Invocation("1", "s", "/", "ask", {"message": "Where to?"})
        return await client.invoke(invocation, timeout=20, on_ask=ask)

    return through(probe, play)


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        (ModuleReply("accept", {"town": "Oslo"}), "accept {'town': 'Oslo'}"),
        (ModuleReply("decline"), "decline {}"),
        (ModuleReply("cancel", reason="Nobody is there."), "cancel {} Nobody is there."),
    ],
)
def test_a_call_asks_a_person_and_hears_what_became_of_it(probe: str, reply: ModuleReply, heard: str) -> None:
    on: list[ModuleAsk] = []
    outcome = asked(probe, reply, on)
    assert isinstance(outcome, Completed)
    assert outcome.output == heard
    (said,) = on
    assert said.message == "Where to?"
    assert json.loads(said.schema)["properties"] == {"town": {"type": "string"}}


def test_a_question_that_can_not_be_put_is_an_error_of_the_function(probe: str) -> None:
    outcome = asked(probe, ModuleReply("refused", reason="That is no form."), [])
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.message) == ("AskRefused", "That is no form.")


def test_where_nobody_listens_a_call_is_told_that_nobody_is_there(probe: str) -> None:
    outcome = invoke(probe, "ask", {"message": "Where to?"})
    assert isinstance(outcome, Completed)
    assert outcome.output == "cancel {} There is nobody to ask."


def test_states_change_what_is_offered(probe: str) -> None:
    on, again = invoke(probe, "turn_on", agent="/states"), invoke(probe, "turn_on", agent="/states")
    assert isinstance(on, Completed)
    assert (on.output, on.state) == ("It is on now.", StateChange("on", (), "the light is green"))
    assert isinstance(again, Raised)
    assert again.type == "NotOffered"
    assert "offered now: measure, turn_off_later" in again.message


def test_watching_tells_of_changes_that_happen_by_themselves(probe: str) -> None:
    async def watch() -> list[str]:
        seen: list[str] = []
        async with grpc.aio.insecure_channel(probe) as channel, asyncio.timeout(300):
            stub = stubs.ExtModuleStub(channel)
            async for change in stub.Watch(pb.WatchRequest(session="s", agent="/w"), wait_for_ready=True):
                seen.append(change.state)
                if len(seen) == 1:
                    await _invoke(stub, "turn_on")
                elif len(seen) == 2:
                    await _invoke(stub, "turn_off_later")
                else:
                    return seen
        return seen

    assert asyncio.run(watch()) == ["off", "on", "off"]


async def _invoke(stub: stubs.ExtModuleStub, function: str) -> None:
    async for _ in stub.Invoke(pb.InvokeRequest(session="s", agent="/w", function=function), timeout=20):
        pass


def test_a_module_without_states_can_not_be_watched(files: str) -> None:
    async def watch() -> grpc.StatusCode:
        async with grpc.aio.insecure_channel(files) as channel:
            call = stubs.ExtModuleStub(channel).Watch(pb.WatchRequest(), wait_for_ready=True, timeout=20)
            return await call.code()

    assert asyncio.run(watch()) is grpc.StatusCode.UNIMPLEMENTED


def test_what_a_function_raises_arrives_raw(probe: str) -> None:
    outcome = invoke(probe, "raise_error")
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.message) == ("KeyError", "'no such key'")
    assert 'probe.py", line' in outcome.trace
    assert outcome.trace.endswith("KeyError: 'no such key'\n")


def test_a_deadline_reaches_the_function(probe: str) -> None:
    async def play(client: ModuleClient) -> Outcome:
        waiting = await client.invoke(Invocation("1", "s", "/d", "report_cancel"), timeout=0.3)
        assert waiting == TimedOut("waiting")
        async with asyncio.timeout(5):
            while True:
                said = await client.invoke(Invocation("2", "s", "/d", "was_cancelled"), timeout=5)
                if said == Completed("true", "application/json", {}, None, (), None):
                    return said

    assert isinstance(through(probe, play), Completed)


@pytest.mark.parametrize("arguments", ["{", "[]", "[" * 100_000])
def test_arguments_that_are_no_object(probe: str, arguments: str) -> None:
    async def run() -> pb.InvokeEvent:
        async with grpc.aio.insecure_channel(probe) as channel:
            request = pb.InvokeRequest(function="measure", arguments_json=arguments)
            events = [
                event
                async for event in stubs.ExtModuleStub(channel).Invoke(
                    request, wait_for_ready=True, timeout=20
                )
            ]
            return events[-1]

    assert asyncio.run(run()).error.type == "BadArguments"


def test_a_module_runs_from_any_directory_with_its_own_files(tmp_path: Path) -> None:
    """In the sandbox the module's folder is mounted alone."""
    shutil.copytree(SHELL.parent, tmp_path / "module")
    with served(tmp_path / "module/module.py") as target:
        outcome = invoke(target, "shell.run", {"command": "echo $((1+1))"})
    assert isinstance(outcome, Completed)
    assert outcome.output == "2\n"


@pytest.mark.parametrize(
    ("source", "toml", "says"),
    [
        ("", "", "must define exactly one Module"),
        ("1/0", "", "ZeroDivisionError"),
        ("from ext_modules.sdk import Module\nm = Module('a', '')\nn = Module('b', '')", "", "it defines 2"),
        ("from ext_modules.sdk import Module\nm = Module('a', '')", "name = 'b'", "is about 'b'"),
        (
            "from ext_modules.sdk import Module\nm = Module('a', '')",
            "[needs]\nmemory = 'much'",
            "write a number of bytes",
        ),
        ("from ext_modules.sdk import Module\nm = Module('a', '')", "[needs]\nworkspace = 'all'", "must be"),
        (
            "from ext_modules.sdk import Module\nm = Module('a', '')",
            "[needs]\negress = 'x'",
            "list of strings",
        ),
    ],
)
def test_a_module_that_can_not_be_served_says_why(tmp_path: Path, source: str, toml: str, says: str) -> None:
    (tmp_path / "module.py").write_text(source)
    (tmp_path / "module.toml").write_text(toml)
    command = [sys.executable, "-m", "ext_modules.sdk", "serve", "module.py", "--socket", str(tmp_path / "s")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert says in done.stderr


def test_a_socket_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ext_modules.sdk",
        "serve",
        str(SHELL),
        "--socket",
        str(tmp_path / "no/s"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "can't be made" in done.stderr
