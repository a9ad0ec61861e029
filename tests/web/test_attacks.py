"""What was done to tools like this one, done to this one: each test is named after what happened there.

The cases and their sources are those that a review of comparable products lists; what the other tests of this room
show already (safety headers, paths, cookies, hostile content) is not repeated.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import expect
from websockets.exceptions import InvalidStatus

from iact.web.commands import COMMANDS
from iact.web.server import WebServer
from tests.web.browser import SHARED
from tests.web.dialling import cookie, dial, get, http, run, send, until
from tests.web.fake import FakeRuntime, FakeSession
from tests.web.test_page import stage


def test_every_route_asks_who_it_is_before_anything_else() -> None:
    """MCP Inspector (CVE-2025-49596), opencode (CVE-2026-22812): a local server without authentication."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            for route in [*server.routes, server.offer("x", b"x"), "/ws", "/nothing"]:
                # A socket without an origin is refused for that already.
                refused = (403,) if route == "/ws" else (401,)
                wrong = f"iact_{server.port}=0000"
                assert (await http(server, get(server, route)))[0] in refused, route
                assert (await http(server, get(server, route, Cookie=wrong)))[0] in refused, route
                assert (await http(server, get(server, route, Authorization="Bearer x")))[0] in refused, route

    run(test)


@pytest.mark.parametrize(
    "host",
    ["evil.test", "127.0.0.1.evil.test:{port}", "localhost:1", "127.0.0.1", "[::1]", "", "0.0.0.0:{port}"],
)
def test_a_rebound_name_is_refused_for_pages_and_sockets(host: str) -> None:
    """MCP SDKs (CVE-2025-66414, CVE-2025-66416, CVE-2026-34742): no protection from DNS rebinding."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine, name = await cookie(server), host.format(port=server.port)
            for path in ("/", "/ws", "/static/js/main.js"):
                asked = get(server, path, Host=name, Cookie=mine)
                assert (await http(server, asked))[0] in (400, 421), path

    run(test)


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:1",
        "http://localhost:{port}.evil.test",
        "http://evil-localhost:{port}",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "file://",
        "",
    ],
)
def test_an_origin_that_looks_like_ours_is_not_ours(origin: str) -> None:
    """OpenClaw (CVE-2026-25253), Claude Code's extension (CVE-2025-52882): sockets opened by any page."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            headers = {"Cookie": await cookie(server), "Origin": origin.format(port=server.port)}
            with pytest.raises(InvalidStatus) as info:
                await dial(server, **headers)
            assert info.value.response.status_code == 403

    run(test)


def test_a_socket_is_authenticated_like_everything_else() -> None:
    """jupyter-server-proxy (CVE-2024-28179): HTTP was authenticated, the websocket was not."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            ours = f"http://127.0.0.1:{server.port}"
            for given in ({"Origin": ours}, {"Origin": ours, "Cookie": f"iact_{server.port}=x"}):
                with pytest.raises(InvalidStatus) as info:
                    await dial(server, **given)
                assert info.value.response.status_code == 401

    run(test)


def test_no_answer_lets_another_site_read_it() -> None:
    """Langflow (CVE-2025-34291): CORS for everybody, and a cookie that was sent across sites."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine = await cookie(server)
            for origin in ("http://evil.test", f"http://127.0.0.1:{server.port}"):
                asked = get(server, "/", Cookie=mine, Origin=origin)
                for request in (asked, asked.replace("GET", "OPTIONS", 1)):
                    _, headers, _ = await http(server, request)
                    assert not [name for name in headers if name.startswith("access-control")]
            _, headers, _ = await http(server, get(server, f"/?token={server.token}"))
            assert "SameSite=Strict" in headers["set-cookie"]
            assert "HttpOnly" in headers["set-cookie"]

    run(test)


