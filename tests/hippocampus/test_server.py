"""Memory at a Chroma server, and without one."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.errors import MemoryUnavailable
from hippocampus import WordEmbedder, open_hippocampus
from tests.hippocampus.fakes import StandingClock, ask, say

FACT = say("s1", 2, "The office closes at six on weekdays.")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def chroma(place: Path) -> Iterator[str]:
    """A server of Chroma's own."""
    port = free_port()
    command: list[str] = [
        str(Path(sys.executable).with_name("chroma")),
        "run",
        "--path",
        str(place),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 30
            while not listening(port):
                assert time.monotonic() < until
                assert server.poll() is None
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_holds_the_memory(tmp_path: Path) -> None:
    async def scene(address: str, *, fresh: bool) -> None:
        async with open_hippocampus(
            tmp_path / "ours", WordEmbedder(), clock=StandingClock(), server=address, budget=5.0
        ) as opened:
            memory = opened.of("anna")
            if fresh:
                memory.remember(FACT)
            await opened.settled()
            assert opened.trouble == ""
            assert [row.text for row in (await memory.recall(ask("When does the office close?"))).rows] == [
                FACT.text
            ]
            if not fresh:
                assert await memory.forget(["s1/2"]) == 1
                assert await memory.search("office") == []

    with chroma(tmp_path / "theirs") as address:
        asyncio.run(scene(address, fresh=True))
        asyncio.run(scene(address, fresh=False))
    assert not (tmp_path / "ours" / "chroma").exists()


def test_a_server_that_is_down_is_said_and_stops_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        server = f"http://127.0.0.1:{free_port()}"
        async with open_hippocampus(tmp_path, WordEmbedder(), clock=StandingClock(), server=server) as opened:
            memory = opened.of("anna")
            memory.remember(FACT)
            await opened.settled()
            answer = await memory.recall(ask("When does the office close?"))
            assert answer.rows == ()
            assert "Memory can't be opened" in answer.notice
            with pytest.raises(MemoryUnavailable):
                await memory.search("office")

    asyncio.run(scene())


def test_an_address_that_can_not_be_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_hippocampus(
            tmp_path, WordEmbedder(), clock=StandingClock(), server="ftp://x"
        ) as opened:
            await opened.settled()
            assert "http://host:8000" in opened.trouble

    asyncio.run(scene())
