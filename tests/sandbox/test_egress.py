"""The egress proxy: what it decides, and what passes it, over its real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.sandbox.egress import (
    SOCKET,
    EgressBounds,
    EgressLine,
    EgressProxy,
    PlainRequest,
    Refusal,
    Target,
    is_outside,
    parse,
    targets,
)
from tests.sandbox.calling import until
from tests.sandbox.outside import PUBLIC, Internet, Serve, echo, internet

ALLOWED = targets(["example.com:443", "inner.example:443", "mixed.example:443", "gone.example:443"])
NAMES = {
    "example.com": [PUBLIC],
    "inner.example": ["127.0.0.1"],
    "mixed.example": [PUBLIC, "10.0.0.1"],
    "other.example": [PUBLIC],
}


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("CONNECT other.example:443 HTTP/1.1", 403),
        ("CONNECT example.com:80 HTTP/1.1", 403),
        ("CONNECT 93.184.216.34:443 HTTP/1.1", 403),
        ("CONNECT [::1]:443 HTTP/1.1", 403),
        ("CONNECT 0x7f000001:443 HTTP/1.1", 403),
        ("CONNECT sub.example.com:443 HTTP/1.1", 403),
        ("CONNECT example.com.evil.example:443 HTTP/1.1", 403),
        ("POST / HTTP/1.1", 400),
        ("connect example.com:443 HTTP/1.1", 400),
        ("GET https://example.com/ HTTP/1.1", 400),
        ("GET http://user@example.com/ HTTP/1.1", 400),
        ("GET http://example.com/#part HTTP/1.1", 400),
        ("GET http://example.com:70000/ HTTP/1.1", 400),
        ("GET http://exam ple.com/ HTTP/1.1", 400),
        ("get http://example.com/ HTTP/1.1", 400),
        ("CONNECT example.com HTTP/1.1", 400),
        ("CONNECT example.com:0 HTTP/1.1", 400),
        ("CONNECT example.com:70000 HTTP/1.1", 400),
        ("CONNECT example.com:4 43 HTTP/1.1", 400),
        ("CONNECT user@example.com:443 HTTP/1.1", 400),
        ("CONNECT https://example.com:443 HTTP/1.1", 400),
        ("CONNECT example.com:443 HTTP/2", 400),
        ("CONNECT ex\x00ample.com:443 HTTP/1.1", 400),
        ("GET http://example.com/a\nHost:other.example HTTP/1.1", 400),
        ("GET http://example.com/?a\tb HTTP/1.1", 400),
        ("CONNECT exämple.com:443 HTTP/1.1", 400),
        ("CONNECT example.com:٤٤٣ HTTP/1.1", 400),
        ("", 400),
    ],
)
def test_what_is_not_listed_is_refused(line: str, status: int) -> None:
    decided = parse(head(line))
    if status == 403:  # whoever permits decides, on exactly this
        assert isinstance(decided, Target)
        assert decided not in ALLOWED
        return
    assert isinstance(decided, Refusal)
    assert decided.status == status


def test_what_is_listed_is_taken() -> None:
    for name in ("example.com", "EXAMPLE.com", "example.com."):
        assert parse(head(f"CONNECT {name}:443 HTTP/1.1", "Host: x")) == Target("example.com", 443)


@pytest.mark.parametrize(
    ("address", "target", "path", "host"),
    [
        ("http://Example.com", Target("example.com", 80), "/", "example.com"),
        ("http://example.com:8080/a?b=c", Target("example.com", 8080), "/a?b=c", "example.com:8080"),
        ("http://example.com?b", Target("example.com", 80), "/?b", "example.com"),
        ("http://[2606:2800::1]/x", Target("2606:2800::1", 80), "/x", "[2606:2800::1]"),
    ],
)
def test_a_plain_request_is_for_the_host_that_its_address_names(
    address: str, target: Target, path: str, host: str
) -> None:
    """Whatever its fields say: the address decides, and the connection is for this one request."""
    fields = (
        "Host: evil.example",
        "Proxy-Authorization: x",
        "Connection: keep-alive, x",
        "Accept: */*",
        "Upgrade: h2c",
    )
    asked = parse(head(f"GET {address} HTTP/1.1", *fields))
    assert asked == PlainRequest(
        target, head(f"GET {path} HTTP/1.1", f"Host: {host}", "Accept: */*", "Connection: close")
    )


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("A: b", " folded: c"),
        ("no field",),
    ],
)
def test_a_plain_request_that_can_be_read_in_two_ways_is_refused(fields: tuple[str, ...]) -> None:
    decided = parse(head("POST http://example.com/ HTTP/1.1", *fields))
    assert isinstance(decided, Refusal)
    assert decided.status == 400


def test_a_body_cannot_be_smuggled() -> None:
    for field in ("Transfer-Encoding: chunked", "content-length: 5"):
        decided = parse(head("CONNECT example.com:443 HTTP/1.1", "A: b", field))
        assert isinstance(decided, Refusal)
        assert decided.status == 400


@given(st.binary(max_size=200))
def test_no_head_raises(data: bytes) -> None:
    decided = parse(data + b"\r\n\r\n")
    assert isinstance(decided, (Refusal, PlainRequest)) or decided in ALLOWED


@pytest.mark.parametrize(
    "text", ["example.com", "example.com:", ":443", "example.com:99999", "a b:1", "*:443"]
)
def test_a_wrong_declaration_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form host:port"):
        targets([text])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.17.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::", "2002:a00:1::1", "example.com", "", "1", "0x7f.1",
    ],
)  # fmt: skip
def test_inner_addresses_are_inner(address: str) -> None:
    assert not is_outside(address)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8"])
def test_global_addresses_are_outside(address: str) -> None:
    assert is_outside(address)


# --- over the socket ------------------------------------------------------------------------------------

Scenario = Callable[[EgressProxy, Internet], Coroutine[object, object, None]]


def play(
    folder: Path,
    scenario: Scenario,
    *,
    serve: Serve = echo,
    names: Mapping[str, Sequence[str]] = NAMES,
    bounds: EgressBounds | None = None,
) -> list[EgressLine]:
    """Run `scenario` against a proxy; what the proxy reported."""

    async def run() -> list[EgressLine]:
        async with internet(serve, names, bounds=bounds) as world:
            proxy = EgressProxy(folder / "egress", ALLOWED, world.outside, session="s", module="m")
            await proxy.open()
            try:
                async with asyncio.timeout(300):
                    await scenario(proxy, world)
            finally:
                await proxy.close()
                for writer in _asked:
                    writer.close()
                _asked.clear()
            assert not proxy.folder.exists()
            assert not proxy._serving
            return world.lines

    return asyncio.run(run())


_asked: list[asyncio.StreamWriter] = []
"""Connections of the scenario that runs now, closed at its end."""


async def ask(proxy: EgressProxy, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Send a request; the connection, and the status line and fields that come back."""
    reader, writer = await asyncio.open_unix_connection(proxy.folder / SOCKET)
    _asked.append(writer)
    writer.write(request)
    answer = await reader.readuntil(b"\r\n\r\n")
    return reader, writer, answer


