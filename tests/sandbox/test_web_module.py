"""The web module in its container: through the shim, the socket and the proxy to a page and back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.sandbox.inside import called, hosting
from tests.sandbox.outside import PUBLIC, internet

PAGES = {
    "/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>T</title><nav>menu</nav><main><h1>Hello</h1></main>",
    "/away": b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n",
    "/inner": b"HTTP/1.1 302 Found\r\nLocation: http://inner.example/\r\n\r\n",
    "/on": b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n",
    "/huge": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + b"x" * 11_000_000,
}


def pdf(text: str) -> bytes:
    """A PDF of one page with a line of text."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]  # fmt: skip
    body, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(body)
    return body + b"xref\n0 6\n0000000000 65535 f \n" + table + end


PAGES["/paper.pdf"] = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n" + pdf("Figures of a paper")
PAGES["/torn.pdf"] = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n%PDF-1.4 nothing"


async def pages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if await reader.readexactly(1) == b"G":  # and no TLS, which begins with 0x16
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
                writer.write(PAGES[path])
                await writer.drain()
    finally:
        writer.close()


GRANTED: Sequence[str] = ("a.example:80", "a.example:443", "inner.example:80")
NAMES = {"a.example": [PUBLIC], "inner.example": ["10.0.0.1"], "evil.example": [PUBLIC]}


def test_fetching(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with internet(pages, NAMES) as world, hosting(tmp_path, outside=world.outside) as host:
            instance = await host.start("web", session="s", workspace=tmp_path, report=print, egress=GRANTED)
            async with called(instance) as caller:
                assert (
                    await caller.text("fetch", url="http://a.example/on")
                    == "T\nhttp://a.example/\n\n# Hello\n\n[Left out: navigation; raw=true gives all.]\n"
                )
                paper = await caller.text("fetch", url="http://a.example/paper.pdf")
                assert "## Page 1\n\nFigures of a paper" in paper
                assert "The PDF can't be read" in await caller.error("fetch", url="http://a.example/torn.pdf")
                huge = await caller.text("fetch", url="http://a.example/huge", most=10)
                assert "more characters" in huge
                for url, why in {
                    "http://evil.example/": "evil.example can't be reached from here.",
                    "http://a.example/away": "evil.example can't be reached from here.",
                    "http://a.example/inner": "inner.example can't be reached from here.",
                    "http://127.0.0.1/": "127.0.0.1 can't be reached from here.",
                    "http://169.254.169.254/latest/": "169.254.169.254 can't be reached from here.",
                    "https://a.example/": "did not answer as a web server does (SSL",
                }.items():
                    assert why in await caller.error("fetch", url=url)
            await host.close()
            assert {address for address, _ in world.dialled} == {PUBLIC}
            refused = [line.target for line in world.lines if line.status == 403]
            assert refused == [
                "evil.example:80", "evil.example:80", "inner.example:80", "127.0.0.1:80", "169.254.169.254:80"
            ]  # fmt: skip

    loop.run(scenario())


def test_without_a_grant_nothing_is_fetched(loop: asyncio.Runner, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            instance = await host.start("web", session="s", workspace=tmp_path, report=print)
            async with called(instance) as caller:
                assert "a.example can't be reached from here." in await caller.error(
                    "fetch", url="http://a.example/"
                )

    loop.run(scenario())
