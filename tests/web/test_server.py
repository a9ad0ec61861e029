"""A real listening server with an in-memory session: every refusal, and the wire protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from iact.core.records.record import Record
from iact.web.follower import ENOUGH, NEWEST
from iact.web.records import record_message
from iact.web.server import WebServer
from tests.web.dialling import (
    closed,
    dial,
    numbers,
    run,
    send,
    take,
    until,
)
from tests.web.fake import LABEL, FakeRuntime, FakeSession, node

SEEN = "0123456789abcdef"


def test_records_come_in_order_without_gap_or_doubling() -> None:
    async def test() -> None:
        session = FakeSession("s")
        for number in range(50):
            session.append("notice", body=str(number))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=20, id="h")
            first = await take(client)
            await session.watched()
            session.append("notice", body="while catching up")
            seen = [first, *await until(client, type="record", n=51)]
            session.append("notice", body="live")
            seen += await until(client, type="record", n=52)
            assert numbers(seen) == list(range(21, 53))
            kinds = [message["type"] for message in seen if message["type"] not in ("record", "ok")]
            assert kinds == ["session", "tree"]

    run(test)


def test_what_was_written_before_a_record_never_arrives_after_it() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Go.")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="ok", id=1)
            await session.watched()
            # All of it happens before the server can pass any of it on.
            session.write("/", "first")
            session.append("turn", body="first")
            session.write("/", "second")
            session.append("reply", body="second", to="user", status="ok")
            seen = await until(client, type="record", n=3)
            told = [message.get("text") or message.get("body") for message in seen[-4:]]
            kinds = [message["type"] for message in seen[-4:]]
            assert (kinds, told) == (["delta", "record"] * 2, ["first", "first", "second", "second"])

    run(test)


def test_a_record_that_comes_between_watching_and_reading_is_sent_once() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("notice", body="before")
        session.on_watch = lambda: session.append("notice", body="between")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            seen = await until(client, type="record", n=2)
            session.append("notice", body="after")
            assert numbers(seen + await until(client, type="record", n=3)) == [1, 2, 3]

    run(test)


def test_the_frames_of_a_session() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="*hi*")
        session.drafts["/a"] = "so far"
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=0)
            seen = await until(client, type="delta")
            facts = next(message for message in seen if message["type"] == "session")
            assert abs(datetime.fromisoformat(str(facts.pop("now"))) - datetime.now(UTC)) < timedelta(
                minutes=5
            )
            assert facts == {
                "type": "session", "id": "s", "since": 0, "intent": 1, "levels": {}, "model": LABEL, "small": [],
                "journal": str(session.journal), "last": 1, "readonly": False,
            }  # fmt: skip
            record = next(message for message in seen if message["type"] == "record")
            assert (record["n"], record["kind"], record["agent"]) == (1, "say", "/")
            assert record["html"] == '<div class="typed" dir="auto">*hi*</div>'
            assert seen[-1] == {"type": "delta", "agent": "/a", "text": "so far", "restart": True}
            session.write("/a", ", and on")
            assert (await until(client, type="delta"))[-1] == {
                "type": "delta",
                "agent": "/a",
                "text": ", and on",
            }
            session.print("/a", 4, "out")
            assert (await take(client)) == {"type": "output", "agent": "/a", "call": 4, "text": "out"}
            session.show(node("/"), node("/a", "acting"))
            tree = await take(client)
            assert [(view["path"], view["state"]) for view in tree["nodes"]] == [
                ("/", "idle"),
                ("/a", "acting"),
            ]

    run(test)


def earlier(frames: Sequence[Any]) -> list[int]:
    """The numbers of the records that came together, which are told from the newest message back."""
    together = [some["list"] for some in frames if some["type"] == "records"]
    return [one["n"] for some in reversed(together) for one in some]


async def until_all(client: ClientConnection) -> list[Any]:
    """Frames up to those with the first record."""
    seen = [await take(client)]
    while not any(record["n"] == 1 for record in seen[-1].get("list", ())):
        seen.append(await take(client))
    return seen


def test_the_newest_comes_first_and_what_is_before_it_from_there_back() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="First words")
        for number in range(2, 2601):
            session.append("say" if number < 1000 else "spawn", "/" if number < 1000 else f"/a{number}", "x")
        newest = 999 - ENOUGH + 1
        async with WebServer(FakeRuntime(session)) as server:
            async with dial(server) as client:
                await send(client, type="hello", session="s", lazy=True)
                first = await until(client, type="records")
                # Many others have come since the root's last messages.
                assert [one["type"] for one in first if one["type"] != "ok"] == ["session", "records"]
                assert [one["n"] for one in first[-1]["list"]] == list(range(newest, 2601))
                assert [one["n"] for one in first[-1]["apart"]] == [1]
                session.append("say", body="While it loads")
                frames = await until_all(client)
                assert earlier(frames) == list(range(1, newest))
                late = numbers(frames) or numbers(await until(client, type="record"))
                assert late == [2601]
            async with dial(server) as client:
                # Who was cut off goes on at both ends.
                await send(client, type="hello", session="s", lazy=True, since=2600, first=101)
                frames = await until_all(client)
                assert earlier(frames) == list(range(1, 101))
                assert numbers(frames) == [2601]
            async with dial(server) as client:
                await send(client, type="hello", session="s", lazy=True, path="/nobody")
                told = (await until(client, type="records"))[-1]["list"]
                assert [one["n"] for one in told] == list(range(2601 - NEWEST + 1, 2602))

    run(test)


def test_a_lazy_client_asks_for_the_html_of_old_records() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("turn", body="```CALL a\nDo *it*.\n```\n" + "x" * 9000)
        for number in range(2, 401):
            session.append("say", body=f"*{number}*")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", lazy=True)
            frames = await until_all(client)
            newest, before = [one["list"] for one in frames if one["type"] == "records"]
            assert [one["n"] for one in newest] == list(range(400 - NEWEST + 1, 401))
            seen = before + newest
            assert [one["n"] for one in seen] == list(range(1, 401))
            with_html = [one["n"] for one in seen if "html" in one]
            assert with_html == list(range(400 - NEWEST + 1, 401))
            assert (seen[0]["messages"], len(seen[0]["body"])) == ([{"action": 0, "to": "/a"}], 2000)
            assert seen[0]["body_size"] > 9000
            await send(client, type="render", numbers=[2, 1, 401, 0], id=1)
            answer = (await until(client, type="ok", id=1))[-1]
            [two, one] = answer["list"]
            assert two == {"n": 2, "html": '<div class="typed" dir="auto">*2*</div>'}
            assert one["n"] == 1
            [told] = one["messages"]
            assert told == {"action": 0, "to": "/a", "html": '<p dir="auto">Do <em>it</em>.</p>\n'}
            session.append("say", body="*new*")
            assert "html" in (await until(client, type="record", n=401))[-1]
            await send(client, type="render", numbers=list(range(401)), id=2)
            assert (await until(client, id=2))[-1]["code"] == "invalid"

    run(test)


def test_what_many_watch_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []

    def counting(record: Record, *rest: Any) -> Any:
        rendered.append(record.n)
        return record_message(record, *rest)

    monkeypatch.setattr("iact.web.render_cache.record_message", counting)

    async def test() -> None:
        session = FakeSession("s")
        for number in range(20):
            session.append("say", body=f"*{number}*")
        async with WebServer(FakeRuntime(session)) as server:
            for _ in range(5):
                async with dial(server) as client:
                    await send(client, type="hello", session="s")
                    await until(client, type="record", n=20)
        assert rendered == list(range(1, 21))

    run(test)


def test_a_number_beyond_the_journal_starts_from_the_beginning() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="one")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", since=99)
            seen = await until(client, type="record")
            assert seen[-1]["n"] == 1
            assert next(message for message in seen if message["type"] == "session")["since"] == 0

    run(test)


def test_a_watcher_that_fell_behind_catches_up_from_the_journal() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=4)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=1)
            await until(client, type="tree")
            await session.watched()
            for number in range(100):
                session.append("notice", body=str(number))
            assert numbers(await until(client, type="record", n=100)) == list(range(1, 101))

    run(test)


def test_a_new_session_begins_with_the_first_message() -> None:
    async def test() -> None:
        runtime = FakeRuntime()
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="hello", session=None, id=1)
            await until(client, type="ok", id=1)
            assert runtime.opened == []
            await send(client, type="say", text="Hello", id=2)
            seen = await until(client, type="ok", id=2)
            assert runtime.opened == [None]
            assert (seen[-1]["n"], seen[-1]["session"]) == (1, "new-1")
            if not numbers(seen):
                seen += await until(client, type="record")
            assert numbers(seen) == [1]

    run(test)


def test_every_control_reaches_the_session_and_is_answered_with_its_record() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.show(node("/"), node("/a"))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            messages: list[dict[str, object]] = [
                {"type": "say", "text": "do"},
                {"type": "inject", "path": "/a", "text": "stop", "mode": "interrupt"},
                {"type": "pause", "path": "/a"},
                {"type": "resume", "path": "/a"},
                {"type": "cancel", "path": "/a"},
                {"type": "intent", "value": 2},
                {"type": "clear", "call": 3, "allow": True, "digest": SEEN},
                {"type": "clear", "call": 4, "allow": True, "digest": SEEN, "remember": "call"},
                {"type": "clear", "call": 5, "allow": True, "digest": SEEN, "remember": {"function": "m.*"}},
                {"type": "lockdown", "value": True},
                {"type": "declassify", "path": "/a", "digest": "0" * 16},
                {"type": "declassify", "path": "/a", "name": "page_1", "digest": "0" * 16},
            ]
            for number, message in enumerate(messages, 1):
                await send(client, id=number, **message)
                assert (await until(client, type="ok", id=number))[-1]["n"] == number
            assert session.calls == [
                ("say", "do"),
                ("inject", "/a", "stop", "interrupt"),
                ("pause", "/a"),
                ("resume", "/a"),
                ("cancel", "/a"),
                ("intent", "2"),
                ("clear", "3", "True", "None"),
                ("clear", "4", "True", "call"),
                ("clear", "5", "True", "{'function': 'm.*', 'arguments': {}}"),
                ("lockdown", "True"),
                ("declassify", "/a", "None"),
                ("declassify", "/a", "page_1"),
            ]
            await send(client, type="hello", session="s", since=12)
            assert (await until(client, type="session"))[-1]["intent"] == 2

    run(test)


def test_a_changed_intent_is_told_to_everyone() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as one, dial(server) as other:
            for client in (one, other):
                await send(client, type="hello", session="s")
                await until(client, type="tree")
            await session.watched(2)
            await send(one, type="intent", value=0)
            assert (await until(other, type="session"))[-1]["intent"] == 0

    run(test)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"type":"nonsense","id":1}', "unknown"),
        ('{"type":"say","id":1,"text":"\\ud800"}', "invalid"),
        ('{"type":"say","text":NaN,"id" : 1}', "invalid"),
        ('{"type":"say","id":1,"text":"a message that was cut', "invalid"),
        ('{"type":["say"],"id":1}', "invalid"),
        ('{"id":1}', "invalid"),
        ('{"type":"say","id":1}', "invalid"),
        ('{"type":"say","text":"  ","id":1}', "invalid"),
        ('{"type":"say","text":7,"id":1}', "invalid"),
        ('{"type":"inject","path":"a","text":"x","id":1}', "invalid"),
        ('{"type":"inject","path":"/","text":"x","mode":"shout","id":1}', "invalid"),
        ('{"type":"intent","value":3,"id":1}', "invalid"),
        ('{"type":"intent","value":true,"id":1}', "invalid"),
        ('{"type":"hello","session":"s","since":-1,"id":1}', "invalid"),
        ('{"type":"hello","session":"../../etc","id":1}', "usage"),
        ('{"type":"hello","session":"locked","id":1}', "locked"),
        ('{"type":"pause","path":"/nobody","id":1}', "usage"),
        ('{"type":"clear","call":1,"id":1}', "invalid"),
        ('{"type":"clear","call":1,"allow":1,"id":1}', "invalid"),
        (
            '{"type":"clear","call":1,"allow":true,"digest":"0123456789abcdef","remember":"all","id":1}',
            "invalid",
        ),
        ('{"type":"clear","call":1,"allow":true,"id":1}', "invalid"),
        ('{"type":"clear","call":1,"allow":true,"digest":"0123456789abcde","id":1}', "invalid"),
        ('{"type":"clear","call":1,"allow":true,"digest":"0123456789abcdef","also":[2],"id":1}', "invalid"),
        ('{"type":"form.answer","ask":1,"accept":true,"id":1}', "invalid"),
        ('{"type":"apply","id":1}', "invalid"),
        ('{"type":"apply","paths":["a"],"digest":"0123456789abcdef","id":1}', "invalid"),
        ('{"type":"lockdown","value":1,"id":1}', "invalid"),
        ('{"type":"module.add","source":"/nowhere/x","id":1}', "usage"),
        ('{"type":"module.remove","name":"x","id":1}', "usage"),
        ('{"type":"module.approve","name":"x","id":1}', "invalid"),
        ('{"type":"module.approve","name":"x","digest":"0123abcd01234567","id":1}', "usage"),
        ('{"type":"fork","at":0,"text":"x","id":1}', "invalid"),
        ('{"type":"fork","at":1,"text":" ","id":1}', "invalid"),
        ('{"type":"open","journal":"","id":1}', "invalid"),
        ('{"type":"open","journal":"/etc/passwd","id":1}', "usage"),
        ('{"type":"seek","at":1,"id":1}', "usage"),
        ('{"type":"seek","at":0,"id":1}', "invalid"),
        ('{"type":"seek","at":"1","id":1}', "invalid"),
        ('{"type":"context","path":"a","id":1}', "invalid"),
        ('{"type":"variables","path":"/nobody","id":1}', "usage"),
        ('{"type":"variable","path":"/","name":"../x","id":1}', "invalid"),
        ('{"type":"variable","path":"/nobody","name":"x","id":1}', "usage"),
    ],
)
def test_a_wrong_message_is_one_sentence(message: str, code: str) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(FakeSession("s"))) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await client.send(message)
            error = (await until(client, type="error"))[-1]
            assert (error["id"], error["code"]) == (1, code)
            assert error["message"].endswith(".")
            assert "\n" not in error["message"]

    run(test)


@pytest.mark.parametrize(
    "frame", ["", "x", "[]", "null", "[" * 100_000, '{"type":', '{"a":NaN}', b"{}", '"\\ud800"']
)
def test_what_is_no_message_is_refused_and_the_socket_stays(frame: str | bytes) -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime()) as server, dial(server) as client:
            await client.send(frame)
            assert (await take(client))["code"] == "invalid"
            await send(client, type="hello", session=None, id=5)
            await until(client, type="ok", id=5)

    run(test)


def test_an_error_of_our_own_shows_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        session = FakeSession("s", fail=RuntimeError("secret detail /home/x"))
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await send(client, type="say", text="x", id=1)
            error = (await until(client, type="error"))[-1]
            assert error["code"] == "internal"
            assert "secret" not in json.dumps(error)

    run(test)
    assert "secret detail" in caplog.text


def test_sessions_are_listed_newest_first() -> None:
    async def test() -> None:
        runtime = FakeRuntime(FakeSession("old"), FakeSession("new"))
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="sessions", id=1)
            listed = (await take(client))["list"]
            assert [info["id"] for info in listed] == ["new", "old"]

    run(test)


def test_lone_surrogates_do_not_break_the_line() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await until(client, type="tree")
            await session.watched()
            session.write("/", "a\ud800b")
            assert (await until(client, type="delta"))[-1]["text"] == "a?b"

    run(test)


def test_what_needs_the_product_around_says_so() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            for number, name in enumerate(("about", "export"), 1):
                await send(client, type=name, id=number)
                assert "iact serve" in (await until(client, id=number))[-1]["message"]

    run(test)


def test_a_closed_session_is_told() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await until(client, type="tree")
            await session.watched()
            session.end()
            assert "closed" in (await until(client, type="notice"))[-1]["text"]

    run(test)


def test_stopping_leaves_no_task_and_no_watcher() -> None:
    async def test() -> None:
        session = FakeSession("s")
        before = asyncio.all_tasks()
        server = WebServer(FakeRuntime(session))
        await server.start()
        client = await dial(server)
        await send(client, type="hello", session="s", id=1)
        await until(client, type="ok")
        await server.stop()
        assert await closed(client) == 1001
        await client.wait_closed()
        assert session.watchers == 0
        assert asyncio.all_tasks() == before
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)

    run(test)
