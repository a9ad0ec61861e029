"""Who did it: what a person causes carries their name, what agents and the core do carries none, and no model reads one."""

from __future__ import annotations

from pathlib import Path

from iact.core.records.person import PersonContent
from iact.core.records.record import Record
from iact.core.session.person import acting
from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.test_clearance import ASKS, question
from tests.core.session.test_control import DEEP, Scene

TWICE = {"/": ["```WRITE\na\n```\n```WRITE\nb\n```", "Done.", "Yes."]}


def named(records: list[Record]) -> dict[str, set[str]]:
    """By kind and operation of what persons can cause, who did."""
    found: dict[str, set[str]] = {}
    for one in records:
        if isinstance(one.content, PersonContent):
            found.setdefault(f"{one.kind} {one.content.OP}".strip(), set()).add(one.content.who)
    return found


async def test_each_record_names_the_person_who_caused_it_and_no_model_reads_a_name(tmp_path: Path) -> None:
    model = ScriptedModel(replies(TWICE))
    async with runtime(tmp_path, replies(TWICE), model=model, world=World(), policy=ASKS) as opened:
        session = await opened.open(intent=2)
        with acting("zebedee"):
            await session.upload("notes.txt", "text/plain", b"notes")
            said = await session.say("Go")
        with acting("quentin"):
            first = await question(session)
            await session.clear(first, allow=True, remember=None)
        second = await question(session, first)
        await session.clear(second, allow=False)  # by somebody of an installation with one user
        await session.answer(said.n)
        with acting("quentin"):
            await session.declassify("/", None)
            await session.lockdown(value=True)
            await session.set_intent(1)
            await session.raise_budget(5)
    records = list(replay(session.journal, verify=True).records)
    assert named(records) == {
        "upload": {"zebedee"},
        "say": {"zebedee"},
        "clearance answer": {"quentin", ""},
        "control declassify": {"quentin"},
        "control lockdown": {"quentin"},
        "control intent": {"quentin"},
        "control budget": {"quentin"},
    }
    read = "".join(message.content for asked in model.asked for message in asked.messages)
    assert "Go" in read
    assert "zebedee" not in read
    assert "quentin" not in read


async def test_control_at_any_depth_is_signed_and_what_follows_from_it_is_not(tmp_path: Path) -> None:
    async with Scene(tmp_path, DEEP) as scene:
        session = scene.session
        with acting("zebedee"):
            await session.pause("/a")
            queued = await session.inject("/a/b", "First words", "queue")
            await session.reword("/a/b", queued.n, "Other words")
            await session.withdraw("/a/b", queued.n)
            again = await session.inject("/a/b", "More", "queue")
            await session.send_now("/a/b", again.n)
            await session.stop_calls("/a")
            await session.resume("/a")
        await scene.finish()
        with acting("quentin"):
            await session.cancel("/a")
    told = named(scene.records)
    assert told.pop("say") == {""}
    assert told.pop("control cancel") == {"quentin"}
    assert set(told) == {
        f"control {one}" for one in ("pause", "inject", "reword", "withdraw", "send", "stop", "resume")
    }
    assert all(who == {"zebedee"} for who in told.values())
