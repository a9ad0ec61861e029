"""The messages of the websocket hold what their types say; the same is looked at wherever a test dials or opens a page."""

from __future__ import annotations

import json

import pytest

from iact.web.server import WebServer
from iact.web.wire import answers, news
from tests.web.dialling import dial, run, send, until
from tests.web.fake import FakeRuntime, FakeSession, node
from tests.web.fitting import Traffic, wrong

NODE = {
    "path": "/", "name": "/", "caller": "", "kind": "agent", "state": "idle", "paused": False, "doing": "", "turns": 1,
    "model": "m", "prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1, "record": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (NODE, ""),
        ({**NODE, "queued": [3]}, ""),
        ({**NODE, "queued": "3"}, "node.queued is no list"),
        ({**NODE, "state": "asleep"}, "node.state is 'asleep'"),
        ({**NODE, "turns": True}, "node.turns is True"),
        ({**NODE, "colour": 1}, "node has ['colour'], which its type has not"),
        ({name: one for name, one in NODE.items() if name != "kind"}, "node has no kind"),
    ],
)
def test_what_does_not_fit_is_named(value: object, found: str) -> None:
    assert wrong(value, news.Node, "node") == found


def test_an_answer_is_held_to_what_was_asked() -> None:
    traffic = Traffic()
    traffic.asked(json.dumps({"type": "summary", "id": 7}))
    assert traffic.told(json.dumps({"type": "ok", "id": 7, "text": "x"})) == ""
    assert traffic.told(json.dumps({"type": "ok", "id": 7, "n": 1})) == "ok of summary has no text"
    assert wrong({"list": []}, answers.Names, "names") == ""


def test_a_session_with_everything_in_it_fits() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello")
        session.show(node("/", "thinking"))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", id=1, session="s")
            seen = await until(client, type="ok", id=1)
            seen += await until(client, type="record")
            assert {"ok", "session", "record", "tree"} <= {one["type"] for one in seen}

    run(test)
