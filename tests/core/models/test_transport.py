"""The client against servers that break the protocol on purpose, byte by byte, over real sockets.

Whatever a server does, a request ends: with the reply, or with one sentence of the kind that it always had.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import ssl
import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iact.core.errors import ModelError, ModelGarbled, ModelOverloaded, ModelRefused, ModelUnreachable
from iact.core.models import chat, transport
from iact.core.models.failures import Retries
from iact.core.models.openai import ModelEndpoint, OpenAIModel, Timeouts
from iact.core.ports import ChatMessage, ModelProfile, TextDelta
from tests.core.models.clock import VirtualClock
from tests.core.models.conformance import Collected, collect

KEY = "sk-very-secret-0123456789"
MESSAGES = [ChatMessage("system", "Be brief: äöü\u2028\U0001f600"), ChatMessage("user", "Go on.")]
SILENCE = 0.5
HALF = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{"content":" there."},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


WHOLE = CHUNKED + chunk(HALF) + chunk(LAST) + chunk(DONE) + b"0\r\n\r\n"
FINISHED = WHOLE.index(LAST) + len(LAST)
"""So many bytes of it say that the reply is complete."""


@dataclass
class Peer:
    """One connection, from the server's side, and the requests that came over it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def request(self) -> tuple[dict[str, str], bytes]:
        """Headers, with the request line as "", and body of the next request."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("ascii").strip().split("\r\n")
        headers = {
            "": first,
            **{name.lower(): value for name, value in (line.split(": ", 1) for line in lines)},
        }
        found = headers, await self.reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(found)
        return found

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Talk = Callable[[Peer], Awaitable[None]]


@dataclass
class Server:
    """What came of it. `url`: its base address."""

    url: str
    peers: list[Peer]

    @property
    def requests(self) -> list[tuple[dict[str, str], bytes]]:
        return [request for peer in self.peers for request in peer.requests]


@asynccontextmanager
async def serving(talk: Talk, secure: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that talks so with every connection, then closes it; in the end no connection may be left."""
    peers: list[Peer] = []
    open_ones: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        task.add_done_callback(open_ones.discard)
        peers.append(Peer(reader, writer, len(peers)))
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await talk(peers[-1])
        with suppress(ConnectionError, ssl.SSLError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=secure)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Server(f"http{'s' if secure else ''}://127.0.0.1:{port}/v1", peers)
    finally:
        server.close()
        async with asyncio.timeout(10):
            while open_ones:  # each sees at its next read or write that the client is gone
                await asyncio.wait(open_ones)


def says(answer: bytes, *, abort: bool = False) -> Talk:
    """Takes a request, says this, closes."""

    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.say(answer)
        if abort:
            peer.writer.transport.abort()

    return talk


def model(url: str, *, attempts: int = 1, silence: float = 20.0, direct: bool = False) -> OpenAIModel:
    return OpenAIModel(
        ModelEndpoint(url=url, key=KEY, direct=direct),
        profile=ModelProfile("m", 8192),
        clock=VirtualClock(),
        rng=random.Random(7),
        timeouts=Timeouts(connect=5, first=silence, between=silence, ending=silence),
        retries=Retries(attempts=attempts),
    )


@asynccontextmanager
async def asking(url: str, *, attempts: int = 1, silence: float = 20.0) -> AsyncIterator[OpenAIModel]:
    client = model(url, attempts=attempts, silence=silence)
    try:
        yield client
    finally:
        await client.close()


def ask(talk: Talk, *, attempts: int = 1, silence: float = 20.0) -> tuple[Collected, Server]:
    """One reply from a server that talks so."""

    async def whole() -> tuple[Collected, Server]:
        async with serving(talk) as server, asking(server.url, attempts=attempts, silence=silence) as client:
            return await collect(client, MESSAGES), server

    return asyncio.run(whole())


def failing(talk: Talk, *, silence: float = 20.0) -> tuple[type[ModelError], str]:
    """How a request to a server that talks so fails; it is told whatever it does."""
    with pytest.raises(ModelError) as caught:
        ask(talk, silence=silence)
    said = str(caught.value)
    assert said.startswith("The model endpoint http")
    assert said.endswith(".")
    assert "\n" not in said
    assert KEY not in said
    assert caught.value.__cause__ is None
    return type(caught.value), said


# --- a good reply in every form -----------------------------------------------------------------------