CONNECT = head("CONNECT example.com:443 HTTP/1.1")


def test_bytes_pass_both_ways_and_are_counted(tmp_path: Path) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, writer, answer = await ask(proxy, CONNECT)
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(b"x" * 500_000)
        writer.write_eof()
        assert await reader.read(-1) == b"x" * 500_000
        assert world.dialled == [(PUBLIC, 443)]
        writer.close()

    (line,) = play(tmp_path, scenario)
    assert (line.session, line.module, line.target, line.status) == ("s", "m", "example.com:443", 200)
    assert (line.sent, line.received, line.address, line.reason) == (500_000, 500_000, PUBLIC, "")
    assert str(line).startswith(
        "m connected to example.com:443 (93.184.216.34); 500,000 bytes out, 500,000 in"
    )


def test_plain_http_passes_to_a_host_that_is_allowed(tmp_path: Path) -> None:
    asked = head("POST http://example.com:443/x HTTP/1.1", "Host: other.example", "Content-Length: 5")
    sent = head("POST /x HTTP/1.1", "Host: example.com:443", "Content-Length: 5", "Connection: close")

    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, writer = await asyncio.open_unix_connection(proxy.folder / SOCKET)
        writer.write(asked + b"hello")
        writer.write_eof()
        assert await reader.read(-1) == sent + b"hello", "the test's server gives back what it gets"
        assert world.dialled == [(PUBLIC, 443)]
        writer.close()

    (line,) = play(tmp_path, scenario)
    assert (line.status, line.target, line.sent) == (200, "http://example.com:443/x", len(sent) + 5)


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head("CONNECT other.example:443 HTTP/1.1"), 403),
        (head(f"CONNECT {PUBLIC}:443 HTTP/1.1"), 403),
        (head("CONNECT example.com:22 HTTP/1.1"), 403),
        (head("GET http://other.example/ HTTP/1.1"), 403),
        (head("CONNECT inner.example:443 HTTP/1.1"), 403),
        (head("CONNECT mixed.example:443 HTTP/1.1"), 403),
        (head("CONNECT gone.example:443 HTTP/1.1"), 502),
        (b"A" * 1_000_000, 431),
        (b"CONNECT example.com:443 HTTP/1.1\r\nX: " + b"A" * 1_000_000 + b"\r\n\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    ],
)  # fmt: skip
def test_what_is_refused_reaches_nobody(tmp_path: Path, request_head: bytes, status: int) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        _, writer, answer = await ask(proxy, request_head)
        silent = status in (403, 502)
        assert answer.startswith(f"HTTP/1.1 {502 if silent else status} ".encode())
        assert (b"can't be reached from here\r\n" in answer) is silent, "one sentence for all reasons"
        assert world.dialled == []
        writer.close()
        assert (await ask(proxy, CONNECT))[2].startswith(b"HTTP/1.1 200"), "the next one is served"

    lines = play(tmp_path, scenario)
    assert lines[0].status == status
    assert lines[0].reason
    assert all(char.isprintable() for char in str(lines[0]))


