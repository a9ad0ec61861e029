"""Code that tries to use up the machine ends in an error for its own call; the next call works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.sandbox.backends import AnyHost, AnyInstance, Backend, each_backend
from tests.sandbox.calling import Outcome, python, shell

pytestmark = each_backend


@pytest.fixture(autouse=True)
def _next_call_works(
    loop: asyncio.Runner, host: AnyHost, shell_module: AnyInstance, backend: Backend, workspace: Path
) -> Iterator[None]:
    """In the same module; under gVisor a bomb may take its kernel along, and the next call gets another."""
    yield
    serving = shell_module
    if backend.kind == "gvisor" and loop.run(shell_module.why_lost()) is not None:
        session = shell_module.session
        serving = loop.run(backend.start(host, "shell", session=session, workspace=workspace))
    outcome = loop.run(shell(serving, "rm -rf /tmp/* /workspace/*; echo alive"))
    assert outcome.output.strip().endswith("alive"), outcome
    assert loop.run(serving.why_lost()) is None


async def bomb(module: AnyInstance, script: str, backend: Backend) -> Outcome:
    """Run a bomb; under gVisor that the module is gone is an outcome, too."""
    try:
        return await shell(module, script)
    except grpc.aio.AioRpcError:
        assert backend.kind == "gvisor"
        return Outcome("", None, "lost")


def test_fork_bomb(loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend) -> None:
    script = """
import os, signal
children, refused = [], False
while not refused and len(children) < 5000:
    try:
        pid = os.fork()
    except OSError:
        refused = True
        continue
    if pid == 0:
        signal.pause()
    children.append(pid)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(refused, len(children))
"""
    outcome = loop.run(bomb(shell_module, f"python3 - <<'END'\n{script}\nEND", backend))
    if outcome.error == "lost":
        return
    refused, count = outcome.output.split()
    assert refused == "True"
    assert int(count) < 256


def test_a_fork_bomb_is_ended_with_its_call(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    if loop.run(bomb(shell_module, "b() { b | b & }; b 2>/dev/null; sleep 1", backend)).error == "lost":
        return
    outcome = loop.run(shell(shell_module, "ps ax | wc -l"))
    assert int(outcome.output) < 20


def test_memory_bomb(loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend) -> None:
    script = "python3 -c 'x = []\nwhile True: x.append(bytearray(16 << 20))'"
    outcome = loop.run(bomb(shell_module, script, backend))
    assert outcome.error == "lost" or outcome.exit_status not in (0, None), outcome


def test_temporary_files_are_bounded_in_size(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    outcome = loop.run(shell(shell_module, "head -c 1G /dev/zero > /tmp/fill; wc -c < /tmp/fill"))
    assert "No space left on device" in outcome.output
    assert int(outcome.output.split()[-1]) <= 256 << 20


def test_temporary_files_are_bounded_in_number(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    """gVisor, and bubblewrap for an ordinary user, bound their size alone, and what they take of memory."""
    script = """
import os
os.mkdir("/tmp/many")
made = 0
try:
    for made in range(100_000):
        open(f"/tmp/many/{made}", "x").close()
except OSError as error:
    print(made, error.strerror)
"""
    outcome = loop.run(bomb(shell_module, f"python3 - <<'END'\n{script}\nEND", backend))
    if backend.kind == "gvisor" or (backend.kind == "bubblewrap" and os.geteuid() != 0):
        return
    made, why = outcome.output.strip().split(" ", 1)
    assert int(made) < 32_768
    assert why == "No space left on device"


def test_socket_folder_holds_nothing_else(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    outcome = loop.run(shell(shell_module, "head -c 1M /dev/zero > /run/iact/fill; rm -f /run/iact/fill"))
    assert "No space left on device" in outcome.output


def test_one_file_is_bounded(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    outcome = loop.run(shell(shell_module, "truncate -s 2G /workspace/huge; echo $?"))
    assert outcome.output.strip().endswith(("1", "153")), outcome  # an error, or the signal SIGXFSZ


def test_open_files_are_bounded(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = """
import os
files = []
try:
    while len(files) < 100_000:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print(len(files))
"""
    assert int(loop.run(python(shell_module, script))) <= 1024
