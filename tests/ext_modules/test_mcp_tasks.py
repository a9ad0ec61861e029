"""A server that answers our module's call with a task: followed to its end, whichever that is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from ext_modules.mcp.results import delivery_of
from ext_modules.mcp.servers import Servers, Settings
from ext_modules.sdk import Answer, AskRefused
from ext_modules.sdk.values import JSON

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


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer("accept", {"town": "Oslo"}), "told accept {'town': 'Oslo'}"),
        (Answer("decline"), "told decline None"),
    ],
)
async def test_what_a_task_asks_is_asked_once_and_it_goes_on(
    tmp_path: Path, answer: Answer, text: str
) -> None:
    asked: list[str] = []

    async def ask(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
        assert schema is not None
        asked.append(message)
        return answer

    async with servers(tmp_path / "log") as found:
        delivery = delivery_of(await found.call(AGENT, "work", {"end": "asks"}, Progress(), ask))
    assert (asked, delivery.text) == (["Where to?"], text)


async def test_a_task_whose_question_can_not_be_put_is_cancelled(tmp_path: Path) -> None:
    async def ask(message: str, schema: Mapping[str, JSON] | None, url: str) -> Answer:
        raise AskRefused("That is no form.")

    async with servers(tmp_path / "log") as found:
        with pytest.raises(MCPError, match="can't be put to anybody: That is no form"):
            await found.call(AGENT, "work", {"end": "asks"}, Progress(), ask)
    assert (tmp_path / "log").read_text(encoding="ascii").endswith("cancel asks\n")


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
