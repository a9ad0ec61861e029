"""Egress as code in a container meets it: none by default, and the declared targets where it was granted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iact.sandbox import DockerHost
from tests.sandbox.backends import Backend, each_backend
from tests.sandbox.calling import write_module
from tests.sandbox.inside import Caller, called
from tests.sandbox.outside import PUBLIC, Internet, internet

VISITOR = '''
import contextlib, os, socket
from ext_modules.sdk import Module

module = Module("visitor", "Tries to get out.")

@module.function(impact=0)
def raw(text: str) -> str:
    """Send text to the proxy as an ordinary program would; its answer."""
    with socket.create_connection(("127.0.0.1", 3128), 5) as connection:
        try:
            connection.sendall(text.encode())
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = b""
        with contextlib.suppress(OSError):
            while data := connection.recv(65536):
                answer += data
        return answer.decode("utf-8", "replace")

@module.function(impact=0)
def get(url: str) -> str:
    """Fetch with the standard library, which reads the proxy from the environment."""
    import http.client, urllib.parse
    proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    target = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=5)
    connection.set_tunnel(target.hostname, target.port)
    connection.request("GET", target.path)
    return connection.getresponse().read().decode()

@module.function(impact=0)
def tamper() -> list[str]:
    """What can be done to the socket's folder."""
    found = []
    for name, act in {
        "unlink": lambda: os.unlink("/run/egress/egress.sock"),
        "create": lambda: open("/run/egress/x", "w"),
        "rename": lambda: os.rename("/run/egress/egress.sock", "/run/egress/y"),
        "chmod": lambda: os.chmod("/run/egress/egress.sock", 0),
    }.items():
        try:
            act()
            found.append(name)
        except OSError:
            pass
    return found

@module.function(impact=0)
def ways() -> dict[str, bool]:
    return {"socket": os.path.exists("/run/egress/egress.sock"), "proxy": "HTTPS_PROXY" in os.environ,
            "network": [line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:]] != ["lo"]}
'''

GRANTED = ("example.com:80", "inner.example:80")
NEEDS = 'workspace = "none"\negress = ["example.com:80", "inner.example:80"]'


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A web server that greets everybody."""
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def visitor(
    backend: Backend, data: Path, *, egress: Sequence[str]
) -> AsyncIterator[tuple[Caller, Internet]]:
    shipped = write_module(data / "shipped", "visitor", VISITOR, needs=NEEDS)
    names = {"example.com": [PUBLIC], "inner.example": ["127.0.0.1"], "other.example": [PUBLIC]}
    async with internet(greet, names) as world:
        host = backend.host(data, shipped=shipped, outside=world.outside)
        try:
            instance = await host.start("visitor", session="s", workspace=data, report=print, egress=egress)
            async with called(instance) as caller:
                yield caller, world
        finally:
            await host.close()
        assert list((data / "run").iterdir()) == []


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path


@each_backend
def test_without_a_grant_there_is_no_way_out(loop: asyncio.Runner, data: Path, backend: Backend) -> None:
    async def scenario() -> None:
        async with visitor(backend, data, egress=()) as (caller, world):
            assert await caller.text("ways") == '{"socket": false, "proxy": false, "network": false}'
            assert "ConnectionRefusedError" in await caller.error("raw", text="x")
            assert world.lines == []

    loop.run(scenario())


@each_backend
def test_with_a_grant_the_declared_targets_are_reached_and_nothing_else(
    loop: asyncio.Runner, data: Path, backend: Backend
) -> None:
    async def scenario() -> None:
        async with visitor(backend, data, egress=GRANTED) as (caller, world):
            assert await caller.text("ways") == '{"socket": true, "proxy": true, "network": false}'
            assert await caller.text("get", url="http://example.com:80/") == "hello"
            assert world.dialled == [(PUBLIC, 80)]
            refused = {
                "CONNECT other.example:80 HTTP/1.1\r\n\r\n": 403,
                f"CONNECT {PUBLIC}:80 HTTP/1.1\r\n\r\n": 403,
                "CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n": 403,
                "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n": 403,
                "CONNECT example.com:443 HTTP/1.1\r\n\r\n": 403,
                "CONNECT inner.example:80 HTTP/1.1\r\n\r\n": 403,
                "GET http://other.example/ HTTP/1.1\r\n\r\n": 403,
                "GET / HTTP/1.1\r\n\r\n": 400,
                "CONNECT example.com:80 HTTP/1.1\r\nX: " + "A" * 1_000_000 + "\r\n\r\n": 431,
            }
            for request, status in refused.items():
                answer = await caller.text("raw", text=request)
                # What still writes when it is refused may lose the answer, and nothing but that.
                said = 502 if status == 403 else status
                assert answer.startswith(f"HTTP/1.1 {said} ") or (status == 431 and not answer)
                assert ("can't be reached from here" in answer) is (said == 502)
            assert world.dialled == [(PUBLIC, 80)], "nobody else was reached"
            assert await caller.text("tamper") == "[]"
            assert await caller.text("get", url="http://example.com:80/") == "hello"
        # Each is told when it ends, and one that is over for the module may end behind the next.
        assert sorted(line.status for line in world.lines) == sorted([200, *refused.values(), 200])
        assert {line.module for line in world.lines} == {"visitor"}
        assert {line.session for line in world.lines} == {"s"}

    loop.run(scenario())


def test_a_grant_that_changes_restarts_the_module(loop: asyncio.Runner, data: Path, tmp_path: Path) -> None:
    shipped = write_module(tmp_path / "shipped", "visitor", VISITOR, needs=NEEDS)

    async def scenario() -> None:
        host = DockerHost(data, shipped=shipped)
        first = await host.start("visitor", session="s", workspace=data, report=print, egress=GRANTED)
        again = await host.start("visitor", session="s", workspace=data, report=print, egress=GRANTED)
        assert again is first
        without = await host.start("visitor", session="s", workspace=data, report=print)
        assert without is not first
        assert await first.why_lost() == "The module visitor was stopped."
        async with called(without) as caller:
            assert '"socket": false' in await caller.text("ways")
        await host.close()

    loop.run(scenario())
