"""Going back over the wire, on real sessions: look at a stored one, seek, fork, contexts and variables."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.ports import ChatMessage
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import context, replay
from iact.core.views.timeline import Timeline
from iact.web.server import WebServer
from tests.core.session.fakes import ScriptedModel, replies, runtime
from tests.web.dialling import Message, dial, numbers, run, send, until
from tests.web.long import long_journal

SCRIPT = {
    "/": [
        "I'll look.\n\n```READ\nfirst line\nsecond line\n```\n",
        "```CALL a\nLook at $read_1.\n```\n",
        "It says $read_1; ask again about `$read_1` or [$read_1](https://example.com), but not $nothing.",
        "Here you are again.",
    ],
    "/a": ["```WRITE\nkept\n```\n", "Done, see $write_1."],
}


@dataclass
class Stage:
    """A server over a runtime in which one session has run to its end."""

    server: WebServer
    runtime: Runtime
    session: Session
    model: ScriptedModel

    async def ask(self, client: ClientConnection, type: str, **fields: object) -> list[Message]:
        """Send a message and take everything up to its answer, which is last."""
        await send(client, type=type, id="asked", **fields)
        return await until(client, id="asked")

    @asynccontextmanager
    async def looking(self, type: str = "hello") -> AsyncIterator[ClientConnection]:
        """A client that watches the session, or looks at it (`open`), and has all of its records."""
        name = "session" if type == "hello" else "journal"
        async with dial(self.server) as client:
            await send(client, type=type, **{name: self.session.id})
            await until(client, type="record", n=self.session.records()[-1].n)
            yield client


def on_stage(data: Path, test: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        model = ScriptedModel(replies(SCRIPT), chunk=4096)
        async with runtime(data, replies(SCRIPT), model=model) as opened:
            session = await opened.open()
            await session.ask("What does it say?")
            async with WebServer(opened) as server:
                await test(Stage(server, opened, session, model))

    run(main)


def answer(messages: Sequence[Message]) -> Message:
    assert messages[-1]["type"] == "ok", messages[-1]
    return messages[-1]


def refusal(messages: Sequence[Message]) -> str:
    assert messages[-1]["type"] == "error", messages[-1]
    assert messages[-1]["code"] == "usage"
    return str(messages[-1]["message"])


@pytest.mark.parametrize("how", ["id", "folder", "file"])
def test_a_stored_session_is_shown_and_cannot_be_changed(tmp_path: Path, how: str) -> None:
    async def test(stage: Stage) -> None:
        journal = stage.session.journal
        name = {"id": stage.session.id, "folder": str(journal.parent), "file": str(journal)}[how]
        before = journal.read_bytes()
        async with dial(stage.server) as client:
            await send(client, type="open", journal=name)
            seen = await until(client, type="record", n=read_journal(journal).records[-1].n)
            facts = next(message for message in seen if message["type"] == "session")
            assert facts["readonly"] is True
            assert (facts["id"], facts["last"]) == (stage.session.id, seen[-1]["n"])
            assert numbers(seen) == [record.n for record in read_journal(journal).records]
            for change in (
                {"type": "say", "text": "x"},
                {"type": "inject", "path": "/", "text": "x"},
                {"type": "pause", "path": "/"},
                {"type": "resume", "path": "/"},
                {"type": "cancel", "path": "/"},
                {"type": "intent", "value": 0},
            ):
                await send(client, **change, id="asked")
                assert "branch from it" in refusal(await until(client, id="asked"))
        assert journal.read_bytes() == before

    on_stage(tmp_path, test)


def test_a_stored_session_goes_on_behind_the_number_that_the_client_has(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        last = stage.session.records()[-1].n
        async with dial(stage.server) as client:
            await send(client, type="open", journal=stage.session.id, since=last - 2)
            assert numbers(await until(client, type="record", n=last)) == [last - 1, last]

    on_stage(tmp_path, test)


def test_only_journals_of_the_data_directory_are_opened(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"

    async def test(stage: Stage) -> None:
        folder = stage.session.journal.parent
        shutil.copytree(folder, elsewhere / folder.name)
        shutil.copy(stage.session.journal, folder.parent.parent / "journal.md")
        (folder.parent / "link").symlink_to(elsewhere / folder.name)
        async with dial(stage.server) as client:
            for journal in (
                "/etc/passwd", "..", ".", "../journal.md", f"{folder.parent}/..", "no-such-session",
                str(elsewhere / folder.name), str(elsewhere / folder.name / "journal.md"),
                f"{folder}/../../journal.md", f"{folder}/workspace/../../../journal.md", "a\0b", f"{folder.name}\0",
            ):  # fmt: skip
                sentence = refusal(await stage.ask(client, "open", journal=journal))
                assert sentence.endswith(".")
            # Having been refused costs nothing.
            answer(await stage.ask(client, "open", journal=folder.name))

    on_stage(tmp_path / "data", test)


@pytest.mark.parametrize("type", ["hello", "open"])
def test_the_tree_at_any_record(tmp_path: Path, type: str) -> None:
    async def test(stage: Stage) -> None:
        last = stage.session.records()[-1].n
        async with stage.looking(type) as client:
            for at in (last, 1, last // 2, *range(1, last)):
                *_, tree, ok = await stage.ask(client, "seek", at=at)
                assert (tree["type"], tree["at"], answer([ok])["at"]) == ("tree", at, at)
                then = replay(stage.session.journal, at=at).view
                assert [(one["path"], one["state"], one["turns"]) for one in tree["nodes"]] == [
                    (view.path, view.state, view.turns) for view in then.nodes()
                ]
                assert [one.get("left", 0) for one in tree["nodes"]] == [node.left for node in then.nodes()]
            *_, tree, _ = await stage.ask(client, "seek", at=None)
            assert tree["at"] is None
            assert [one["path"] for one in tree["nodes"]] == ["/", "/a"]
            assert "has 1 to" in refusal(await stage.ask(client, "seek", at=last + 1))

    on_stage(tmp_path, test)


def test_seeking_in_a_session_that_goes_on(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        last = stage.session.records()[-1].n
        async with stage.looking() as client:
            answer(await stage.ask(client, "seek", at=3))
            await stage.session.ask("Again?")
            now = stage.session.records()[-1].n
            assert now > last
            *_, tree, _ = await stage.ask(client, "seek", at=now)
            assert (tree["at"], tree["nodes"][0]["turns"]) == (now, 4)

    on_stage(tmp_path, test)


def test_a_fork_goes_its_own_way_and_the_original_stays(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        records = list(stage.session.records())
        before = stage.session.journal.read_bytes()
        last = records[-1].n
        async with stage.looking("open") as client:
            made = answer(await stage.ask(client, "fork", at=last, text="And now?"))
            assert made["session"] != stage.session.id
            forked = await stage.runtime.open(made["session"])
            replied = await forked.answer(made["n"])
            seen = await until(client, type="record", n=replied.n)
            said = forked.records()[made["n"] - 1]
            assert (said.kind, said.body) == ("say", "And now?")
            assert "Here you are again." in seen[-1]["html"]
            assert [record.kind for record in forked.records(last)][:2] == ["fork", "say"]
            # What is watched now is the fork, and it is live.
            answer(await stage.ask(client, "pause", path="/"))
            assert forked.state.root.paused
        assert stage.session.journal.read_bytes() == before
        assert list(stage.session.records()) == records

    on_stage(tmp_path, test)


def test_a_fork_that_cannot_be_leaves_the_client_where_it_is(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        async with stage.looking() as client:
            assert "no record 999" in refusal(await stage.ask(client, "fork", at=999, text="x"))
            answer(await stage.ask(client, "pause", path="/a"))
            assert stage.session.state.agents["/a"].paused
            assert len(stage.runtime.sessions()) == 1

    on_stage(tmp_path, test)


def test_without_a_session_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        questions: Mapping[str, Mapping[str, object]] = {
            "seek": {"at": None},
            "fork": {"at": 1, "text": "x"},
            "context": {"path": "/"},
            "variables": {"path": "/"},
            "variable": {"path": "/", "name": "x"},
        }
        async with dial(stage.server) as client:
            for type, fields in questions.items():
                assert "This connection watches no session" in refusal(
                    await stage.ask(client, type, **fields)
                )
            assert len(stage.runtime.sessions()) == 1

    on_stage(tmp_path, test)


def test_the_exact_context_with_the_reused_part(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        async with stage.looking() as client:
            shown = answer(await stage.ask(client, "context", path="/"))
            turns = [asked for asked in stage.model.asked if asked.path == "/"]
            assert [ChatMessage(one["role"], one["text"]) for one in shown["messages"]] == [
                *turns[-1].messages
            ]
            assert [one["size"] for one in shown["messages"]] == [
                len(one.content) for one in turns[-1].messages
            ]
            reused = [one["reused"] for one in shown["messages"]]
            assert reused == [one.reused for one in context(stage.session.journal, "/").messages]
            assert (reused[0], reused[-1]) == (True, False)
            record = stage.session.records()[shown["record"] - 1]
            assert (record.kind, record.agent) == ("reply", "/")
            earlier = answer(await stage.ask(client, "context", path="/", at=record.n - 1))
            assert earlier["record"] < record.n
            assert [one["text"] for one in earlier["messages"]] == [one.content for one in turns[-2].messages]
            assert "had no turn" in refusal(await stage.ask(client, "context", path="/", at=1))
            assert "had no turn" in refusal(await stage.ask(client, "context", path="/nobody"))

    on_stage(tmp_path, test)


@pytest.mark.parametrize("type", ["hello", "open"])
def test_variables_with_their_content(tmp_path: Path, type: str) -> None:
    async def test(stage: Stage) -> None:
        async with stage.looking(type) as client:
            [newest, *others] = answer(await stage.ask(client, "variables", path="/"))["list"]
            table = stage.session.state.root.table
            assert [one["name"] for one in (newest, *others)] == [name for name, _ in table.newest()]
            assert {one["name"] for one in (newest, *others)} >= {"read_1", "write_1"}
            read = next(one for one in (newest, *others) if one["name"] == "read_1")
            assert (read["size"], read["media"]) == (len("first line\nsecond line"), "text/plain")
            assert read["origin"] == table["read_1"].origin
            assert read["labels"] == sorted(table["read_1"].labels)
            shown = answer(await stage.ask(client, "variable", path="/", name="read_1"))
            assert (shown["text"], shown["left_out"]) == ("first line\nsecond line", 0)
            assert shown["sha256"] == table["read_1"].sha256
            assert "has no variable $zip" in refusal(
                await stage.ask(client, "variable", path="/", name="zip")
            )
            assert "no agent" in refusal(await stage.ask(client, "variables", path="/zip"))
            # Before the function had run, its result was not there.
            turn = next(record.n for record in stage.session.records() if record.kind == "turn")
            assert answer(await stage.ask(client, "variables", path="/", at=turn))["list"] == []
            sentence = refusal(await stage.ask(client, "variable", path="/", name="read_1", at=turn))
            assert "has no variable $read_1" in sentence

    on_stage(tmp_path, test)


def test_a_session_that_stopped_says_why_to_everyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def test(stage: Stage) -> None:
        async with stage.looking() as client:
            monkeypatch.setattr("os.pwrite", full)
            monkeypatch.setattr("iact.core.session.runtime._writable", lambda folder: False)
            await send(client, type="pause", path="/", id=1)
            said = (await until(client, type="notice"))[-1]
            assert "No space left on device" in said["text"]
            assert said == {"type": "notice", "level": "error", "text": str(stage.session.failure)}
            async with dial(stage.server) as late:
                await send(late, type="hello", session=stage.session.id)
                assert (await until(late, type="notice"))[-1] == said

    on_stage(tmp_path, test)


def test_names_of_variables_and_aliases_are_known_from_the_agent(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        async with dial(stage.server) as client:
            await send(client, type="open", journal=stage.session.id)
            seen = await until(client, type="record", n=stage.session.records()[-1].n)
            turns = [one["html"] for one in seen if one.get("kind") in ("turn", "reply")]
            assert '<section class="card action"><header><span class="function">READ</span>' in turns[0]
            assert '<button class="chip">$read_1</button>' in turns[1]
            reply = next(one for one in turns if "ask again" in one)
            assert reply.count('<button class="chip">$read_1</button>') == 1
            assert "$nothing" in reply

    on_stage(tmp_path, test)


def test_an_alias_before_a_call_does_not_shift_who_is_told_what(tmp_path: Path) -> None:
    script = {
        "/": ["```READ\nx\n```\n```CALL a\nThe message.\n```\n", "Done."],
        "/a": ["Well."],
    }

    async def main() -> None:
        async with runtime(tmp_path, replies(script)) as opened:
            session = await opened.open()
            await session.ask("Go")
            async with WebServer(opened) as server, dial(server) as client:
                await send(client, type="hello", session=session.id)
                seen = await until(client, type="record", n=session.records()[-1].n)
                [told] = next(one for one in seen if one.get("kind") == "turn")["messages"]
                called = next(one for one in seen if one.get("function") == "CALL" and one["kind"] == "call")
                assert (told["to"], told["action"]) == ("/a", called["action"]) == ("/a", 1)

    run(main)


def test_a_long_journal_is_found_its_way_in(tmp_path: Path) -> None:
    journal = long_journal(tmp_path / "sessions", 2000)
    expected = Timeline(lambda digest: b"")
    expected.extend(read_journal(journal).records)

    async def main() -> None:
        async with (
            runtime(tmp_path, replies({})) as opened,
            WebServer(opened) as server,
            dial(server) as client,
        ):
            await send(client, type="open", journal=journal.parent.name)
            for at in (2000, 1000, 1, 1999):
                await send(client, type="seek", at=at, id=at)
            for at in (2000, 1000, 1, 1999):
                *_, tree, _ = await until(client, type="ok", id=at)
                assert [one["path"] for one in tree["nodes"]] == [node.path for node in expected.at(at)]

    run(main)