BODY = HALF + LAST + DONE


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        CHUNKED + chunk(BODY) + b"0\r\nx-trailer: yes\r\n\r\n",
        CHUNKED + b"".join(chunk(BODY[at : at + 1]) for at in range(len(BODY))) + b"0\r\n\r\n",
        CHUNKED + b"%x;name=value\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
        OK + b"content-length: %d\r\n\r\n" % len(BODY) + BODY,
        OK + b"\r\n" + BODY,
        OK.replace(b"1.1", b"1.0") + b"\r\n" + BODY,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + WHOLE,
        OK + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n",
        OK + b"content-encoding: identity\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY,
        WHOLE + b"HTTP/1.1 500 Not asked for\r\ncontent-length: 3\r\n\r\nbad",
        WHOLE + b"\x00garbage behind it",
        OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n",
        (OK + b"content-length: %d\r\n\r\n" % len(BODY)).replace(b"\r\n", b"\n") + BODY,
        CHUNKED + b"%x  \r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
        CHUNKED + chunk(HALF + LAST) + chunk(b": " + b"x" * 300_000) + b"0\r\n\r\n",
    ],
)  # fmt: skip
def test_a_reply_in_every_form(answer: bytes) -> None:
    found, _ = ask(says(answer))
    assert (found.text, found.ends) == ("Hello there.", ["stop"])


def test_a_reply_that_comes_byte_by_byte() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        for at in range(len(WHOLE)):
            await peer.say(WHOLE[at : at + 1])
            await asyncio.sleep(0)

    assert ask(talk)[0].text == "Hello there."


def test_a_long_reply_waits_at_the_other_side_until_it_is_read() -> None:
    """Whoever stands still after the first word holds a few hundred kB of it; the kernel holds what it may."""
    held = (int(Path(f"/proc/sys/net/ipv4/tcp_{end}mem").read_text().split()[2]) for end in "rw")
    count, sent = 2000 + 2 * sum(held) // 10_000, 0

    async def talk(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.say(CHUNKED + chunk(HALF))
        for _ in range(count):
            await peer.say(chunk(b": " + b"x" * 10_000 + b"\n"))
            sent += 1
        await peer.say(chunk(LAST) + b"0\r\n\r\n")

    async def whole() -> str:
        said = ""
        async with (
            serving(talk) as server,
            asking(server.url) as client,
            aclosing(client.stream(MESSAGES)) as events,
        ):
            async for event in events:
                if isinstance(event, TextDelta):
                    said += event.text
                    for _ in range(3000):
                        await asyncio.sleep(0)  # far longer than it takes to send all of it
                    if said == "Hello":
                        assert sent < count
        return said

    assert asyncio.run(whole()) == "Hello there."


# --- half a response ----------------------------------------------------------------------------------


@pytest.mark.parametrize("abort", [False, True])
def test_an_answer_that_ends_at_any_byte_is_an_error_or_the_reply(abort: bool) -> None:
    at = 0

    async def talk(peer: Peer) -> None:
        await says(WHOLE[:at], abort=abort)(peer)

    async def whole() -> None:
        nonlocal at
        async with serving(talk) as server, asking(server.url) as client:
            for at in range(len(WHOLE)):
                said, failed = "", ""
                try:
                    said = (await collect(client, MESSAGES)).text
                except (ModelUnreachable, ModelGarbled) as error:
                    failed = str(error)
                if at < FINISHED or not said:
                    assert "can't be reached" in failed or "broke off in the middle of a reply" in failed, at
                if (
                    at >= FINISHED and not abort
                ):  # what was sent may be lost where the server resets the connection
                    assert said == "Hello there.", at

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "can't be reached (Server disconnected without sending a response)"),
        (b"HTTP/1.1 200", "can't be reached (peer closed connection without sending a complete head)"),
        (CHUNKED, "can't be reached (peer closed connection without sending complete message body (incomplete chunked read))"),
        (CHUNKED + chunk(HALF), "broke off in the middle of a reply (peer closed connection without sending complete message"
         " body (incomplete chunked read))"),
        (OK + b"content-length: 999\r\n\r\n" + HALF, f"(received {len(HALF)} bytes, expected 999)"),
    ],
)  # fmt: skip
def test_what_is_said_of_half_an_answer(answer: bytes, said: str) -> None:
    kind, sentence = failing(says(answer))
    assert kind is ModelUnreachable
    assert said in sentence


