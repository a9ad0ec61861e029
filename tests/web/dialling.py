"""Speaks with a listening server: raw HTTP as an attacker can, and the wire protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from iact.web.server import WebServer
from tests.web.fitting import Traffic

PATIENCE = 300.0
Message = dict[str, Any]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(300):
            await test()

    asyncio.run(bounded())


async def http(server: WebServer, request: str) -> tuple[int, Mapping[str, str], bytes]:
    """Send raw bytes, as an attacker can; gives status, headers (lower case) and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.encode())
    await writer.drain()
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    await writer.wait_closed()
    if not answer:
        return 0, {}, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def get(server: WebServer, path: str, **headers: str) -> str:
    given = {
        "Host": f"127.0.0.1:{server.port}",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    return (
        f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {text}\r\n" for name, text in given.items()) + "\r\n"
    )


async def cookie(server: WebServer) -> str:
    """Sign in as a browser does."""
    _, headers, _ = await http(server, get(server, f"/?token={server.token}"))
    return headers["set-cookie"].partition(";")[0]


def dial(server: WebServer, **headers: str) -> connect:
    given = headers or {"Authorization": f"Bearer {server.key}"}
    return connect(
        f"ws://127.0.0.1:{server.port}/ws",
        additional_headers=given,
        compression=None,
        proxy=None,
        max_queue=None,
    )


async def patiently(server: WebServer) -> ClientConnection:
    """Dial until there is room."""
    while True:
        with suppress(InvalidStatus):
            return await dial(server)
        await asyncio.sleep(0)


_TRAFFIC: WeakKeyDictionary[ClientConnection, Traffic] = WeakKeyDictionary()


async def send(client: ClientConnection, **message: object) -> None:
    frame = json.dumps(message)
    _TRAFFIC.setdefault(client, Traffic()).asked(frame)
    await client.send(frame)


async def take(client: ClientConnection) -> Message:
    frame = await asyncio.wait_for(client.recv(), PATIENCE)
    wrong = _TRAFFIC.setdefault(client, Traffic()).told(frame)
    assert not wrong, f"The server sent what does not fit iact.web.wire: {wrong}"
    message = json.loads(frame)
    assert isinstance(message, dict)
    return message


async def until(client: ClientConnection, **wanted: object) -> list[Message]:
    """All messages up to the first that has these fields."""
    seen: list[Message] = []
    while True:
        seen.append(await take(client))
        if all(seen[-1].get(name) == value for name, value in wanted.items()):
            return seen


async def closed(client: ClientConnection) -> int:
    """Read until the server closes; the close code."""
    try:
        while True:
            await asyncio.wait_for(client.recv(), PATIENCE)
    except ConnectionClosed as error:
        return error.rcvd.code if error.rcvd else 1006


def numbers(messages: list[Message]) -> list[int]:
    return [message["n"] for message in messages if message["type"] == "record"]


# --- HTTP
