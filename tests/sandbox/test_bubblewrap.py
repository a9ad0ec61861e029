"""What the bubblewrap backend does in its own way; what every backend must do is tested for it with the others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.sandbox import BubblewrapHost, DisabledHost, open_host
from iact.sandbox.bubblewrap.host import WEAKER, BubblewrapInstance
from iact.sandbox.secrets import Secrets
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from protos.iact.ext_module.v1 import ext_module_pb2_grpc as rpc
from tests.sandbox.calling import need_bubblewrap, python, shell, until, write_module
from tests.sandbox.inside import called
from tests.sandbox.outside import PUBLIC, echo, internet
from tests.sandbox.test_egress_inside import VISITOR
from tests.sandbox.test_lifecycle import folders


@pytest.fixture(scope="module", autouse=True)
def _there_is_one() -> None:
    need_bubblewrap()


@pytest.fixture(scope="module")
def bubble(loop: asyncio.Runner, data: Path) -> Iterator[BubblewrapHost]:
    made = BubblewrapHost(data)
    yield made
    loop.run(made.close())


@pytest.fixture(scope="module")
def shell_module(loop: asyncio.Runner, bubble: BubblewrapHost, workspace: Path) -> BubblewrapInstance:
    return loop.run(bubble.start("shell", session="one", workspace=workspace, report=print))


def running(mark: str) -> list[int]:
    """The processes of this machine with `mark` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_commands_run_and_tell_their_status(loop: asyncio.Runner, shell_module: BubblewrapInstance) -> None:
    outcome = loop.run(shell(shell_module, "echo out; echo err >&2; exit 3"))
    assert (sorted(outcome.output.split()), outcome.exit_status) == (["err", "out"], 3)


def test_nothing_came_along_from_our_environment(
    loop: asyncio.Runner, shell_module: BubblewrapInstance
) -> None:
    assert loop.run(python(shell_module, "print(open('/proc/1/environ').read() == '')")) == "True"


def test_it_is_nobody_inside_and_we_outside(
    loop: asyncio.Runner, shell_module: BubblewrapInstance, workspace: Path
) -> None:
    outcome = loop.run(shell(shell_module, "id -u; id -g; touch /workspace/mine"))
    assert outcome.output.split() == ["65534", "65534"]
    assert (workspace / "mine").stat().st_uid == os.geteuid()


def test_what_is_mounted_can_be_written_nowhere_else(
    loop: asyncio.Runner, shell_module: BubblewrapInstance
) -> None:
    script = """
import os
lines = [line.split() for line in open("/proc/self/mountinfo")]
writable = [line[4] for line in lines if line[5].startswith("rw") and os.path.isdir(line[4])]
print(*sorted(set(writable)))
"""
    found = set(loop.run(python(shell_module, script)).split())
    assert found <= {"/proc", "/dev/pts", "/tmp", "/run/iact", "/workspace"}


def test_output_streams_and_a_cancelled_call_takes_its_processes_along(
    loop: asyncio.Runner, shell_module: BubblewrapInstance
) -> None:
    """The call would run for an hour, so whatever comes of it came before its end."""
    mark = f"4242.{os.getpid()}"
    script = f"sleep {mark} & (setsid sleep {mark} &); echo begun; sleep {mark}"

    async def scenario() -> None:
        async with grpc.aio.insecure_channel(
            shell_module.target, options=[("grpc.enable_http_proxy", 0)]
        ) as channel:
            stub = rpc.ExtModuleStub(channel)
            manifest = await stub.Describe(pb.DescribeRequest(), timeout=30)
            function = next(each for each in manifest.functions if each.alias == "BASH")
            text = f'{{"{function.body_parameter}": "{script}"}}'
            request = pb.InvokeRequest(
                call_id="c",
                session="s",
                agent="/",
                function=function.name,
                arguments_json=text,
                timeout_ms=3_600_000,
            )
            call = stub.Invoke(request)
            async with asyncio.timeout(300):
                async for event in call:
                    if "begun" in event.output.text:
                        break
                await until(lambda: there(f"sleep\0{mark}"), seconds=30)
            call.cancel()
            await until(lambda: gone(f"sleep\0{mark}"), seconds=60)

    loop.run(scenario())


async def there(mark: str) -> bool:
    return len(running(mark)) >= 3


async def gone(mark: str) -> bool:
    return not running(mark)