# --- lies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na\0b: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: at once\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\x05hello",
        OK + b"content-length: -1\r\n\r\n" + BODY,
        OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n" + BODY,
        OK + b"content-length: 99999999999999999999999\r\n\r\n" + BODY,
        CHUNKED + b"not a size\r\n" + HALF,
        CHUNKED + b"-5\r\n" + HALF,
        CHUNKED + b"ffffffffffffffffff\r\n" + HALF,
        CHUNKED + b"5\r\n" + HALF,
        CHUNKED + b"5\n" + HALF,
    ],
)
def test_what_is_not_http_is_an_error(answer: bytes) -> None:
    kind, _ = failing(says(answer))
    assert kind in (ModelUnreachable, ModelRefused)


def test_a_version_that_is_none_says_nothing() -> None:
    kind, said = failing(says(b"HTTP/2.0 200 OK\r\n\r\n"))
    assert kind is ModelGarbled
    assert "it sent no server-sent events" in said


def test_a_size_that_is_too_small_ends_a_reply_that_has_begun() -> None:
    lie = b"%x\r\n%b" % (len(LAST) - 9, LAST)
    kind, said = failing(says(CHUNKED + chunk(HALF) + lie))
    assert kind is ModelUnreachable
    assert "broke off in the middle of a reply (what it sends is not HTTP" in said


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 200_000,
        b'{"choices":' * 100_000,
        b'{"choices": [' + b"9" * 5000 + b"]}",
        b'"\xff"',
        b"\xff\xfe{\0}\0",
    ],
)
def test_chunks_that_no_one_can_read(data: bytes) -> None:
    kind, said = failing(says(CHUNKED + chunk(b"data: " + data + b"\n\n") + b"0\r\n\r\n"))
    assert kind is ModelGarbled
    assert "did not answer in the OpenAI protocol (what it streams" in said


def test_a_chunk_that_is_null_is_none() -> None:
    found, _ = ask(says(CHUNKED + chunk(b"data: null\n\n" + BODY) + b"0\r\n\r\n"))
    assert found.text == "Hello there."


# --- what never ends ----------------------------------------------------------------------------------


def pouring(before: bytes, drop: bytes, *, gently: bool = False) -> Talk:
    """Says something, then the same for ever. `gently`: with nothing for an instant in between."""

    async def talk(peer: Peer) -> None:
        if not peer.requests:
            await peer.request()
        await peer.say(before)
        while True:
            await peer.say(drop)
            await asyncio.sleep(0.01 if gently else 0)

    return talk


AROUND = "it sends more than 100 kB around what it has to say"


