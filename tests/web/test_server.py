"""A real listening server with an in-memory session: every refusal, and the wire protocol."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from core.errors import UsageError
from core.journal.record import Record
from core.ports import JSON
from tests.web.fake import LABEL, FakeRuntime, FakeSession, node
from web import WebServer
from web.follower import NEWEST, TOGETHER
from web.records import record_message
from web.server import MAX_MESSAGE, MAX_SOCKETS

PATIENCE = 60.0
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
    given = headers or {"Authorization": f"Bearer {server.token}"}
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


async def send(client: ClientConnection, **message: object) -> None:
    await client.send(json.dumps(message))


async def take(client: ClientConnection) -> Message:
    message = json.loads(await asyncio.wait_for(client.recv(), PATIENCE))
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


def test_signing_in_and_reading_the_page() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            assert server.url == f"http://127.0.0.1:{server.port}/?token={server.token}"
            assert len(server.token) >= 43
            status, headers, _ = await http(server, get(server, f"/?token={server.token}"))
            assert (status, headers["location"]) == (303, "/")
            assert headers["set-cookie"].startswith(f"iact_{server.port}=")
            assert headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
            status, headers, body = await http(server, get(server, "/", Cookie=await cookie(server)))
            assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert b"<title>iact</title>" in body
            assert server.token.encode() not in body

    run(test)


def test_every_answer_carries_the_safety_headers() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine = await cookie(server)
            requests = [
                get(server, "/", Cookie=mine),
                get(server, "/static/js/main.js", Cookie=mine),
                get(server, "/"),
                get(server, "/", Host="evil.test"),
                get(server, "/nothing", Cookie=mine),
                get(server, f"/?token={server.token}"),
                get(server, "/ws", Cookie=mine, Origin=f"http://127.0.0.1:{server.port}"),
            ]
            for request in requests:
                _, headers, _ = await http(server, request)
                policy = headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["referrer-policy"] == "no-referrer"
                assert headers["cross-origin-opener-policy"] == "same-origin"
                assert headers["cross-origin-resource-policy"] == "same-origin"
                assert headers["cache-control"] == "no-store"
                assert not [name for name in headers if name.startswith("access-control")]
                assert "server" not in headers

    run(test)


def test_without_the_token_every_route_says_how_to_get_in() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            for path in ("/", "/static/js/main.js", "/nothing", "/?token=wrong"):
                status, headers, body = await http(server, get(server, path))
                assert status == 401
                assert "set-cookie" not in headers
                assert "the address that was printed" in body.decode()
            status, _, _ = await http(server, get(server, "/ws", Origin=f"http://127.0.0.1:{server.port}"))
            assert status == 401

    run(test)


def test_a_cookie_of_an_earlier_run_is_stale() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as first:
            stale, port = await cookie(first), first.port
        async with WebServer(FakeRuntime(), port=port) as second:
            status, _, _ = await http(second, get(second, "/", Cookie=stale))
            assert status == 401

    run(test)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static//js/main.js",
        "/static/js/main.js%00",
        "/static",
        "/static/",
        "/static/js/",
        "/../../etc/passwd",
        "//etc/passwd",
        "/server.py",
        "/favicon.ico",
        "http://127.0.0.1/static/js/main.js",
    ],
)
def test_there_is_no_path_but_those_in_the_table(path: str) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            status, _, body = await http(server, get(server, path, Cookie=await cookie(server)))
            assert status == 404
            assert b"Traceback" not in body

    run(test)


def test_methods_hosts_and_origins() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine, ours = await cookie(server), f"http://127.0.0.1:{server.port}"
            post = get(server, "/", Cookie=mine, Origin=ours).replace("GET", "POST", 1)
            status, headers, _ = await http(server, post)
            assert (status, headers["allow"]) == (405, "GET")
            cross = get(server, "/", Cookie=mine, Origin="http://evil.test").replace("GET", "POST", 1)
            assert (await http(server, cross))[0] == 403
            assert (await http(server, get(server, "/", Cookie=mine, Host="evil.test")))[0] == 421
            # A request with a body is not even read.
            form = (
                get(server, "/", Cookie=mine, Origin=ours, Content_Length="3").replace("GET", "POST", 1)
                + "a=1"
            )
            assert (await http(server, form))[0] == 0

    run(test)


def test_a_slow_download_is_complete() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            _, headers, body = await http(
                server, get(server, "/static/css/layout.css", Cookie=await cookie(server))
            )
            assert len(body) == int(headers["content-length"])

    run(test)


def test_the_page_is_packed_for_those_who_take_that() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine = await cookie(server)
            for path in ("/", "/static/js/main.js"):
                _, plain, content = await http(server, get(server, path, Cookie=mine))
                _, packed, short = await http(
                    server, get(server, path, Cookie=mine, Accept_Encoding="br, gzip;q=0.5")
                )
                assert "content-encoding" not in plain
                assert packed["content-encoding"] == "gzip"
                assert packed["content-type"] == plain["content-type"]
                assert len(short) < len(content) / 2
                assert gzip.decompress(short) == content

    run(test)


def test_binding_beyond_loopback_needs_to_be_said() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(UsageError, match="other machines"):
            WebServer(FakeRuntime(), host=host)
    WebServer(FakeRuntime(), host="0.0.0.0", allow_remote=True)


def test_a_port_in_use_is_one_sentence() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            with pytest.raises(UsageError, match=f"port {server.port} .*--port"):
                await WebServer(FakeRuntime(), port=server.port).start()

    run(test)


def test_the_token_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            await cookie(server)
            async with dial(server) as client:
                await send(client, type="hello", session=None, id=1)
                await until(client, type="ok")
            mine = [record for record in caplog.records if record.name.startswith("iact")]
            assert not [record for record in mine if server.token in record.getMessage()]

    run(test)


def test_a_client_that_trickles_its_request_is_dropped() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(), open_timeout=0.05) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: ")
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.transport.abort()

    run(test)


def test_connections_beyond_the_limit_are_dropped_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("web.server.MAX_CONNECTIONS", 5)

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(5)]
            dropped, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(dropped.read(), PATIENCE) == b""
            writer.transport.abort()
            for _, other in idle:
                other.transport.abort()
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(ConnectionResetError):
                        if (await http(server, get(server, "/")))[0] == 401:
                            return

    run(test)


# --- websocket: who may


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
                    assert seen[0] == {"type": "session", "id": None, "since": 0, "model": LABEL}

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
    monkeypatch.setattr("web.connection.MESSAGES_PER_SECOND", 0.0)

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
    monkeypatch.setattr("web.connection.MESSAGES_PER_SECOND", 0.0)

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


def test_records_come_in_order_without_gap_or_doubling() -> None:
    async def test() -> None:
        session = FakeSession("s")
        for number in range(50):
            session.append("notice", body=str(number))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=20, id="h")
            first = await take(client)
            await session.watched()
            session.append("notice", body="while catching up")
            seen = [first, *await until(client, type="record", n=51)]
            session.append("notice", body="live")
            seen += await until(client, type="record", n=52)
            assert numbers(seen) == list(range(21, 53))
            kinds = [message["type"] for message in seen if message["type"] not in ("record", "ok")]
            assert kinds == ["session", "tree"]

    run(test)


def test_a_record_that_comes_between_watching_and_reading_is_sent_once() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("notice", body="before")
        session.on_watch = lambda: session.append("notice", body="between")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            seen = await until(client, type="record", n=2)
            session.append("notice", body="after")
            assert numbers(seen + await until(client, type="record", n=3)) == [1, 2, 3]

    run(test)


def test_the_frames_of_a_session() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="*hi*")
        session.drafts["/a"] = "so far"
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=0)
            seen = await until(client, type="delta")
            facts = next(message for message in seen if message["type"] == "session")
            assert facts == {
                "type": "session", "id": "s", "since": 0, "intent": 1, "model": LABEL,
                "journal": str(session.journal), "last": 1, "readonly": False,
            }  # fmt: skip
            record = next(message for message in seen if message["type"] == "record")
            assert (record["n"], record["kind"], record["agent"]) == (1, "say", "/")
            assert record["html"] == "<p><em>hi</em></p>\n"
            assert seen[-1] == {"type": "delta", "agent": "/a", "text": "so far", "restart": True}
            session.write("/a", ", and on")
            assert (await until(client, type="delta"))[-1] == {
                "type": "delta",
                "agent": "/a",
                "text": ", and on",
            }
            session.print("/a", 4, "out")
            assert (await take(client)) == {"type": "output", "agent": "/a", "call": 4, "text": "out"}
            session.show(node("/"), node("/a", "acting"))
            tree = await take(client)
            assert [(view["path"], view["state"]) for view in tree["nodes"]] == [
                ("/", "idle"),
                ("/a", "acting"),
            ]

    run(test)


def test_a_lazy_client_asks_for_the_html_of_old_records() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("turn", body="```CALL a\nDo *it*.\n```\n" + "x" * 9000)
        for number in range(2, 401):
            session.append("say", body=f"*{number}*")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", lazy=True)
            frames = await until(client, type="record", n=400)
            together = [one["list"] for one in frames if one["type"] == "records"]
            assert max(map(len, together)) <= TOGETHER
            seen = [record for some in together for record in some]
            seen += [one for one in frames if one["type"] == "record"]
            assert [one["n"] for one in seen] == list(range(1, 401))
            with_html = [one["n"] for one in seen if "html" in one]
            assert with_html == list(range(400 - NEWEST + 1, 401))
            assert (seen[0]["messages"], len(seen[0]["body"])) == ([{"action": 0, "to": "/a"}], 2000)
            assert seen[0]["body_size"] > 9000
            await send(client, type="render", numbers=[2, 1, 401, 0], id=1)
            answer = (await until(client, type="ok", id=1))[-1]
            [two, one] = answer["list"]
            assert two == {"n": 2, "html": "<p><em>2</em></p>\n"}
            assert one["n"] == 1
            [told] = one["messages"]
            assert told == {"action": 0, "to": "/a", "html": "<p>Do <em>it</em>.</p>\n"}
            session.append("say", body="*new*")
            assert "html" in (await until(client, type="record", n=401))[-1]
            await send(client, type="render", numbers=list(range(401)), id=2)
            assert (await until(client, id=2))[-1]["code"] == "invalid"

    run(test)


def test_what_many_watch_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []

    def counting(record: Record, *rest: Any) -> Any:
        rendered.append(record.n)
        return record_message(record, *rest)

    monkeypatch.setattr("web.rendered.record_message", counting)

    async def test() -> None:
        session = FakeSession("s")
        for number in range(20):
            session.append("say", body=f"*{number}*")
        async with WebServer(FakeRuntime(session)) as server:
            for _ in range(5):
                async with dial(server) as client:
                    await send(client, type="hello", session="s")
                    await until(client, type="record", n=20)
        assert rendered == list(range(1, 21))

    run(test)


def test_a_number_beyond_the_journal_starts_from_the_beginning() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="one")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=99)
            seen = await until(client, type="record")
            assert seen[-1]["n"] == 1
            assert next(message for message in seen if message["type"] == "session")["since"] == 0

    run(test)


def test_a_watcher_that_fell_behind_catches_up_from_the_journal() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=4)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="tree")
            await session.watched()
            for number in range(100):
                session.append("notice", body=str(number))
            assert numbers(await until(client, type="record", n=100)) == list(range(1, 101))

    run(test)


def test_a_new_session_begins_with_the_first_message() -> None:
    async def test() -> None:
        runtime = FakeRuntime()
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="hello", session=None, id=1)
            await until(client, type="ok", id=1)
            assert runtime.opened == []
            await send(client, type="say", text="Hello", id=2)
            seen = await until(client, type="ok", id=2)
            assert runtime.opened == [None]
            assert (seen[-1]["n"], seen[-1]["session"]) == (1, "new-1")
            if not numbers(seen):
                seen += await until(client, type="record")
            assert numbers(seen) == [1]

    run(test)


def test_every_control_reaches_the_session_and_is_answered_with_its_record() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.show(node("/"), node("/a"))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            messages: list[dict[str, object]] = [
                {"type": "say", "text": "do"},
                {"type": "inject", "path": "/a", "text": "stop", "mode": "interrupt"},
                {"type": "pause", "path": "/a"},
                {"type": "resume", "path": "/a"},
                {"type": "cancel", "path": "/a"},
                {"type": "intent", "value": 2},
                {"type": "clear", "call": 3, "allow": True},
                {"type": "clear", "call": 4, "allow": True, "remember": "call"},
                {"type": "clear", "call": 5, "allow": True, "remember": {"function": "m.*"}},
                {"type": "lockdown", "value": True},
                {"type": "declassify", "path": "/a"},
                {"type": "declassify", "path": "/a", "name": "page_1"},
            ]
            for number, message in enumerate(messages, 1):
                await send(client, id=number, **message)
                assert (await until(client, type="ok", id=number))[-1]["n"] == number
            assert session.calls == [
                ("say", "do"),
                ("inject", "/a", "stop", "interrupt"),
                ("pause", "/a"),
                ("resume", "/a"),
                ("cancel", "/a"),
                ("intent", "2"),
                ("clear", "3", "True", "None"),
                ("clear", "4", "True", "call"),
                ("clear", "5", "True", "{'function': 'm.*', 'arguments': {}}"),
                ("lockdown", "True"),
                ("declassify", "/a", "None"),
                ("declassify", "/a", "page_1"),
            ]
            await send(client, type="hello", session="s", since=12)
            assert (await until(client, type="session"))[-1]["intent"] == 2

    run(test)


def test_a_changed_intent_is_told_to_everyone() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as one, dial(server) as other:
            for client in (one, other):
                await send(client, type="hello", session="s")
                await until(client, type="tree")
            await session.watched(2)
            await send(one, type="intent", value=0)
            assert (await until(other, type="session"))[-1]["intent"] == 0

    run(test)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"type":"nonsense","id":1}', "unknown"),
        ('{"type":["say"],"id":1}', "invalid"),
        ('{"id":1}', "invalid"),
        ('{"type":"say","id":1}', "invalid"),
        ('{"type":"say","text":"  ","id":1}', "invalid"),
        ('{"type":"say","text":7,"id":1}', "invalid"),
        ('{"type":"inject","path":"a","text":"x","id":1}', "invalid"),
        ('{"type":"inject","path":"/","text":"x","mode":"shout","id":1}', "invalid"),
        ('{"type":"intent","value":3,"id":1}', "invalid"),
        ('{"type":"intent","value":true,"id":1}', "invalid"),
        ('{"type":"hello","session":"s","since":-1,"id":1}', "invalid"),
        ('{"type":"hello","session":"../../etc","id":1}', "usage"),
        ('{"type":"hello","session":"locked","id":1}', "locked"),
        ('{"type":"pause","path":"/nobody","id":1}', "usage"),
        ('{"type":"clear","call":1,"id":1}', "invalid"),
        ('{"type":"clear","call":1,"allow":1,"id":1}', "invalid"),
        ('{"type":"clear","call":1,"allow":true,"remember":"all","id":1}', "invalid"),
        ('{"type":"lockdown","value":1,"id":1}', "invalid"),
        ('{"type":"module.add","source":"/nowhere/x","id":1}', "usage"),
        ('{"type":"module.remove","name":"x","id":1}', "usage"),
        ('{"type":"module.approve","name":"x","id":1}', "invalid"),
        ('{"type":"module.approve","name":"x","digest":"0123abcd","id":1}', "usage"),
        ('{"type":"fork","at":0,"text":"x","id":1}', "invalid"),
        ('{"type":"fork","at":1,"text":" ","id":1}', "invalid"),
        ('{"type":"open","journal":"","id":1}', "invalid"),
        ('{"type":"open","journal":"/etc/passwd","id":1}', "usage"),
        ('{"type":"seek","at":1,"id":1}', "usage"),
        ('{"type":"seek","at":0,"id":1}', "invalid"),
        ('{"type":"seek","at":"1","id":1}', "invalid"),
        ('{"type":"context","path":"a","id":1}', "invalid"),
        ('{"type":"variables","path":"/nobody","id":1}', "usage"),
        ('{"type":"variable","path":"/","name":"../x","id":1}', "invalid"),
        ('{"type":"variable","path":"/nobody","name":"x","id":1}', "usage"),
    ],
)
def test_a_wrong_message_is_one_sentence(message: str, code: str) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(FakeSession("s"))) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await client.send(message)
            error = (await until(client, type="error"))[-1]
            assert (error["id"], error["code"]) == (1, code)
            assert error["message"].endswith(".")
            assert "\n" not in error["message"]

    run(test)


@pytest.mark.parametrize(
    "frame", ["", "x", "[]", "null", "[" * 100_000, '{"type":', '{"a":NaN}', b"{}", '"\\ud800"']
)
def test_what_is_no_message_is_refused_and_the_socket_stays(frame: str | bytes) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server, dial(server) as client:
            await client.send(frame)
            assert (await take(client))["code"] == "invalid"
            await send(client, type="hello", session=None, id=5)
            await until(client, type="ok", id=5)

    run(test)


def test_an_error_of_our_own_shows_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        session = FakeSession("s", fail=RuntimeError("secret detail /home/x"))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await send(client, type="say", text="x", id=1)
            error = (await until(client, type="error"))[-1]
            assert error["code"] == "internal"
            assert "secret" not in json.dumps(error)

    run(test)
    assert "secret detail" in caplog.text


def test_sessions_are_listed_newest_first() -> None:
    async def test() -> None:
        runtime = FakeRuntime(FakeSession("old"), FakeSession("new"))
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="sessions", id=1)
            listed = (await take(client))["list"]
            assert [info["id"] for info in listed] == ["new", "old"]

    run(test)


def test_lone_surrogates_do_not_break_the_line() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await until(client, type="tree")
            await session.watched()
            session.write("/", "a\ud800b")
            assert (await until(client, type="delta"))[-1]["text"] == "a?b"

    run(test)


def test_a_long_result_is_shown_from_its_blob(tmp_path: Path) -> None:
    async def test() -> None:
        text = "line <1>\n" * 5000
        digest = hashlib.sha256(text.encode()).hexdigest()
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs" / digest).write_text(text)
        session = FakeSession("s", journal=tmp_path / "journal.md")
        stored: JSON = {"sha256": digest, "size": len(text)}
        lost: JSON = {"sha256": "0" * 64, "size": 12_345}
        session.append("result", function="shell.run", status="ok", media="text/plain", blob=stored)
        session.append("result", function="shell.run", status="ok", media="text/plain", blob=lost)
        session.append("result", function="shell.run", status="ok", media="image/png", blob=stored)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            seen = [one for one in await until(client, type="record", n=3) if one["type"] == "record"]
            assert "line &lt;1&gt;" in seen[0]["html"]
            assert "are left out here" in seen[0]["html"]
            assert "12,345 bytes, kept beside the journal" in seen[1]["html"]
            assert "45,000 bytes, kept beside the journal" in seen[2]["html"]

    run(test)


def test_a_file_comes_in_pieces_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.uploads.LARGEST", 1000)
    monkeypatch.setattr("web.uploads.AT_ONCE", 1)

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client, dial(server) as other:
            for one in (client, other):
                await send(one, type="hello", session="s", id=0)
                await until(one, type="ok", id=0)

            async def refused(wanted: str, **message: object) -> None:
                await send(client, id=1, **message)
                error = (await until(client, id=1))[-1]
                assert (error["type"], wanted in error["message"]) == ("error", True), error

            await refused("No file", type="upload.end")
            await refused("may have 1,000", type="upload", name="a", size=1001)
            await client.send(b"nobody asked")
            assert (await until(client, type="error"))[-1]["code"] == "invalid"
            await send(client, type="upload", name="a.txt", media="text/plain", size=6, id=2)
            await until(client, type="ok", id=2)
            await send(other, type="upload", name="b", size=1, id=2)
            assert "Too many" in (await until(other, id=2))[-1]["message"]
            await client.send(b"abc")
            await refused("Only 3 of 6", type="upload.end")
            await send(client, type="upload", name="a.txt", media="text/plain", size=6, id=3)
            await until(client, type="ok", id=3)
            for piece in (b"abc", b"", b"def"):
                await client.send(piece)
            await send(client, type="upload.end", id=4)
            ended = (await until(client, type="ok", id=4))[-1]
            assert (ended["n"], ended["name"]) == (1, "file_1")
            assert session.calls == [("upload", "a.txt", "text/plain", "abcdef")]
            await send(client, type="upload", name="a", size=2, id=5)
            await until(client, type="ok", id=5)
            await client.send(b"abc")
            assert "More than the 2" in (await until(client, type="error"))[-1]["message"]
            # A client that goes in the middle leaves room for others.
            await send(client, type="upload", name="a", size=2, id=6)
            await until(client, type="ok", id=6)
            await client.close()
            async with asyncio.timeout(PATIENCE):
                while True:
                    await send(other, type="upload", name="b", size=1, id=7)
                    if (await until(other, id=7))[-1]["type"] == "ok":
                        break

    run(test)


def test_a_download_is_an_attachment_and_there_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine = await cookie(server)
            name = "</script>\r\nSet-Cookie: x=1; \u202e.html"
            address = server.offer(name, b"<script>alert(1)</script>")
            assert (await http(server, get(server, address)))[0] == 401
            status, headers, body = await http(server, get(server, address, Cookie=mine))
            assert (status, body) == (200, b"<script>alert(1)</script>")
            assert headers["content-type"] == "application/octet-stream"
            assert headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["content-disposition"].startswith('attachment; filename="_script_')
            assert "set-cookie" not in headers
            assert (await http(server, get(server, address, Cookie=mine)))[0] == 404

    run(test)


def test_what_needs_the_product_around_says_so() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            for number, name in enumerate(("about", "export"), 1):
                await send(client, type=name, id=number)
                assert "iact serve" in (await until(client, id=number))[-1]["message"]

    run(test)


def test_a_closed_session_is_told() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await until(client, type="tree")
            await session.watched()
            session.end()
            assert "closed" in (await until(client, type="notice"))[-1]["text"]

    run(test)


def test_stopping_leaves_no_task_and_no_watcher() -> None:
    async def test() -> None:
        session = FakeSession("s")
        before = asyncio.all_tasks()
        server = WebServer(FakeRuntime(session))
        await server.start()
        client = await dial(server)
        await send(client, type="hello", session="s", id=1)
        await until(client, type="ok")
        await server.stop()
        assert await closed(client) == 1001
        await client.wait_closed()
        assert session.watchers == 0
        assert asyncio.all_tasks() == before
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)

    run(test)
