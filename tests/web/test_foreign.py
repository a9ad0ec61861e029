"""A session from elsewhere over the wire: shown, named as such, and gone on with as one's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from iact.core.errors import ForeignSession
from iact.core.journal import read_journal
from iact.core.journal.seal import KEY
from iact.core.stored.replay import replay
from iact.examples import EXAMPLES
from iact.web.server import WebServer
from tests.core.session.fakes import ScriptedModel, replies, runtime
from tests.sealing import SEALER
from tests.web.dialling import dial, run, send, until
from tests.web.fake import FakeAround


def put_foreign(tmp_path: Path, data: Path) -> Path:
    """A session of another installation among one's own."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / KEY).write_bytes(b"t" * 32)

    async def main() -> Path:
        async with runtime(other, replies({"/": ["Hello from there."]})) as opened:
            session = await opened.open(intent=2)
            await session.ask("Go")
            return session.journal.parent

    folder = asyncio.run(main())
    target = data / "sessions" / folder.name
    target.parent.mkdir(parents=True)
    folder.rename(target)
    return target


def test_a_foreign_session_is_shown_and_adopted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    folder = put_foreign(tmp_path, data)
    before = (folder / "journal.md").read_bytes()
    last = len(read_journal(folder).records)

    async def test() -> None:
        model = ScriptedModel(lambda asked: "Hello from here.", context=1_000_000)
        async with (
            runtime(data, replies({}), model=model) as opened,
            WebServer(opened) as server,
            dial(server) as client,
        ):
            await send(client, type="sessions", id="list")
            listed = next(one for one in await until(client, id="list") if one["type"] == "sessions")["list"]
            assert [(one["id"], one["foreign"]) for one in listed] == [(folder.name, True)]

            await send(client, type="hello", session=folder.name, id="hello")
            seen = await until(client, type="record", n=last)
            facts = next(one for one in seen if one["type"] == "session")
            assert facts["readonly"] is True
            assert "no seals of this installation" in facts["foreign"]

            for change in ({"type": "say", "text": "x"}, {"type": "intent", "value": 2}):
                await send(client, **change, id="change")
                assert "adopt it" in (await until(client, id="change"))[-1]["message"]
            await send(client, type="fork", at=last, text="Go on", id="fork")
            refused = (await until(client, id="fork"))[-1]
            assert (refused["type"], refused["code"]) == ("error", "foreign")
            assert "iact session adopt" in refused["message"]

            await send(client, type="adopt", id="adopt")
            answer = (await until(client, id="adopt"))[-1]
            assert answer["type"] == "ok", answer
            made = str(answer["session"])
            shown = await until(client, type="record", kind="adopt")
            assert next(one for one in shown if one["type"] == "session")["readonly"] is False
            await send(client, type="say", text="And now?", id="said")
            await until(client, type="record", kind="reply", body="Hello from here.")
            assert opened.store.read(made).foreign == ""

    run(test)
    assert (folder / "journal.md").read_bytes() == before


def test_an_example_is_gone_on_with_by_adopting_it(tmp_path: Path) -> None:
    """It comes with the product, so nobody need be asked; but its terms are those of a new session."""
    example = EXAMPLES[0]

    async def test() -> str:
        model = ScriptedModel(lambda asked: "Mine now.", context=1_000_000)
        async with (
            runtime(tmp_path, replies({}), model=model) as opened,
            WebServer(opened, product=FakeAround()) as server,
            dial(server) as client,
        ):
            await send(client, type="open", journal=example.name)
            seen = await until(client, type="record", n=2)
            facts = next(one for one in seen if one["type"] == "session")
            assert facts["example"] is True
            assert "foreign" not in facts
            await send(client, type="fork", at=2, text="Go on", id="fork")
            answer = (await until(client, id="fork"))[-1]
            assert answer["type"] == "ok", answer
            await until(client, type="record", kind="reply")
            return str(answer["session"])

    sessions: list[str] = []

    async def main() -> None:
        sessions.append(await test())

    run(main)
    found = replay(tmp_path / "sessions" / sessions[0], verify=True, sealer=SEALER)
    assert found.contents.foreign == ""
    assert [one.kind for one in found.records].count("adopt") == 1


def test_the_sentence_names_the_command() -> None:
    assert "iact session adopt some-id" in str(ForeignSession("some-id", "it has no seals"))
