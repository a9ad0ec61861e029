"""The heads of requests and answers on their way to an app and back, and who may reach the app at all."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from iact.core.characters import ODD
from iact.sandbox import app_page
from iact.sandbox.app_shares import AppShares
from iact.sandbox.apps import (
    Addressed,
    addressed,
    answered_by_app,
    asked_of_app,
    is_from_our_page,
    may_reach,
    split,
)
from iact.sandbox.socket_folder import open_socket

NAME = "0123456789abcdef"


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([f"Host: {NAME}.localhost:80"], Addressed(NAME, framed=False)),
        ([f"Host: app.{NAME}.localhost:80"], Addressed(NAME, framed=True)),
        ([f"HOST:APP.{NAME.upper()}.LOCALHOST:80 "], Addressed(NAME, framed=True)),
        ([f"Host: {NAME}.localhost:81"], None),
        ([f"Host: {NAME}.localhost"], None),
        ([f"Host: {NAME}.localhost:80", f"Host: {NAME}.localhost:80"], None),
        ([f"Host: x{NAME}.localhost:80"], None),
        ([f"Host: x.{NAME}.localhost:80"], None),
        ([f"Host: app.app.{NAME}.localhost:80"], None),
        ([f"Host: {NAME}.localhost:80.evil"], None),
        ([f"Host: {NAME}.localhost:{'8' * 5000}"], None),
        (["Host: 127.0.0.1:80"], None),
        ([], None),
    ],
)
def test_only_an_app_s_own_names_lead_to_it(headers: list[str], found: Addressed | None) -> None:
    assert addressed([line.encode() for line in headers], 80) == found


@pytest.mark.parametrize(
    ("said", "reaches"),
    [
        ("Sec-Fetch-Dest: iframe|Sec-Fetch-Mode: navigate", True),
        ("sec-fetch-dest:IFRAME|sec-fetch-mode:navigate", True),
        ("Sec-Fetch-Dest: empty|Sec-Fetch-Mode: cors", True),
        ("Sec-Fetch-Dest: image|Sec-Fetch-Mode: no-cors", True),
        ("Sec-Fetch-Dest: script|Sec-Fetch-Mode: no-cors", True),
        # A window of its own could open any address.
        ("Sec-Fetch-Dest: document|Sec-Fetch-Mode: navigate", False),
        ("Sec-Fetch-Dest: document|Sec-Fetch-Mode: cors", False),
        ("Sec-Fetch-Dest: empty|Sec-Fetch-Mode: navigate", False),
        ("Sec-Fetch-Dest: object|Sec-Fetch-Mode: navigate", False),
        ("Sec-Fetch-Dest: iframe|Sec-Fetch-Dest: document|Sec-Fetch-Mode: navigate", False),
        # A worker could answer for the app, without our headers.
        ("Sec-Fetch-Dest: serviceworker|Sec-Fetch-Mode: same-origin", False),
        ("Sec-Fetch-Dest: worker|Sec-Fetch-Mode: same-origin", False),
        ("Sec-Fetch-Dest: sharedworker|Sec-Fetch-Mode: same-origin", False),
        ("Sec-Fetch-Dest: script|Sec-Fetch-Mode: same-origin|Service-Worker: script", False),
        # Who says nothing does not say that it opens a window either.
        ("Accept: */*", False),
        ("Sec-Fetch-Dest: image", False),
    ],
)
def test_only_what_a_frame_loads_reaches_the_app(said: str, reaches: bool) -> None:
    assert may_reach([line.encode() for line in said.split("|")]) is reaches


def test_what_concerns_the_connection_stays_here() -> None:
    first, headers = split(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nX: 1\r\n\r\n")
    assert asked_of_app(first, headers) == b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "header",
    [
        "Content-Security-Policy: default-src *", "Content-Security-Policy-Report-Only: img-src 'none'; report-uri http://evil.test",
        "Report-To: {}", "Reporting-Endpoints: a=\"http://evil.test\"", "NEL: {}", "Link: <http://evil.test>; rel=preconnect",
        "Refresh: 0; url=http://evil.test", "SourceMap: http://evil.test/m", "Alt-Svc: h2=\"evil.test:443\"",
        "Access-Control-Allow-Origin: *", "Service-Worker-Allowed: /", "Speculation-Rules: \"http://evil.test\"",
        "Permissions-Policy: camera=*", "Strict-Transport-Security: max-age=1", "Clear-Site-Data: \"*\"",
        "X-Frame-Options: DENY", "Cache-Control: public", "Connection: keep-alive",
    ],
)  # fmt: skip
def test_no_header_of_an_app_makes_a_browser_report_or_go_elsewhere(header: str) -> None:
    ours = app_page.headers_of_app(NAME, 80)
    kept = [b"Content-Type: text/html", b"Set-Cookie: a=1", b"Location: /next"]
    found = answered_by_app(b"HTTP/1.1 200 OK", [header.encode(), *kept], ours)
    assert found == b"\r\n".join([b"HTTP/1.1 200 OK", *kept, *ours, b"", b""])


def test_the_page_around_it_opens_it_where_it_was_asked_for_and_nothing_else() -> None:
    text = app_page.page(NAME, 80, '/a?b=1&c="><script>').decode()
    assert f'src="http://app.{NAME}.localhost:80/a?b=1&amp;c=&quot;&gt;&lt;script&gt;"' in text
    assert f"frame-src http://app.{NAME}.localhost:80;" in text
    assert "default-src 'none'" in text
    assert "script-src" not in text
    assert "allow-top-navigation" not in text
    assert "allow-popups" not in text
    assert f"Location: http://{NAME}.localhost:80/a\r\n" in app_page.moved(NAME, 80, "/a").decode()


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ([f"Origin: http://{NAME}.localhost:80", "Sec-Fetch-Site: same-origin"], True),
        ([f"Origin: http://{NAME}.localhost:80"], True),
        ([f"Origin: http://app.{NAME}.localhost:80", "Sec-Fetch-Site: same-site"], False),
        ([f"Origin: http://{NAME}.localhost:80", "Sec-Fetch-Site: same-site"], False),
        ([f"Origin: http://{NAME}.localhost:81"], False),
        (["Origin: null"], False),
        ([], False),
    ],
)
def test_only_our_page_says_that_something_is_shared(headers: list[str], ours: bool) -> None:
    assert is_from_our_page([line.encode() for line in headers], NAME, 80) is ours


def test_what_an_app_offers_is_shown_as_text() -> None:
    shown = app_page.question("</pre><script>alert(1)</script>", "d", "o").decode()
    assert "<script>" not in shown
    assert "&lt;/pre&gt;&lt;script&gt;" in shown
    assert "default-src 'none'" in shown


HIDES = "blue\u3164\ufe01\U000e0155\u2028\u200d\u034f\r red\u2003\u2800\ue000green\tand\nwhite"
"""A text of an app that says more than a person sees."""


async def test_what_a_person_does_not_see_is_not_shared(tmp_path: Path) -> None:
    """Letters without a shape, selectors and blanks of many widths could carry what was typed past its user."""
    shared: list[str] = []

    async def take(name: str, text: str) -> None:
        shared.append(text)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + HIDES.encode())
        writer.close()

    shares = AppShares(take)
    async with await asyncio.start_unix_server(answer, tmp_path / "app.sock"):
        socket = open_socket(tmp_path, "app.sock")
        assert socket is not None
        page = (await shares.ask(NAME, socket)).decode()
        once = re.search('name="once" value="([^"]+)"', page)
        digest = re.search('name="digest" value="([^"]+)"', page)
        assert once
        assert digest
        await shares.agree(NAME, socket, f"once={once[1]}&digest={digest[1]}".encode())
        socket.close()

    assert shared == ["blue red   green\tand\nwhite"]
    assert f"<pre>{shared[0]}</pre>" in page
    assert not ODD.search(shared[0])
