"""What the records of a journal leave in memory, and the commands."""

from __future__ import annotations

import asyncio
import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from iact.commands import memory
from iact.core.errors import MemoryUnavailable, UsageError
from iact.core.journal.file import read_blob, read_journal
from iact.core.ports import NewStatement
from iact.core.tree.memory_events import statements_in_journal
from iact.hippocampus.switch import FILE
from iact.memory import USER, switches_of
from iact.settings import Settings
from tests.core.session.fakes import FakeHost, replies, runtime
from tests.core.session.memories import FakeMemory
from tests.hippocampus.scene import contents

_CALL = "```CALL web role=searcher\nWhere can the party be?\n```"
_FIND = "```web.fetch\nparks\n```"
_RENT = "```REMEMBER\nThe park can be rented for 90 euros.\n```"
_KEEP = "```REMEMBER kind=lesson\nThe budget is 500 euros.\n```"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A data directory with one session, recorded by the real tree, and something that is no journal."""
    data = tmp_path_factory.mktemp("data")

    async def scene() -> None:
        script = replies(
            {
                "/": [_KEEP, _CALL, "The party is in the park.", "I looked again."],
                "/web": ["```t.fail\nx\n```", _FIND, _RENT, "The park can be rented."],
            }
        )
        async with runtime(data, script, host=FakeHost(more=True), memory=FakeMemory()) as it:
            session = await it.open()
            await session.ask("Plan the summer party of the office. I prefer vegetarian food.")
            await session.ask("Look again for something with a garden.")

    asyncio.run(scene())
    broken = data / "sessions" / "s2"
    broken.mkdir()
    (broken / "journal.md").write_bytes(b"nothing that we wrote")
    return Settings(data=data)


@pytest.fixture
def own(settings: Settings, tmp_path: Path) -> Settings:
    """The same in a directory of the test's own, to be changed."""
    shutil.copytree(settings.data / "sessions", tmp_path / "data" / "sessions")
    return Settings(data=tmp_path / "data")


def found_in(settings: Settings) -> list[NewStatement]:
    (journal,) = [path for path in settings.data.glob("sessions/*/journal.md") if path.parent.name != "s2"]
    return list(statements_in_journal(read_journal(journal).records, partial(read_blob, journal.parent)))


def test_what_records_leave(settings: Settings) -> None:
    found = found_in(settings)
    assert [(one.agent, one.origin, one.kind, one.text) for one in found] == [
        ("/", "said", "preference", "I prefer vegetarian food."),
        ("/", "remembered", "lesson", "The budget is 500 euros."),
        ("/web", "remembered", "fact", "The park can be rented for 90 euros."),
    ]
    assert {one.session for one in found} == {memory_session(settings)}


def test_who_read_what_came_from_outside_is_tainted_and_a_person_never_is(settings: Settings) -> None:
    assert [one.untrusted for one in found_in(settings)] == [(), (), ("tool:web.fetch",)]


def memory_session(settings: Settings) -> str:
    return next(path.name for path in (settings.data / "sessions").iterdir() if path.name != "s2")


def test_the_commands(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.rebuild(settings, as_json=False) == 0
    assert capsys.readouterr().out.startswith("Restored 3 memories")
    assert memory.search(settings, "vegetarian food", limit=5, as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["text"] == "I prefer vegetarian food."
    assert set(rows[0]) >= {"id", "text", "kind", "score", "since", "session", "agent"}
    assert memory.show(settings, rows[0]["id"], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "preference"
    assert memory.edit(settings, rows[0]["id"], "I prefer vegetarian food at noon.", as_json=False) == 0
    assert capsys.readouterr().out.startswith("Edited")
    assert memory.show(settings, rows[0]["id"], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "I prefer vegetarian food at noon."
    with pytest.raises(MemoryUnavailable, match="There is no memory"):
        memory.edit(settings, "nothing/1", "x", as_json=False)
    assert memory.forget(settings, [rows[0]["id"]], as_json=False) == 0
    assert capsys.readouterr().out.startswith("1 forgotten")
    assert memory.rebuild(settings, as_json=False) == 0
    assert capsys.readouterr().out.startswith("Restored 2 memories")
    assert memory.search(settings, "vegetarian food", limit=20, as_json=False) == 0
    assert "vegetarian" not in capsys.readouterr().out
    with pytest.raises(UsageError, match="There is no memory"):
        memory.show(settings, rows[0]["id"], as_json=True)
    with pytest.raises(UsageError, match="There is no memory"):
        memory.forget(settings, ["nothing/1"], as_json=False)


def test_a_statement_is_shown_in_lines_without_what_it_has_not(
    own: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert memory.rebuild(own, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"restored": 3}
    memory.search(own, "vegetarian food", limit=1, as_json=True)
    identity = json.loads(capsys.readouterr().out)[0]["id"]
    assert memory.show(own, identity, as_json=False) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "I prefer vegetarian food."
    assert "  kind: preference" in lines
    assert f"  source: {identity}" in lines
    assert not any(line.startswith("  replaced by") for line in lines)


def test_everything_is_forgotten_and_no_journal_brings_it_back(
    own: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.rebuild(own, as_json=True)
    with pytest.raises(UsageError, match="--yes"):  # there is no terminal to ask at
        memory.forget_all(own, sure=False, as_json=False)
    capsys.readouterr()
    assert memory.forget_all(own, sure=True, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"forgotten": 3}
    memory.rebuild(own, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"restored": 0}
    assert b"vegetarian" not in contents(own.data / "memory")
    shutil.rmtree(own.data / "memory")  # it is an index, and can be lost
    memory.rebuild(own, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"restored": 0}


def test_memory_is_switched_off_and_a_list_says_so(own: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    memory.rebuild(own, as_json=True)
    assert memory.switch(own, False, session="", as_json=True) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"on": False, "session": None}
    assert not switches_of(own).is_on(USER)
    memory.list_all(own, limit=5, as_json=False)
    listed = capsys.readouterr().out
    assert "I prefer vegetarian food." in listed
    assert "iact memory on" in listed
    assert memory.switch(own, True, session="", as_json=False) == 0
    assert switches_of(own).is_on(USER)
    assert "is on" in capsys.readouterr().out


def test_whoever_can_t_read_the_switch_does_not_remember(own: Settings) -> None:
    switches = switches_of(own)
    switches.switch("anna", False)
    assert (switches.is_on("anna"), switches.is_on("ben")) == (False, True)
    (own.data / FILE).write_text("{")
    assert not switches.is_on("ben")
    with pytest.raises(MemoryUnavailable, match="can't be read"):
        switches.switch("ben", True)