@pytest.mark.parametrize(
    ("before", "drop", "kind", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x-a: " + b"b" * 200 + b"\r\n", ModelUnreachable, AROUND),
        (b"HTTP/1.1 200 OK\r\n", b"a:\r\n" * 50, ModelUnreachable, AROUND),
        (b"HTTP/1.1 200 OK\r\nx-a: ", b"b" * 300, ModelUnreachable, AROUND),
        (b"HTTP/1.1 200 OK\r\n", b"b" * 300, ModelUnreachable, AROUND),
        (b"HTTP/1.1 200 O", b"K" * 300, ModelUnreachable, AROUND),
        (b"", b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n" * 9, ModelUnreachable, AROUND),
        (CHUNKED + chunk(HALF) + b"5;", b"x" * 300, ModelUnreachable, AROUND),
        (CHUNKED + chunk(HALF) + b"0\r\n", b"x-a: " + b"b" * 200 + b"\r\n", ModelUnreachable, AROUND),
        (CHUNKED + chunk(HALF), chunk(b"data: " + b"x" * 50_000), ModelGarbled, "an event of it has no end"),
        (CHUNKED + chunk(HALF), chunk(b"data: " + b"x" * 50_000 + b"\n"), ModelGarbled, "an event of it has no end"),
        (CHUNKED + chunk(HALF), chunk(b": " + b"x" * 50_000), ModelGarbled, "an event of it has no end"),
        (b"HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n", chunk(b"x" * 5000), ModelOverloaded, "HTTP 500: xxx"),
        (b"HTTP/1.1 403 No\r\n\r\n", b"n" * 5000, ModelRefused, "HTTP 403: nnn"),
    ],
)  # fmt: skip
def test_what_is_poured_out_is_bounded(before: bytes, drop: bytes, kind: type[ModelError], said: str) -> None:
    found, sentence = failing(pouring(before, drop))
    assert found is kind
    assert said in sentence


def test_a_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At less than what it is bounded to, which would take a minute to read."""
    monkeypatch.setattr(chat, "_REPLY", 500_000)
    kind, said = failing(pouring(CHUNKED, chunk(HALF * 100)))
    assert kind is ModelGarbled
    assert "its reply has no end" in said


@pytest.mark.parametrize("gently", [False, True])
@pytest.mark.parametrize(
    ("before", "drop", "said"),
    [
        (CHUNKED, chunk(b": alive\n"), "stayed silent for 0.5 seconds"),
        (CHUNKED, chunk(b"\n"), "stayed silent for 0.5 seconds"),
        (CHUNKED, chunk(b"event: ping\n\n"), "stayed silent for 0.5 seconds"),
        (
            CHUNKED + chunk(HALF),
            chunk(b": alive\n"),
            "stayed silent for 0.5 seconds in the middle of a reply",
        ),
    ],
)
def test_noise_is_silence(before: bytes, drop: bytes, said: str, gently: bool) -> None:
    kind, sentence = failing(pouring(before, drop, gently=gently), silence=SILENCE)
    assert kind is ModelUnreachable
    assert said in sentence


@pytest.mark.parametrize(
    "before", [b"", b"H", b"HTTP/1.1 200 OK\r\nx-a: b", CHUNKED, CHUNKED + b"5", CHUNKED + b"5\r\nda"]
)
def test_whoever_says_nothing_more_is_not_waited_for(before: bytes) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.say(before)
        await peer.reader.read()  # until the client goes away

    kind, said = failing(talk, silence=SILENCE)
    assert kind is ModelUnreachable
    assert "stayed silent for 0.5 seconds" in said


def test_a_head_that_comes_too_slowly() -> None:
    kind, said = failing(pouring(b"HTTP/1.1 200 OK\r\nx-a: ", b"b", gently=True), silence=SILENCE)
    assert kind is ModelUnreachable
    assert "stayed silent" in said


def test_a_request_that_nobody_takes() -> None:
    """16 MB, and the other side reads nothing."""
    long = [ChatMessage("user", "x" * 16_000_000)]

    async def talk(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await left.wait()
        peer.writer.transport.abort()

    async def whole() -> None:
        async with serving(talk) as server, asking(server.url, silence=SILENCE) as client:
            try:
                with pytest.raises(ModelUnreachable, match="stayed silent"):
                    await collect(client, long)
            finally:
                left.set()

    left = asyncio.Event()
    asyncio.run(whole())


def test_a_refusal_that_comes_before_the_request_was_taken() -> None:
    long = [ChatMessage("user", "x" * 16_000_000)]

    async def talk(peer: Peer) -> None:
        await peer.say(b"HTTP/1.1 413 Too large\r\ncontent-length: 8\r\nconnection: close\r\n\r\ntoo much")
        await peer.reader.read(100_000)

    async def whole() -> None:
        async with serving(talk) as server, asking(server.url) as client:
            with pytest.raises(ModelError, match="too much"):
                await collect(client, long)

    asyncio.run(whole())


def test_whoever_waits_does_not_hold_what_it_said() -> None:
    """An agent waits for most of its life."""
    long = [ChatMessage("user", "x" * 4_000_000)]
    held = 0

    async def talk(peer: Peer) -> None:
        nonlocal held
        head = await peer.reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        while left:
            left -= len(await peer.reader.read(min(left, 65536)))
        await asyncio.sleep(0)
        held = tracemalloc.get_traced_memory()[0]
        await peer.say(WHOLE)

    async def whole() -> str:
        async with serving(talk) as server, asking(server.url) as client:
            return (await collect(client, long)).text

    tracemalloc.start()
    try:
        assert asyncio.run(whole()) == "Hello there."
    finally:
        tracemalloc.stop()
    assert 0 < held < 4_000_000


# --- connections --------------------------------------------------------------------------------------


async def three(url: str, *, attempts: int = 1) -> list[Collected]:
    """Three replies, one after the other."""
    async with asking(url, attempts=attempts) as client:
        return [await collect(client, MESSAGES) for _ in range(3)]


def replies(talk: Talk, *, attempts: int = 1) -> tuple[list[Collected], Server]:
    async def whole() -> tuple[list[Collected], Server]:
        async with serving(talk) as server:
            return await three(server.url, attempts=attempts), server

    return asyncio.run(whole())


def keeping(*answers: bytes) -> Talk:
    """Answers one request after another over a connection, then closes it when one more comes."""

    async def talk(peer: Peer) -> None:
        for answer in answers:
            await peer.request()
            await peer.say(answer)
        await peer.request()

    return talk


def test_a_connection_serves_one_reply_after_the_other() -> None:
    found, server = replies(keeping(*[WHOLE] * 3))
    assert [one.text for one in found] == ["Hello there."] * 3
    assert [len(peer.requests) for peer in server.peers] == [3]


def test_a_reply_that_says_it_is_done_before_its_body_ends_keeps_the_connection() -> None:
    async def talk(peer: Peer) -> None:
        for _ in range(3):
            await peer.request()
            await peer.say(WHOLE.removesuffix(b"0\r\n\r\n"))
            await asyncio.sleep(0)
            await peer.say(chunk(b": bye\n\n") + b"0\r\n\r\n")

    found, _ = replies(talk)
    assert [one.text for one in found] == ["Hello there."] * 3


@pytest.mark.parametrize("answer", [
    OK + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n",
    OK + b"\r\n" + BODY,
    WHOLE + b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    WHOLE + b"x",
])  # fmt: skip
def test_a_connection_that_can_not_go_on_is_not_used_again(answer: bytes) -> None:
    found, server = replies(says(answer))
    assert [one.text for one in found] == ["Hello there."] * 3
    assert [len(peer.requests) for peer in server.peers] == [1, 1, 1]


def test_a_connection_that_was_closed_meanwhile_is_made_anew_without_a_word() -> None:
    """The other side takes the second request and goes away without a byte, as one does whose time for it is up."""
    found, server = replies(keeping(WHOLE))
    assert [one.text for one in found] == ["Hello there."] * 3
    assert not any(one.restarts for one in found)
    assert [len(peer.requests) for peer in server.peers] == [2, 2, 1]


def test_a_new_connection_that_is_closed_without_a_byte_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        if peer.number:
            await peer.say(WHOLE)

    found, server = replies(talk, attempts=2)
    assert [len(one.restarts) for one in found] == [1, 0, 0]
    assert [len(peer.requests) for peer in server.peers][:2] == [1, 1]


def test_a_kept_connection_that_breaks_off_after_a_byte_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.say(WHOLE)
        if not peer.number:
            await peer.request()
            await peer.say(b"H")

    found, server = replies(talk, attempts=2)
    assert [len(one.restarts) for one in found] == [0, 1, 0]
    assert len(server.requests) == 4


def test_a_refusal_keeps_the_connection() -> None:
    refusal = (
        b'HTTP/1.1 429 Slow down\r\nretry-after: 7\r\ncontent-length: 27\r\n\r\n{"error":{"message":"busy"}}'
    )
    found, server = replies(keeping(refusal.replace(b"27", b"28"), WHOLE, WHOLE, WHOLE), attempts=2)
    assert [len(one.restarts) for one in found] == [1, 0, 0]
    assert "HTTP 429: busy" in found[0].restarts[0].reason
    assert found[0].restarts[0].seconds == 7.0
    assert len(server.peers) == 1


def test_whoever_finds_no_place_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_MOST", 2)

    async def talk(peer: Peer) -> None:
        await peer.request()
        both.set() if peer.number == 1 else None
        await told.wait()
        await peer.say(WHOLE)

    async def whole() -> tuple[list[str], int]:
        async with serving(talk) as server, asking(server.url) as client, asyncio.TaskGroup() as group:
            tasks = [group.create_task(collect(client, MESSAGES)) for _ in range(6)]
            await both.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            count = len(server.peers)
            told.set()
            return [(await task).text for task in tasks], count

    both, told = asyncio.Event(), asyncio.Event()
    assert asyncio.run(whole()) == (["Hello there."] * 6, 2)


def test_no_place_in_time_is_silence_and_every_end_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "_MOST", 1)

    async def talk(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await pouring(CHUNKED, chunk(HALF), gently=True)(peer)  # goes on until it is cancelled
        await peer.say(
            [b"", WHOLE[:9], b"no HTTP", CHUNKED + chunk(HALF), b"HTTP/1.1 400 No\r\n\r\n", WHOLE][
                peer.number
            ]
        )

    async def whole() -> str:
        async with serving(talk) as server, asking(server.url, silence=SILENCE) as client:
            first = asyncio.ensure_future(collect(client, MESSAGES))
            while not server.requests:  # noqa: ASYNC110
                await asyncio.sleep(0)
            with pytest.raises(ModelUnreachable, match="stayed silent"):
                await collect(client, MESSAGES)
            first.cancel()
            await asyncio.wait([first])
            for _ in range(4):
                with pytest.raises(ModelError):
                    await collect(client, MESSAGES)
            return (await collect(client, MESSAGES)).text

    assert asyncio.run(whole()) == "Hello there."


def test_closing_leaves_no_connection() -> None:
    async def whole() -> Sequence[Peer]:
        async with serving(keeping(*[WHOLE] * 9)) as server:
            client = model(server.url)
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(collect(client, MESSAGES))
            await client.close()
            async with asyncio.timeout(10):
                await asyncio.wait(
                    [asyncio.ensure_future(peer.writer.wait_closed()) for peer in server.peers]
                )
            return server.peers

    assert 1 <= len(asyncio.run(whole())) <= 5


# --- what the SDK's transport serves --------------------------------------------------------------------


def same(one: tuple[dict[str, str], bytes], other: tuple[dict[str, str], bytes]) -> None:
    """The two say the same, but for the encodings that the SDK can read."""
    (first, sent), (second, sent_too) = one, other
    assert sent == sent_too
    assert first.pop("accept-encoding") == "identity"
    assert "gzip" in second.pop("accept-encoding")
    assert first.pop("connection") == second.pop("connection") == "keep-alive"
    assert first == second


def test_a_request_is_the_sdks_to_the_byte_and_a_redirect_is_followed_as_the_sdk_does() -> None:
    async def talk(peer: Peer) -> None:
        while True:
            headers, _ = await peer.request()
            if "/elsewhere" in headers[""]:
                await peer.say(WHOLE)
            else:
                await peer.say(b"HTTP/1.1 307 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    found, server = ask(talk)
    assert found.text == "Hello there."
    lines = [headers[""] for headers, _ in server.requests]
    assert lines == ["POST /v1/chat/completions HTTP/1.1"] * 2 + ["POST /elsewhere HTTP/1.1"]
    same(server.requests[0], server.requests[1])


def test_a_redirect_to_nowhere_is_a_refusal() -> None:
    async def talk(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.say(b"HTTP/1.1 304 Not Modified\r\n\r\n")

    kind, said = failing(talk)
    assert kind is ModelRefused
    assert "HTTP 304" in said


def test_an_encoding_that_nobody_asked_for_is_read() -> None:
    packed = gzip.compress(BODY)

    async def talk(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.say(
                OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed
            )

    found, server = ask(talk)
    assert found.text == "Hello there."
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        b"",
        CHUNKED,
        CHUNKED + chunk(HALF),
        CHUNKED + chunk(HALF)[:-1],
        CHUNKED + chunk(HALF + LAST),
        CHUNKED + chunk(HALF) + b"0\r\n\r\n",
        CHUNKED + chunk(HALF + DONE) + b"0\r\n\r\n",
        CHUNKED + chunk(b"data: 5\n\n") + b"0\r\n\r\n",
        CHUNKED + chunk(b"data: nothing\n\n") + b"0\r\n\r\n",
        CHUNKED + chunk(b'data: {"error":{"message":"no room","code":507}}\n\n') + b"0\r\n\r\n",
        CHUNKED + chunk(HALF + b'data: {"error":"gone"}\n\n') + b"0\r\n\r\n",
        OK + b"content-length: 999\r\n\r\n" + HALF,
        OK + b"content-length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 400 No\r\n\r\nno\n",
        b'HTTP/1.1 401 No\r\ncontent-length: 20\r\n\r\n{"detail": "no key"}',
        b'HTTP/1.1 404 No\r\ncontent-length: 32\r\n\r\n{"error": {"message": "nobody"}}',
        b"HTTP/1.1 429 Slow\r\nretry-after-ms: 250\r\ncontent-length: 5\r\n\r\n[1,2]",
        b"HTTP/1.1 503 Oh\r\ncontent-type: text/html\r\ncontent-length: 12\r\n\r\n<html>\xff\xfe!!!!",
    ],
)
def test_both_transports_say_the_same(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's is reached through a proxy of the environment, which is the same server."""

    async def outcome(url: str) -> Collected | tuple[type[ModelError], str]:
        async with asking(url) as client:
            try:
                return await collect(client, MESSAGES)
            except ModelError as error:
                return type(error), str(error).replace(url, "URL")

    async def whole() -> None:
        async with serving(says(answer)) as server:
            ours = await outcome(server.url)
            monkeypatch.setenv("http_proxy", server.url)
            monkeypatch.delenv("no_proxy", raising=False)
            theirs = await outcome("http://model.invalid/v1")
            assert [headers[""].split(" ")[1][:4] for headers, _ in server.requests] == ["/v1/", "http"]
        assert ours == theirs

    asyncio.run(whole())


def test_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> tuple[Collected, Server]:
        async with serving(says(WHOLE)) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url)
            monkeypatch.delenv("no_proxy", raising=False)
            async with asking("http://model.invalid:1234/v1") as client:
                return await collect(client, MESSAGES), proxy

    found, proxy = asyncio.run(whole())
    assert found.text == "Hello there."
    assert proxy.requests[0][0][""] == "POST http://model.invalid:1234/v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize(
    ("past", "direct", "ours"),
    [
        ("", True, True),
        ("*", False, True),
        ("LOCALHOST, 127.0.0.1", False, True),
        ("127.0.0.0/8", False, False),
    ],
)
def test_past_a_proxy(past: str, direct: bool, ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last is, the SDK knows."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", past)

    async def whole() -> tuple[str, Server]:
        async with serving(says(WHOLE)) as server:
            client = model(server.url, direct=direct)
            try:
                return (await collect(client, MESSAGES)).text, server
            finally:
                await client.close()

    said, server = asyncio.run(whole())
    assert said == "Hello there."
    assert (server.requests[0][0]["accept-encoding"] == "identity") is ours