def test_it_can_be_started_again_when_it_was_killed_and_leaves_nothing(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    async def scenario() -> None:
        host = BubblewrapHost(tmp_path)
        try:
            first = await host.start("shell", session="s", workspace=workspace, report=print)
            assert await host.start("shell", session="s", workspace=workspace, report=print) is first
            first.jail.process.kill()
            await first.jail.process.wait()
            assert "module shell ended with status" in str(await first.why_lost())
            second = await host.start("shell", session="s", workspace=workspace, report=print)
            assert (await shell(second, "echo again")).output == "again\n"
            group = second.jail.group
            await host.end_session("s")
            assert second.jail.process.returncode is not None
            assert not any(folder.exists() for folder in group.folders)
        finally:
            await host.close()

    loop.run(scenario())
    assert folders(tmp_path) == []


def test_a_module_that_fails_to_start_says_why(loop: asyncio.Runner, tmp_path: Path, workspace: Path) -> None:
    shipped = write_module(tmp_path / "m", "broken", "raise RuntimeError('no luck today')\n")

    async def scenario() -> None:
        host = BubblewrapHost(tmp_path / "data", shipped=shipped)
        try:
            with pytest.raises(ModuleLost, match="no luck today"):
                await host.start("broken", session="s", workspace=workspace, report=print)
        finally:
            await host.close()

    loop.run(scenario())
    assert folders(tmp_path / "data") == []


CHILD = """
import asyncio, sys
from pathlib import Path
from iact.sandbox import BubblewrapHost

async def main():
    host = BubblewrapHost(Path(sys.argv[1]))
    instance = await host.start("shell", session="s", workspace=Path(sys.argv[2]), report=lambda line: None)
    print("up", instance.jail.process.pid, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def test_it_dies_with_us_even_when_we_are_killed(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        said = child.stdout.readline().split()
        assert said[:1] == [b"up"]
        jail = int(said[1])
        assert b"bwrap" in Path(f"/proc/{jail}/cmdline").read_bytes()
        child.kill()

    async def afterwards() -> None:
        async def ended() -> bool:
            return not folder_of(jail)

        await until(ended, seconds=60)
        host = BubblewrapHost(tmp_path)
        await host.open()
        await host.close()

    loop.run(afterwards())
    assert folders(tmp_path) == []


def folder_of(pid: int) -> str:
    """The program that process `pid` runs; "" if it is gone or a zombie."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


SECRETIVE = '''
import os
from ext_modules.sdk import Module

module = Module("secretive", "Has a secret.")

@module.function(impact=0)
def told() -> str:
    """What it was told."""
    return os.environ["TOKEN"][::-1]
'''


def test_a_secret_is_told_and_shows_in_no_list_of_processes(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    shipped = write_module(
        tmp_path / "m", "secretive", SECRETIVE, needs='workspace = "none"\nsecrets = ["TOKEN"]'
    )
    secret = f"hush-{os.getpid()}-hush"
    Secrets(tmp_path / "data").store("TOKEN", secret)

    async def scenario() -> None:
        host = BubblewrapHost(tmp_path / "data", shipped=shipped)
        try:
            instance = await host.start(
                "secretive", session="s", workspace=workspace, report=print, secrets=["TOKEN"]
            )
            assert running(secret) == []
            async with called(instance) as caller:
                assert secret[::-1] in await caller.text("secretive.told")
        finally:
            await host.close()

    loop.run(scenario())


def test_egress_leads_where_it_was_granted_and_nowhere_else(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path
) -> None:
    shipped = write_module(
        tmp_path / "m", "visitor", VISITOR, needs='workspace = "none"\negress = ["good.test:443"]'
    )

    async def scenario() -> None:
        async with internet(echo, {"good.test": [PUBLIC], "bad.test": [PUBLIC]}) as net:
            host = BubblewrapHost(tmp_path / "data", shipped=shipped, outside=net.outside)
            try:
                granted = ("good.test:443",)
                instance = await host.start(
                    "visitor", session="s", workspace=workspace, report=print, egress=granted
                )
                async with called(instance) as caller:
                    said = await caller.text(
                        "visitor.raw", text="CONNECT good.test:443 HTTP/1.1\r\n\r\nhello"
                    )
                    assert "200" in said
                    assert "hello" in said
                    refused = await caller.text("visitor.raw", text="CONNECT bad.test:443 HTTP/1.1\r\n\r\n")
                    assert "502 bad.test can't be reached from here" in refused
                    assert await caller.text("visitor.tamper") == "[]"
            finally:
                await host.close()
            assert net.dialled == [(PUBLIC, 443)]

    loop.run(scenario())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root meets workspaces that belong to another")
def test_as_root_it_becomes_the_owner_of_its_workspace(loop: asyncio.Runner, tmp_path: Path) -> None:
    workspace = tmp_path / "theirs"
    workspace.mkdir()
    os.chown(workspace, 4711, 4712)

    async def scenario() -> None:
        host = BubblewrapHost(tmp_path / "data")
        try:
            instance = await host.start("shell", session="s", workspace=workspace, report=print)
            outcome = await shell(
                instance, "id -u; id -g; id -G; grep -E 'Cap|NoNew' /proc/self/status; : > x"
            )
        finally:
            await host.close()
        *who, rights = outcome.output.split(maxsplit=3)
        assert who == ["4711", "4712", "4712"]
        assert {line.split()[1] for line in rights.splitlines() if line.startswith("Cap")} == {"0" * 16}
        assert (workspace / "x").stat().st_uid == 4711

    loop.run(scenario())


def test_it_is_taken_where_no_engine_answers_and_where_it_is_asked_for(
    loop: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    async def scenario() -> None:
        for backend in ("auto", "bubblewrap"):
            host = await open_host(tmp_path, backend=backend)
            assert host.backend == "bubblewrap"
            assert "shell" in {entry.name for entry in await host.catalogue()}
            await host.close()
        monkeypatch.setenv("PATH", str(tmp_path))
        host = await open_host(tmp_path)
        assert isinstance(host, DisabledHost)
        with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
            await open_host(tmp_path, backend="bubblewrap")

    loop.run(scenario())


def test_that_it_is_weaker_is_said_once(loop: asyncio.Runner, tmp_path: Path, workspace: Path) -> None:
    said: list[str] = []

    async def scenario() -> None:
        host = BubblewrapHost(tmp_path)
        try:
            for session in ("a", "b"):
                await host.start("shell", session=session, workspace=workspace, report=said.append)
        finally:
            await host.close()

    loop.run(scenario())
    assert said.count(WEAKER) == 1
