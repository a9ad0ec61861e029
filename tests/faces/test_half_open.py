"""Connections that send nothing, or half a request, end, and keep nobody else out."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from iact.faces.http import half_open
from iact.faces.http import server as http_server
from iact.faces.http.server import serving

PATIENCE = 60.0


async def _echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


def _app() -> Starlette:
    return Starlette(routes=[Route("/echo", _echo, methods=["GET", "POST"])])


def _head(port: int, length: int = 0) -> bytes:
    return f"POST /echo HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"POST /echo HTTP/1.1\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 100\r\nHost: 127.0.0.1:PORT\r\n\r\nhalf a bo",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: 127.0.0.1:PORT\r\n\r\n5\r\nha",
    ],
)
async def test_half_a_request_ends(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(half_open, "SECONDS", 0.2)
    async with serving(_app(), "127.0.0.1", 0) as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent.replace(b"PORT", str(port).encode()))
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_half_of_a_second_request_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_open, "SECONDS", 0.2)
    async with serving(_app(), "127.0.0.1", 0) as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_head(port))
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(1) == b"0"
        writer.write(b"POST /ec")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_a_thousand_half_open_connections_keep_nobody_out() -> None:
    async with serving(_app(), "127.0.0.1", 0) as port, AsyncExitStack() as held, asyncio.timeout(PATIENCE):
        for _ in range(half_open.MOST + 100):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            held.callback(writer.close)
            writer.write(b"POST /echo HTTP/1.1\r\n")

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        held.callback(writer.close)
        writer.write(_head(port, 3) + b"all")
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(1) == b"3"


async def test_requests_with_one_credential_keep_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    go = asyncio.Event()

    async def wait(request: Request) -> Response:
        await go.wait()
        return PlainTextResponse("done")

    app = Starlette(routes=[Route("/wait", wait), Route("/echo", _echo)])
    monkeypatch.setattr(http_server, "_MOST_OF_ONE", 3)

    async def status(path: str, credential: str) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {credential}\r\n\r\n"
        writer.write(head.encode())
        try:
            return int((await reader.readline()).split()[1])
        finally:
            writer.close()

    async with serving(app, "127.0.0.1", 0) as port, asyncio.timeout(PATIENCE):
        waiting = [asyncio.create_task(status("/wait", "eve")) for _ in range(4)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [503], "the fourth of eve's"
        assert await status("/echo", "ada") == 200
        go.set()
        assert sorted(await asyncio.gather(*waiting)) == [200, 200, 200, 503]
        assert await status("/echo", "eve") == 200