def test_a_user_in_the_address() -> None:
    async def whole() -> tuple[Collected, Server]:
        async with serving(says(WHOLE)) as server, asking(server.url.replace("//", "//me:word@")) as client:
            return await collect(client, MESSAGES), server

    found, server = asyncio.run(whole())
    assert found.text == "Hello there."
    assert server.requests[0][0]["authorization"].startswith("Basic ")


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A folder with a certificate for 127.0.0.1, signed by itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "certificate.pem", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    return tmp_path


def server_side(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def test_tls_with_an_authority_of_ones_own(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "certificate.pem"))

    async def whole() -> tuple[list[Collected], Server]:
        async with serving(keeping(*[WHOLE] * 3), server_side(authority)) as server:
            return await three(server.url), server

    found, server = asyncio.run(whole())
    assert [one.text for one in found] == ["Hello there."] * 3
    assert [len(peer.requests) for peer in server.peers] == [3]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_without_trust_or_for_another_name(
    authority: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host == "localhost":  # trusted, but not for that name
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "certificate.pem"))

    async def whole() -> None:
        async with serving(keeping(WHOLE), server_side(authority)) as server:
            async with asking(server.url.replace("127.0.0.1", host)) as client:
                with pytest.raises(ModelUnreachable, match="has no certificate that this machine trusts"):
                    await collect(client, MESSAGES)
            assert not server.requests

    asyncio.run(whole())


def test_tls_that_is_none() -> None:
    async def talk(peer: Peer) -> None:
        await peer.say(WHOLE)

    async def whole() -> None:
        async with serving(talk) as server, asking(server.url.replace("http", "https")) as client:
            with pytest.raises(ModelUnreachable, match=r"can't be reached .*SSL"):
                await collect(client, MESSAGES)

    asyncio.run(whole())


def test_a_server_that_does_not_get_on_with_tls(authority: Path) -> None:
    async def talk(peer: Peer) -> None:
        await peer.reader.read()

    async def whole() -> None:
        async with serving(talk) as server:
            client = OpenAIModel(
                ModelEndpoint(url=server.url.replace("http", "https"), key=KEY),
                profile=ModelProfile("m", 8192),
                clock=VirtualClock(),
                rng=random.Random(7),
                timeouts=Timeouts(connect=SILENCE),
                retries=Retries(attempts=1),
            )
            try:
                with pytest.raises(ModelUnreachable, match=r"can't be reached within 0\.5 seconds"):
                    await collect(client, MESSAGES)
            finally:
                await client.close()

    asyncio.run(whole())
