"""Files over the wire: a long result, an upload in pieces, a download."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from iact.core.ports import JSON
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
from tests.web.fake import FakeRuntime, FakeSession


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
            assert "characters hidden" in seen[0]["html"]
            assert "12,345 bytes, stored next to the journal" in seen[1]["html"]
            assert "45,000 bytes, stored next to the journal" in seen[2]["html"]

    run(test)


def test_a_file_comes_in_pieces_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iact.web.uploads.LARGEST_UPLOAD", 1000)
    monkeypatch.setattr("iact.web.uploads.AT_ONCE", 1)

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
            error = (await until(client, type="error"))[-1]
            assert "More than the announced 2 bytes" in error["message"]
            assert error["id"] == 5  # of the message that announced it
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
