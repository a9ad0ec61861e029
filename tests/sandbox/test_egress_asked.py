"""The proxy where whoever runs the session is asked for each connection: hostile ways to get more than was allowed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from iact.sandbox.egress import SOCKET, EgressBounds, EgressProxy, inside
from tests.sandbox.outside import PUBLIC, Internet, echo, internet

INNER = (
    "127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:a00:1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2001:0:7f00:1::", "ff02::1", "::127.0.0.1", "2001:db8::1",
)  # fmt: skip
"""Addresses of this machine, of networks like its own, and both in disguise."""


class Asked:
    """Permits everything, or waits; remembers what it was asked."""

    def __init__(self, *, waits: asyncio.Event | None = None, answer: bool = True) -> None:
        self.heard: list[tuple[str, int]] = []
        self.gone: list[asyncio.Event] = []
        """For each question, set when nobody waits for its answer any more."""
        self._waits, self._answer = waits, answer

    async def __call__(self, host: str, port: int) -> bool:
        self.heard.append((host, port))
        gone = asyncio.Event()
        self.gone.append(gone)
        try:
            if self._waits is not None:
                await self._waits.wait()
        except asyncio.CancelledError:
            gone.set()
            raise
        return self._answer


@asynccontextmanager
async def proxy(folder: Path, world: Internet, permit: Asked) -> AsyncIterator[EgressProxy]:
    made = EgressProxy(folder / "egress", frozenset(), world.outside, session="s", module="m", permit=permit)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


async def dial(made: EgressProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    directory = os.open(made.folder, os.O_PATH)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{SOCKET}")
    finally:
        os.close(directory)


async def ask(made: EgressProxy, request: bytes) -> bytes:
    """Send a request; the status line that comes."""
    reader, writer = await dial(made)
    try:
        writer.write(request)
        return await reader.readline()
    finally:
        writer.close()


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()


@pytest.mark.parametrize("address", INNER)
def test_whatever_is_permitted_no_inner_address_is_dialled(tmp_path: Path, address: str) -> None:
    """By its number, and by a name that leads there, alone or beside an honest address."""

    async def scenario() -> None:
        literal = f"[{address}]" if ":" in address else address
        names: dict[str, Sequence[str]] = {
            "one.example": [address], "both.example": [PUBLIC, address], address: [address],
        }  # fmt: skip
        async with internet(echo, names) as world, proxy(tmp_path, world, Asked()) as made:
            for target in (f"{literal}:443", "one.example:443", "both.example:443"):
                assert (await ask(made, connect(target))).startswith(b"HTTP/1.1 502")
            assert world.dialled == []

    asyncio.run(scenario())


def test_a_name_that_changes_its_mind_is_dialled_where_it_was_checked(tmp_path: Path) -> None:
    """Rebinding: each name is resolved once for a connection, and what is dialled is what was looked at."""

    class Turning(Internet):
        looks = 0

        async def resolve(self, host: str, port: int) -> Sequence[str]:
            self.looks += 1
            return [PUBLIC] if self.looks % 2 else ["127.0.0.1"]

    async def scenario() -> None:
        async with internet(echo, {}) as base:
            world = Turning({}, base.bounds, base.port)
            async with proxy(tmp_path, world, Asked()) as made:
                said = [await ask(made, connect("turn.example:443")) for _ in range(6)]
            assert [one[9:12] for one in said] == [b"200", b"502"] * 3
            assert world.looks == 6
            assert {address for address, _ in world.dialled} == {PUBLIC}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "request_",
    [
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\nCONNECT b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443\tb.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443@b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443#b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example%2eb.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 40\r\n\r\nCONNECT b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\rCONNECT b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\nCONNECT b.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT \x00b.example:443 HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
    ],
)  # fmt: skip
def test_no_second_target_is_smuggled_into_a_request(tmp_path: Path, request_: bytes) -> None:
    async def scenario() -> None:
        names = {"a.example": [PUBLIC], "b.example": ["93.184.216.35"]}
        async with internet(echo, names) as world, proxy(tmp_path, world, asked := Asked()) as made:
            await ask(made, request_)
        assert ("b.example", 443) not in asked.heard
        assert {address for address, _ in world.dialled} <= {PUBLIC}

    asyncio.run(scenario())


def test_two_hundred_hosts_at_once_wait_in_a_bounded_number_and_leave_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        names = {f"h{number}.example": [PUBLIC] for number in range(200)}
        asked = Asked(waits=asyncio.Event())
        async with internet(echo, names) as world, proxy(tmp_path, world, asked) as made:
            ends = [await dial(made) for _ in names]
            for (_, writer), name in zip(ends, names, strict=True):
                writer.write(connect(f"{name}:443"))
            most = world.bounds.connections
            refused = 0
            while refused < len(names) - most:  # those beyond the bound are told so at once
                for reader, _ in ends:
                    if not reader.at_eof():
                        try:
                            async with asyncio.timeout(0.05):
                                refused += (await reader.readline()).startswith(b"HTTP/1.1 502")
                        except TimeoutError:
                            continue
            assert len(asked.heard) <= most
            for _, writer in ends:
                writer.close()
            async with asyncio.timeout(300):  # nobody is asked any more for who has gone
                await asyncio.gather(*(one.wait() for one in asked.gone))
            assert world.dialled == []

    asyncio.run(scenario())


def test_an_endless_answer_ends_at_the_bound(tmp_path: Path) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        except OSError:
            writer.close()

    async def scenario() -> None:
        bounds = EgressBounds(bytes=1 << 20)
        async with (
            internet(pour, {"a.example": [PUBLIC]}, bounds=bounds) as world,
            proxy(tmp_path, world, Asked()) as made,
        ):
            reader, writer = await dial(made)
            writer.write(connect("a.example:443"))
            got = len(await reader.read())
            writer.close()
            assert got <= bounds.bytes + 4096
            assert b"502" in await ask(made, connect("a.example:443")), "and nothing is left for another"

    asyncio.run(scenario())


def test_a_machine_of_the_users_is_reached_by_the_name_that_they_gave_it_and_by_no_other(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with internet(echo, {"other.lan": ["127.0.0.1"]}) as world:
            outside = world.outside
            given = inside({"search.lan:80": f"127.0.0.1:{world.port}"})
            made = EgressProxy(
                tmp_path / "egress",
                frozenset(),
                replace(outside, inside=given),
                session="s",
                module="m",
                permit=Asked(),
            )
            await made.open()
            try:
                assert b"200" in await ask(made, connect("search.lan:80"))
                assert b"502" in await ask(made, connect("other.lan:80"))
                assert b"200" not in await ask(made, connect(f"127.0.0.1:{world.port}"))
            finally:
                await made.close()

    asyncio.run(scenario())