def test_the_name_is_resolved_once_and_the_checked_address_dialled(tmp_path: Path) -> None:
    """DNS rebinding: a name that answers with a global address first and an inner one afterwards."""
    answers = [[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]]

    class Turning(dict[str, Sequence[str]]):
        def __getitem__(self, name: str) -> Sequence[str]:
            return answers.pop(0)

    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        assert (await ask(proxy, CONNECT))[2].startswith(b"HTTP/1.1 200")
        assert (await ask(proxy, CONNECT))[2].startswith(b"HTTP/1.1 502")
        assert world.dialled == [(PUBLIC, 443)]

    play(tmp_path, scenario, names=Turning({"example.com": [PUBLIC]}))


def test_bytes_are_capped_over_all_connections(tmp_path: Path) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, writer, _ = await ask(proxy, CONNECT)
        writer.write(b"x" * 1_000_000)
        with suppress(ConnectionResetError):
            assert len(await reader.read(-1)) < 200_000
        assert b"502 example.com can't be reached" in (await ask(proxy, CONNECT))[2]

    lines = play(tmp_path, scenario, bounds=EgressBounds(bytes=100_000))
    assert [line.status for line in lines] == [200, 403]
    assert lines[0].sent + lines[0].received < 300_000
    assert lines[0].reason == "The module has used up its 100,000 bytes."


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (EgressBounds(idle=0.1), "Nothing came for 0.1 s."),
        (EgressBounds(seconds=0.1), "It was open for 0.1 s, which is the most."),
    ],
)
def test_time_is_capped(tmp_path: Path, bounds: EgressBounds, reason: str) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, _, _ = await ask(proxy, CONNECT)
        assert await reader.read(-1) == b""

    (line,) = play(tmp_path, scenario, bounds=bounds)
    assert line.reason == reason


def test_a_head_that_never_ends_is_given_up(tmp_path: Path) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        assert b"408" in (await ask(proxy, b"CONNECT "))[2]

    play(tmp_path, scenario, bounds=EgressBounds(connecting=0.1))


def test_connections_at_once_are_capped(tmp_path: Path) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        first = await ask(proxy, CONNECT)
        await ask(proxy, CONNECT)
        assert b"502" in (await ask(proxy, CONNECT))[2]
        first[1].close()

        async def served() -> bool:
            return (await ask(proxy, CONNECT))[2].startswith(b"HTTP/1.1 200")

        await until(served)

    play(tmp_path, scenario, bounds=EgressBounds(connections=2))


def test_a_far_end_that_breaks_is_reported(tmp_path: Path) -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, writer, _ = await ask(proxy, CONNECT)
        writer.write(b"x")
        assert await reader.read(-1) == b""
        writer.close()

        async def told() -> bool:
            return bool(world.lines)

        await until(told)

    play(tmp_path, scenario, serve=breaking)


def test_closing_ends_what_is_open(tmp_path: Path) -> None:
    async def scenario(proxy: EgressProxy, world: Internet) -> None:
        reader, _, _ = await ask(proxy, CONNECT)
        await proxy.close()
        await proxy.close()
        assert await reader.read(-1) == b""

    (line,) = play(tmp_path, scenario)
    assert line.reason == "The module was stopped."
    assert (line.status, line.address) == (200, PUBLIC), "what it had reached is told all the same"
