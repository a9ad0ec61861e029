"""Many at once against a listening server: it stays bounded, and the session is not harmed."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from iact.core.records.record import Record
from iact.web.server import MAX_CONNECTIONS, WebServer
from tests.web.dialling import PATIENCE, Message, cookie, dial, get, http, numbers, run, send, until
from tests.web.fake import FakeRuntime, FakeSession

ROOT: Final = Path(__file__).parents[2]
AT_ONCE: Final = 300
"""Descriptors of what is being accepted and dropped, and of the test's own process and pipes."""

CLIENTS = 50
LIMIT = 100
ATTACKERS = 3 * LIMIT
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def test_fifty_clients_of_one_session_get_every_record_once() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=64)
        for number in range(200):
            session.append("say", body=f"*{number}*")

        async def client(server: WebServer) -> list[Message]:
            async with dial(server) as socket:
                await send(socket, type="hello", session="s")
                return await until(socket, type="record", n=400)

        async with WebServer(FakeRuntime(session)) as server, asyncio.TaskGroup() as tasks:
            clients = [tasks.create_task(client(server)) for _ in range(CLIENTS)]
            await session.watched(CLIENTS)
            for number in range(200, 400):
                session.append("say", body=f"*{number}*")
                session.write("/", "word ")
                # The clients' turn comes: all of this is one event loop.
                await asyncio.sleep(0)
        assert all(numbers(one.result()) == list(range(1, 401)) for one in clients)

    run(test)


async def attack(server: WebServer, first: bytes) -> Streams | None:
    """One connection that sends the beginning of something, and then nothing."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(first)
        await writer.drain()
    except OSError:
        return None
    return reader, writer


def test_slow_strangers_cost_a_bounded_number_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both ends are in this process, which may not have many descriptors.
    monkeypatch.setattr("iact.web.server.MAX_CONNECTIONS", LIMIT)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session), open_timeout=PATIENCE) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            opened: list[Streams] = []
            for start in range(0, ATTACKERS, 100):
                many = [attack(server, b"GET / HTTP/1.1\r\nHost: ") for _ in range(start, start + 100)]
                async with asyncio.TaskGroup() as tasks:
                    tried = [tasks.create_task(one) for one in many]
                opened += [found for one in tried if (found := one.result()) is not None]

            async def is_dropped(reader: asyncio.StreamReader) -> bool:
                with suppress(ConnectionError):
                    return await reader.read(1) == b""
                return True

            # Those beyond the limit are dropped; nobody else is, for as long as they may trickle.
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
                waiting = {tasks.create_task(is_dropped(reader)) for reader, _ in opened}
                dropped = 0
                while len(opened) - dropped > LIMIT:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    dropped += len(done)
                for one in waiting:
                    one.cancel()
            # Who was there before goes on.
            await send(client, type="say", text="Still here?", id=1)
            await until(client, type="ok", id=1)
            for _, writer in opened:
                writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                await until_there_is_room(server)
            assert [call[0] for call in session.calls] == ["say"]

    run(test)


def test_who_may_be_here_gets_in_while_six_hundred_strangers_hold_their_connections() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="one")
        # Nothing but their number lets go of them.
        async with WebServer(FakeRuntime(session), open_timeout=600) as server:
            held = [await attack(server, b"GET / HTTP/1.1\r\nHost: "[: number % 24]) for number in range(600)]
            assert None not in held
            for _ in range(20):
                async with dial(server) as client:
                    await send(client, type="hello", session="s")
                    await until(client, type="record", n=1)
                assert (await http(server, get(server, "/", Cookie=await cookie(server))))[0] == 200
            for found in held:
                assert found is not None
                found[1].transport.abort()

    run(test)


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(os.listdir("/proc/self/fd"))


def test_ten_thousand_connections_cost_a_bounded_number_of_descriptors() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session), open_timeout=PATIENCE) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            before = most = descriptors()
            flood = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.web.flood", str(server.port),
                cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert flood.stdin is not None
            assert flood.stdout is not None
            said = asyncio.create_task(flood.stdout.readline())
            try:
                # What happens in the session comes, all the while, and every record once.
                seen: list[int] = []
                while not said.done():
                    record = session.append("notice", body="Still here.")
                    seen += numbers(await until(client, type="record", n=record.n))
                    most = max(most, descriptors())
                assert seen == list(range(1, len(seen) + 1))
                held = int((await said).removeprefix(b"held "))
                assert held > MAX_CONNECTIONS + AT_ONCE
                assert most - before <= MAX_CONNECTIONS + AT_ONCE
                await send(client, type="say", text="Still here?", id=1)
                await until(client, type="ok", id=1)
            finally:
                flood.stdin.close()
                async with asyncio.timeout(PATIENCE):
                    await flood.wait()
            async with asyncio.timeout(PATIENCE):
                await until_there_is_room(server)

    run(test)


async def until_there_is_room(server: WebServer) -> None:
    """Ask for the page, as a signed-in browser, until it comes."""
    while True:
        with suppress(ConnectionError, KeyError):
            if (await http(server, get(server, "/", Cookie=await cookie(server))))[0] == 200:
                return
        await asyncio.sleep(0)


def test_a_client_that_never_reads_costs_a_bounded_buffer() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=16)
        # It is not cut off meanwhile, so that what is kept for it can be counted.
        async with WebServer(FakeRuntime(session), send_timeout=600) as server, dial(server) as reads:
            found = await attack(server, upgrade(server))
            assert found is not None
            reader, writer = found
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # the kernel's buffers fill up, too
            await session.watched()
            await send(reads, type="hello", session="s")
            await session.watched(2)
            records: list[Record] = [session.append("notice", body="x" * 30_000) for _ in range(5)]
            for _ in range(400):
                records.append(session.append("notice", body="x" * 30_000))
                await asyncio.sleep(0)
            await until(reads, type="record", n=records[-1].n)
            assert max(server.backlog()) < 1_000_000
            writer.transport.abort()

    run(test)


def upgrade(server: WebServer) -> bytes:
    """A websocket's opening and its `hello`, in one go."""
    key = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    secret = {"Authorization": f"Bearer {server.token}", "Sec_WebSocket_Key": "x3JJHMbDL1EzLkh9GBhXDw=="}
    hello = b'{"type":"hello","session":"s"}'
    return get(server, "/ws", **key, **secret).encode() + bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello
