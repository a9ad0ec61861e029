"""Who may open a socket, how many, and what becomes of those that flood, fall silent or do not read."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from iact.core.records.record import Record
from iact.web.limits import MAX_MESSAGE
from iact.web.server import MAX_SOCKETS, WebServer
from tests.web.dialling import (
    PATIENCE,
    closed,
    cookie,
    dial,
    get,
    numbers,
    patiently,
    run,
    send,
    until,
)
from tests.web.fake import LABEL, FakeRuntime, FakeSession


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://127.0.0.1:1", None])
def test_a_foreign_page_cannot_open_a_socket(origin: str | None) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            headers = {"Cookie": await cookie(server)} | ({"Origin": origin} if origin else {})
            with pytest.raises(InvalidStatus) as info:
                async with dial(server, **headers):
                    pass
            assert info.value.response.status_code == 403

    run(test)


def test_our_page_and_the_command_line_can() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            page = {"Cookie": await cookie(server), "Origin": f"http://127.0.0.1:{server.port}"}
            for headers in (page, {"Authorization": f"Bearer {server.token}"}):
                async with dial(server, **headers) as client:
                    await send(client, type="hello", session=None, id=7)
                    seen = await until(client, type="ok", id=7)
                    small = sorted(FakeRuntime.small_models)
                    assert seen[0] == {
                        "type": "session", "id": None, "since": 0, "model": LABEL, "small": small
                    }  # fmt: skip

    run(test)


def test_there_is_a_limit_to_sockets_and_it_frees_up() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            clients = [await dial(server) for _ in range(MAX_SOCKETS)]
            with pytest.raises(InvalidStatus) as info:
                await dial(server)
            assert info.value.response.status_code == 503
            for client in clients:
                await client.close()
            # The server notices an end a little later than who brought it about.
            async with asyncio.timeout(PATIENCE), await patiently(server) as client:
                await send(client, type="hello", session=None, id=1)
                await until(client, type="ok")

    run(test)


# --- websocket: lines that swallow bytes


async def silent(server: WebServer, session: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that watches a session, and from then on neither sends anything nor answers a ping."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    request = (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.key}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    writer.write(request.encode())
    await reader.readuntil(b"\r\n\r\n")
    hello = json.dumps({"type": "hello", "session": session, "id": 1}).encode()
    # A mask of zeros leaves the text as it is (RFC 6455, section 5.3).
    writer.write(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
    return reader, writer


def test_a_client_that_falls_silent_is_told_and_costs_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iact.web.server.PING_SECONDS", 0.05)
    monkeypatch.setattr("iact.web.server.SILENT_SECONDS", 0.2)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, asyncio.timeout(PATIENCE):
            reader, writer = await silent(server, "s")
            await session.watched()
            told = await reader.read()
            assert b"\x89\x00" in told, "it was not asked"
            assert told.endswith(b"nothing was heard from you")
            while session.watchers or server.watches("s"):  # noqa: ASYNC110 (nothing tells of it)
                await asyncio.sleep(0)
            writer.close()

    run(test)


def test_who_answers_pings_stays_however_little_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iact.web.server.PING_SECONDS", 0.02)
    monkeypatch.setattr("iact.web.server.SILENT_SECONDS", 0.3)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            await asyncio.sleep(1)  # the library answers the server's pings meanwhile
            await send(client, type="ping", id=2)
            await until(client, type="ok", id=2)

    run(test)


def test_a_server_that_was_away_does_not_say_that_of_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine was asleep, or too busy: it has not asked them meanwhile."""
    monkeypatch.setattr("iact.web.server.PING_SECONDS", 0.05)
    monkeypatch.setattr("iact.web.server.SILENT_SECONDS", 0.3)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            for number in range(2, 5):
                time.sleep(1)  # noqa: ASYNC251 (nothing else may go on)
                for _ in range(20):  # what is due is done, before the client says anything
                    await asyncio.sleep(0)
                await send(client, type="ping", id=number)
                await until(client, type="ok", id=number)

    run(test)


