"""Other models play the roles while a session is open, and once it is opened again: what is recorded says who wrote what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iact.core.models.roles import Models
from iact.core.ports import StaticPrompt
from iact.core.records.control import SetModels
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, replies, runtime

SCRIPT = replies({"/": ["One.", "Two.", "Three.", "Four."]})


def called(name: str, *, small: bool = False) -> ScriptedModel:
    model = ScriptedModel(SCRIPT)
    static = StaticPrompt(f"You are {name}.") if small else None
    model.profile = replace(model.profile, name=name, static=static)
    return model


def authors(records: Sequence[Record]) -> list[str]:
    return [
        one.content.generation.model
        for one in records
        if isinstance(one.content, Reply) and one.content.generation is not None
    ]


def changes(records: Sequence[Record]) -> list[dict[str, str]]:
    found = [one.content for one in records if isinstance(one.content, SetModels)]
    return [{role: terms.model for role, terms in one.models.items()} for one in found]


def test_the_next_message_is_answered_by_the_model_that_is_chosen_by_then(tmp_path: Path) -> None:
    async def run() -> tuple[Session, list[Record]]:
        async with runtime(tmp_path, SCRIPT, model=called("small", small=True)) as opened:
            session = await opened.open()
            await session.ask("Go")
            opened.use_models(Models({"smart": called("large"), "fast": called("quick")}))
            assert session.model_label == "large"
            # Nothing is recorded for a change that nobody has met yet.
            assert changes(session.records()) == []
            await session.ask("On")
            await session.ask("On")
            return session, list(session.records())

    session, records = asyncio.run(run())
    assert authors(records)[0] == "small"
    assert set(authors(records)[1:]) == {"large"}
    assert changes(records) == [{"smart": "large", "fast": "quick"}]
    tree = replay(session.journal, verify=True).tree
    # The dialogue goes on behind the prompt of the model that goes on with it.
    messages = tree.root.context.history.messages()
    assert messages[0].content != "You are small."
    assert any("One." in one.content for one in messages)


def test_a_session_that_is_opened_again_says_which_models_go_on(tmp_path: Path) -> None:
    async def run(name: str, identity: str | None) -> tuple[str, Path, list[Record]]:
        async with runtime(tmp_path, SCRIPT, model=called(name)) as opened:
            session = await opened.open(identity)
            await session.ask("Go")
            return session.id, session.journal, list(session.records())

    identity, _, _ = asyncio.run(run("before", None))
    _, journal, records = asyncio.run(run("after", identity))
    assert authors(records)[0] == "before"
    assert authors(records)[-1] == "after"
    assert changes(records) == [{"smart": "after"}]
    replay(journal, verify=True)


def test_work_that_is_under_way_is_ended_by_the_model_that_began_it(tmp_path: Path) -> None:
    async def run() -> tuple[Path, list[Record]]:
        going = asyncio.Event()
        before = ScriptedModel(SCRIPT, holds={"/": going})
        before.profile = replace(before.profile, name="before")
        async with runtime(tmp_path, SCRIPT, model=before) as opened:
            session = await opened.open()
            await session.say("Go")
            opened.use_models(Models({"smart": called("after")}))
            second = await session.say("On")
            going.set()
            await session.answer(second.n)
            await session.ask("Again")
            return session.journal, list(session.records())

    journal, records = asyncio.run(run())
    assert authors(records)[0] == "before"
    assert authors(records)[-1] == "after"
    change = next(one.n for one in records if isinstance(one.content, SetModels))
    # While anybody is at work, nothing changes under their feet.
    assert change > next(one.n for one in records if one.kind == "reply")
    replay(journal, verify=True)
