"""Large downloads: made while they are sent, at the pace of whoever reads, and never complete when they are not."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from zipfile import ZipFile

import pytest

from iact.core.errors import WorkspaceError
from iact.web.server import WebServer
from iact.web.zip_stream import zipped
from tests.web.dialling import PATIENCE, cookie, get, http, run
from tests.web.fake import FakeRuntime


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """What a chunked body holds, and whether it came to its end."""
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        if not int(size, 16):
            return found, rest == b"\r\n"
        found, body = found + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return found, False


class Pieces(Iterator[bytes]):
    """`count` pieces of 64 KiB; how many were asked for, and whether it was closed."""

    def __init__(self, count: int, *, fails: bool = False) -> None:
        self.asked = 0
        self.begun = asyncio.Event()
        self.closed = asyncio.Event()
        self._count = count
        self._fails = fails
        self._loop = asyncio.get_running_loop()

    def __next__(self) -> bytes:
        if self.asked == self._count:
            if self._fails:
                raise WorkspaceError("It is lost.")
            raise StopIteration
        self.asked += 1
        self._loop.call_soon_threadsafe(self.begun.set)
        return bytes([self.asked % 256]) * 65_536

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.closed.set)


def test_a_stream_is_whole_and_one_that_breaks_off_is_not() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server:
            mine = await cookie(server)
            for fails in (False, True):
                pieces = Pieces(40, fails=fails)
                address = server.offer("all.zip", pieces.__iter__)
                status, headers, body = await http(server, get(server, address, Cookie=mine))
                found, whole = unchunked(body)
                assert (status, whole, headers["transfer-encoding"]) == (200, not fails, "chunked")
                assert "content-length" not in headers
                assert headers["content-type"] == "application/octet-stream"
                assert headers["content-disposition"].startswith('attachment; filename="all.zip"')
                assert headers["x-content-type-options"] == "nosniff"
                if whole:
                    assert found == b"".join(bytes([n + 1]) * 65_536 for n in range(40))
                await asyncio.wait_for(pieces.closed.wait(), PATIENCE)

    run(test)


def test_who_does_not_read_is_dropped_and_holds_up_no_end_of_the_server() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(), send_timeout=0.2) as server:
            slow = Pieces(1 << 30)
            request = get(server, server.offer("endless", slow.__iter__), Cookie=await cookie(server))
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
            writer.write(request.encode())
            await asyncio.wait_for(slow.closed.wait(), PATIENCE)
            assert slow.asked < 1000  # what two sockets hold, and no more
            writer.close()
        server = WebServer(FakeRuntime(), send_timeout=3600)
        await server.start()
        stuck = Pieces(1 << 30)
        request = get(server, server.offer("endless", stuck.__iter__), Cookie=await cookie(server))
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(request.encode())
        await asyncio.wait_for(stuck.begun.wait(), PATIENCE)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert stuck.closed.is_set()
        writer.close()

    run(test)


def test_an_archive_holds_what_went_in_and_no_name_leads_elsewhere() -> None:
    files = [("a/b.txt", [b"one ", b"two"]), ("..\\..\\x", [b"\0" * 600_000]), ("C:x", []), ("ä", [b"3"])]
    made = b"".join(zipped(files))
    assert len(made) < 100_000
    with ZipFile(io.BytesIO(made)) as archive:
        assert archive.testzip() is None
        held = {name: archive.read(name) for name in archive.namelist()}
    assert held == {"a/b.txt": b"one two", "..%5C..%5Cx": b"\0" * 600_000, "C%3Ax": b"", "ä": b"3"}


def test_an_archive_of_what_can_not_be_read_has_no_end() -> None:
    def lost() -> Iterator[bytes]:
        yield b"begins"
        raise WorkspaceError("It is lost.")

    with pytest.raises(WorkspaceError):
        b"".join(zipped([("a", lost())]))
