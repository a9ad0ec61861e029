"""Memory at a Chroma server, and without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.errors import MemoryUnavailable
from iact.hippocampus import WordEmbedder, open_hippocampus
from tests.hippocampus.fakes import StandingClock, ask, say
from tests.hippocampus.servers import chroma, free_port

FACT = say("s1", 2, "The office closes at six on weekdays.")


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


async def test_a_server_that_is_down_is_said_and_stops_nothing(tmp_path: Path) -> None:
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


async def test_an_address_that_can_not_be_one(tmp_path: Path) -> None:
    async with open_hippocampus(tmp_path, WordEmbedder(), clock=StandingClock(), server="ftp://x") as opened:
        await opened.settled()
        assert "http://host:8000" in opened.trouble
