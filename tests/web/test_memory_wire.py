"""The messages about memory: what the page and the command line ask, and what they are told where it is off."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from iact.core.stored.store import SessionStore
from iact.web.server import WebServer
from tests.core.session.memories import WISH, FakeMemory
from tests.web.dialling import dial, send, until
from tests.web.fake import FakeRuntime, FakeSession
from tests.web.long import long_journal


def ask(message: dict[str, object], memory: FakeMemory | None) -> dict[str, Any]:
    """The server's answer to one message."""

    async def scene() -> dict[str, Any]:
        async with WebServer(FakeRuntime(memory=memory)) as server, asyncio.timeout(300):
            headers = {"Authorization": f"Bearer {server.token}"}
            address = f"ws://127.0.0.1:{server.port}/ws"
            async with connect(address, additional_headers=headers, proxy=None) as socket:
                await socket.send(json.dumps({**message, "id": "m"}))
                while True:
                    frame: dict[str, Any] = json.loads(await socket.recv())
                    if frame.get("id") == "m":
                        return frame

    return asyncio.run(scene())


def test_a_search_gives_all_that_is_known_of_each_result() -> None:
    memory = FakeMemory((WISH,))
    found = ask({"type": "memory", "query": "tabs", "limit": 5}, memory)
    assert found["type"] == "ok"
    assert found["results"][0] == WISH.to_json()
    assert (found["on"], found["session_on"]) == (True, None)
    assert memory.searched == [("tabs", None, None)]


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"type": "memory.show", "memory": "s/1"}, {"memory": None}),
        ({"type": "memory.forget", "memories": ["s/1"]}, {"count": 0}),
        ({"type": "memory.rebuild"}, {"count": 0}),
        ({"type": "memory.clear"}, {"count": 0}),
        ({"type": "memory.switch", "value": False}, {"on": False}),
        (
            {"type": "memory.distil", "sessions": ["one", "two"]},
            {"count": 1, "left_out": {"two": "It has unfinished work."}},
        ),
    ],
)
def test_the_other_messages(message: dict[str, object], answer: dict[str, object]) -> None:
    assert ask(message, FakeMemory()) == {"type": "ok", "id": "m", **answer}


def test_an_edit_gives_what_the_memory_reads_now() -> None:
    memory = FakeMemory((WISH,))
    message: dict[str, object] = {"type": "memory.edit", "memory": WISH.id, "text": "I prefer spaces."}
    answer = ask(message, memory)
    assert answer["type"] == "ok"
    assert answer["memory"]["id"] == WISH.id
    assert answer["memory"]["text"] == "I prefer spaces."
    assert [row.text for row in memory.rows] == ["I prefer spaces."]
    refused = ask({**message, "memory": "nothing/1"}, memory)
    assert (refused["type"], refused["code"]) == ("error", "failed")
    assert "There is no memory" in refused["message"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "memory", "query": "x"}, "failed"),
        ({"type": "memory", "query": 5}, "invalid"),
        ({"type": "memory.forget", "memories": []}, "invalid"),
        ({"type": "memory.edit", "memory": "s/1", "text": " "}, "invalid"),
        ({"type": "memory.edit", "memory": "s/1", "text": "x"}, "failed"),
    ],
)
def test_refusals(message: dict[str, object], code: str) -> None:
    found = ask(message, None)
    assert (found["type"], found["code"]) == ("error", code)


@pytest.mark.parametrize(
    "message", [{"type": "memory.session", "value": False}, {"type": "reading", "path": "/"}]
)
def test_what_is_about_a_session_opens_none(message: dict[str, object]) -> None:
    answer = ask(message, FakeMemory())
    assert (answer["type"], answer["code"]) == ("error", "usage")


def test_a_session_s_switch_is_told_where_it_can_be_switched(tmp_path: Path) -> None:
    """In a stored session it can't, so the page shows no box for it."""
    stored = long_journal(tmp_path / "sessions", 60).parent.name

    async def scene() -> list[object]:
        runtime = FakeRuntime(FakeSession("s"), memory=FakeMemory((WISH,)))
        runtime.store = SessionStore(tmp_path)
        told = []
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            await send(client, type="memory", query="tabs", limit=5, id=2)
            told.append((await until(client, type="ok", id=2))[-1]["session_on"])
            await send(client, type="open", journal=stored, id=3)
            await until(client, type="ok", id=3)
            await send(client, type="memory", query="tabs", limit=5, id=4)
            told.append((await until(client, type="ok", id=4))[-1]["session_on"])
        return told

    assert asyncio.run(scene()) == [True, None]