def test_a_ping_is_answered_while_a_request_takes_long() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            goes_on = asyncio.Event()

            async def takes_long(path: str) -> Record:
                await goes_on.wait()
                return session.append("notice", level="warning", code="x")

            session.stop_calls = takes_long  # type: ignore[method-assign]
            await send(client, type="calls.stop", path="/", id=2)
            await send(client, type="ping", id=3)
            seen = await until(client, type="ok", id=3)
            assert not any(message.get("id") == 2 for message in seen)
            goes_on.set()
            await until(client, type="ok", id=2)

    run(test)


# --- websocket: long messages


def test_a_message_of_any_size_is_sent_like_a_file_and_said_once() -> None:
    async def test() -> None:
        session, text = FakeSession("s"), "ä long line\n" * 200_000
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            content = text.encode()
            await send(client, type="upload", name="message.md", size=len(content), id=2)
            await until(client, type="ok", id=2)
            for start in range(0, len(content), 128 * 1024):
                await client.send(content[start : start + 128 * 1024])
            await send(client, type="say", uploaded=True, id=3)
            await until(client, type="ok", id=3)
            assert session.calls == [("say", text)]

            await send(client, type="say", uploaded=True, id=4)
            refused = (await until(client, type="error", id=4))[-1]
            assert refused["code"] == "usage"
            await send(client, type="say", text=" ", id=5)
            assert (await until(client, type="error", id=5))[-1]["code"] == "invalid"

    run(test)


def test_an_uploaded_message_that_is_no_text_is_refused() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await send(client, type="upload", name="message.md", size=2, id=2)
            await until(client, type="ok", id=2)
            await client.send(b"\xff\xfe")
            await send(client, type="say", uploaded=True, id=3)
            assert "UTF-8" in (await until(client, type="error", id=3))[-1]["message"]
            assert session.calls == []

    run(test)


# --- websocket: limits


def test_an_oversized_message_closes_the_socket_and_harms_nothing() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok")
            await send(client, type="say", text="x" * MAX_MESSAGE)
            assert await closed(client) == 1009
            assert session.calls == []

    run(test)


def test_a_flood_is_refused_and_then_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow the machine is, this is a flood.
    monkeypatch.setattr("iact.web.connection.MESSAGES_PER_SECOND", 0.0)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            for number in range(600):
                try:
                    await send(client, type="say", text="again", id=number)
                except ConnectionClosed:
                    break
            assert await closed(client) == 1008
            assert len(session.calls) < 200

    run(test)


def test_one_refused_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iact.web.connection.MESSAGES_PER_SECOND", 0.0)

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server, dial(server) as client:
            for number in range(80):
                await send(client, type="sessions", id=number)
            refused = (await until(client, type="error", code="rate"))[-1]
            assert refused["message"].startswith("Too many messages")

    run(test)


def test_a_silent_client_is_let_go() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(), hello_timeout=0.05) as server, dial(server) as client:
            assert await closed(client) == 1008

    run(test)


def test_a_client_that_does_not_read_is_cut_off_and_the_session_goes_on() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=8)
        async with WebServer(FakeRuntime(session), send_timeout=0.2) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
            key = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
            writer.write(
                get(
                    server,
                    "/ws",
                    Authorization=f"Bearer {server.token}",
                    Sec_WebSocket_Key="x3JJHMbDL1EzLkh9GBhXDw==",
                    **key,
                ).encode()
            )
            await reader.readuntil(b"\r\n\r\n")
            hello = b'{"type":"hello","session":"s"}'
            writer.write(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
            async with asyncio.timeout(PATIENCE):
                await session.watched()
                written = 0
                while session.watchers:
                    session.append("notice", body="x" * 30_000)
                    written += 1
                    await asyncio.sleep(0.001)
            writer.transport.abort()
            async with dial(server) as client:
                await send(client, type="hello", session="s", since=written - 1)
                assert numbers(await until(client, type="record")) == [written]

    run(test)


# --- websocket: what is said
