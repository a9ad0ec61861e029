"""A real listening server: signing in, headers, refusals, and what is cut off."""

from __future__ import annotations

import asyncio
import gzip
import logging
from contextlib import suppress

import pytest

from iact.core.errors import UsageError
from iact.web.server import WebServer
from tests.web.dialling import (
    PATIENCE,
    cookie,
    dial,
    get,
    http,
    run,
    send,
    until,
)
from tests.web.fake import FakeRuntime


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
                get(server, "/static/js/page.js", Cookie=mine),
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
            for path in ("/", "/static/js/page.js"):
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


def test_beyond_the_limit_the_oldest_stranger_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iact.web.server.MAX_CONNECTIONS", 5)

    async def test() -> None:
        async with WebServer(FakeRuntime(), open_timeout=PATIENCE) as server:
            idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(6)]
            oldest, _ = idle[0]
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(oldest.read(), PATIENCE) == b""
            # The newest are answered, whether they may be here or not.
            for request, status in ((get(server, "/"), 401), (get(server, f"/?token={server.token}"), 303)):
                assert (await http(server, request))[0] == status
            for _, writer in idle:
                writer.transport.abort()

    run(test)


# --- websocket: who may