def test_a_client_cannot_grant_itself_anything() -> None:
    """OpenClaw (GHSA-rqpp-rjj8-7wv8): a client declared its own rights."""

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            claims: dict[str, Any] = {
                "intent": 2,
                "scope": "admin",
                "grant": {"intent": 2},
                "role": "operator",
            }
            await send(client, type="hello", session="s", id=1, **claims)
            await until(client, type="ok", id=1)
            await send(client, type="say", text="Go.", id=2, **claims)
            await until(client, type="ok", id=2)
            assert session.intent == 1
            assert session.calls == [("say", "Go.")]

    run(test)


@pytest.mark.parametrize(
    "message",
    [
        {"call": "1", "allow": True},
        {"call": 1, "allow": "true"},
        {"call": 1, "allow": 1},
        {"call": 0, "allow": True},
        {"allow": True},
        {"call": [1], "allow": True},
        {"call": 1},
    ],
)
def test_an_approval_is_exact(message: dict[str, object]) -> None:
    """An approval names the question that was shown, by its number, and is the value true: nothing that is like it."""

    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            await send(client, type="clear", id=2, **message)
            assert (await until(client, id=2))[-1]["code"] == "invalid"
            assert session.calls == []

    run(test)


def test_nothing_configures_the_server_from_a_socket() -> None:
    """OpenClaw (CVE-2026-25593, CVE-2026-26322): a message set a command's path, and an address to dial."""

    async def test() -> None:
        async with WebServer(FakeRuntime()) as server, dial(server) as client:
            await send(client, type="hello", session=None, id=0)
            for name in ("config.apply", "settings", "config", "eval", "validate", "env", "exec"):
                assert name not in COMMANDS
                await send(client, type=name, id=name, value="x")
                assert (await until(client, id=name))[-1]["code"] == "unknown"

    run(test)


def test_an_address_in_the_query_is_not_dialled() -> None:
    """OpenClaw (CVE-2026-25253): the page connected to whatever `gatewayUrl` said, and gave it the token."""

    async def test() -> None:
        async with stage(FakeSession("s")) as scene:
            page = await scene.page("s")
            dialled: list[str] = []
            page.on("websocket", lambda socket: dialled.append(socket.url))
            query = "?gatewayUrl=ws://evil.test/ws&ws=ws://evil.test&server=evil.test&endpoint=evil.test"
            await page.goto(f"http://127.0.0.1:{scene.server.port}/{query}#s")
            await expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
            assert set(dialled) == {f"ws://127.0.0.1:{scene.server.port}/ws"}
            # What a script could read of the secrets is nothing.
            assert await page.evaluate("document.cookie") == ""
            told = await page.evaluate(
                "JSON.stringify([location.href, {...localStorage}, {...sessionStorage}])"
            )
            assert scene.server.token not in told

    SHARED.run(test)


def test_a_session_is_not_reached_by_a_name_that_is_a_path() -> None:
    """Open WebUI (CVE-2026-45349): another's conversation by its id; Docker Sandboxes (CVE-2026-103916): by a link."""

    async def test() -> None:
        async with WebServer(FakeRuntime(FakeSession("s"))) as server, dial(server) as client:
            for number, name in enumerate(("../s", "s/../s", "/s", "s\0", "%2e%2e/s", ".", "s/journal.md")):
                await send(client, type="hello", session=name, id=number)
                assert (await until(client, id=number))[-1]["type"] == "error", name

    run(test)


def test_a_very_long_line_is_shown_in_part_and_costs_little() -> None:
    """Ten million characters without a break, from a tool."""

    async def test() -> None:
        session = FakeSession("s")
        session.append("result", "/", "x" * 10_000_000, function="shell.run", status="ok")
        session.append("say", body="y" * 10_000_000)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            seen = [one for one in await until(client, type="record", n=2) if one["type"] == "record"]
            assert all(len(json.dumps(one)) < 400_000 for one in seen)
            assert all("characters hidden" in one["html"] for one in seen)

    run(test)
