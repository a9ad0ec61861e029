"""A server that answers our module's call with a task: followed to its end, whichever that is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from ext_modules.mcp.results import delivery_of
from ext_modules.mcp.servers import Servers, Settings

SERVER = str(Path(__file__).with_name("mcp_task_server.py"))
AGENT = ("session", "/")


class Progress:
    """What was told of a call."""

    def __init__(self) -> None:
        self.said: list[str | None] = []
        self.first = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.said.append(message)
        self.first.set()


@asynccontextmanager
async def servers(log: Path) -> AsyncIterator[Servers]:
    async with asyncio.TaskGroup() as group:
        found = Servers(Settings(command=("env", sys.executable, SERVER, str(log))), group)
        try:
            await found.tools()
            yield found
        finally:
            found.close()


@pytest.mark.parametrize(
    ("end", "text", "failed"),
    [
        ("completed", "All done.", False),
        ("cancelled", "The server cancelled the task.", True),
        (
            "input_required",
            "The server asks for input, which a call can't give; its task was cancelled.",
            True,
        ),
    ],
)
async def test_a_task_is_followed_to_its_end(tmp_path: Path, end: str, text: str, failed: bool) -> None:
    told = Progress()
    async with servers(tmp_path / "log") as found:
        delivery = delivery_of(await found.call(AGENT, "work", {"end": end}, told))
    assert (delivery.text, delivery.failed, told.said) == (text, failed, ["look 1"])
    cancelled = f"cancel {end}\n" in (tmp_path / "log").read_text(encoding="ascii")
    assert cancelled == (end == "input_required")


async def test_a_task_that_fails_fails_the_call_in_the_servers_words(tmp_path: Path) -> None:
    async with servers(tmp_path / "log") as found:
        with pytest.raises(MCPError, match="The disk is full"):
            await found.call(AGENT, "work", {"end": "failed"}, Progress())


async def test_a_call_that_is_cancelled_cancels_its_task(tmp_path: Path) -> None:
    told = Progress()
    async with servers(tmp_path / "log") as found:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(found.call(AGENT, "work", {"end": "never"}, told))
            await told.first.wait()
            call.cancel()
        assert (tmp_path / "log").read_text(encoding="ascii").endswith("cancel never\n")
