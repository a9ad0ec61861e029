"""Code that tries to use up the machine ends in an error for its own call; the next call works."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.docker_host import DockerInstance
from tests.sandbox.calling import python, shell


@pytest.fixture(autouse=True)
def _next_call_works(loop: asyncio.Runner, shell_module: DockerInstance) -> object:
    yield None
    outcome = loop.run(shell(shell_module, "rm -rf /tmp/* /workspace/*; echo alive"))
    assert outcome.output.strip().endswith("alive"), outcome
    assert loop.run(shell_module.why_lost()) is None


def test_fork_bomb(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
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
    refused, count = loop.run(python(shell_module, script)).split()
    assert refused == "True"
    assert int(count) < 256


def test_a_fork_bomb_is_ended_with_its_call(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
    loop.run(shell(shell_module, "b() { b | b & }; b 2>/dev/null; sleep 1"))
    outcome = loop.run(shell(shell_module, "ps ax | wc -l"))
    assert int(outcome.output) < 20


def test_memory_bomb(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
    script = "python3 -c 'x = []\nwhile True: x.append(bytearray(16 << 20))'"
    outcome = loop.run(shell(shell_module, script))
    assert outcome.exit_status not in (0, None), outcome


def test_temporary_files_are_bounded_in_size(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
    outcome = loop.run(shell(shell_module, "head -c 1G /dev/zero > /tmp/fill; stat -c %s /tmp/fill"))
    assert "No space left on device" in outcome.output
    assert int(outcome.output.split()[-1]) <= 256 << 20


def test_temporary_files_are_bounded_in_number(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
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
    made, why = loop.run(python(shell_module, script)).split(" ", 1)
    assert int(made) < 32_768
    assert why == "No space left on device"


def test_socket_folder_holds_nothing_else(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
    outcome = loop.run(shell(shell_module, "head -c 1M /dev/zero > /run/iact/fill; rm -f /run/iact/fill"))
    assert "No space left on device" in outcome.output


def test_one_file_is_bounded(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
    outcome = loop.run(shell(shell_module, "truncate -s 2G /workspace/huge; echo $?"))
    assert outcome.output.strip().endswith(("1", "153")), outcome  # an error, or the signal SIGXFSZ


def test_open_files_are_bounded(loop: asyncio.Runner, shell_module: DockerInstance) -> None:
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
