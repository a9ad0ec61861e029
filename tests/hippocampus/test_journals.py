"""What the records of a journal leave in memory, and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import UsageError
from core.journal.record import GENESIS, Record, encode
from core.ports import JSON
from iact import memory
from iact.settings import Settings


def record(n: int, kind: str, agent: str, body: str = "", **fields: JSON) -> Record:
    return Record(n, f"2026-02-01T10:00:{n:02d}.000Z", kind, agent, n, body, fields)


SESSION = [
    record(1, "open", "/", format="1.0", session="s1"),
    record(2, "say", "/", "Plan the summer party of the office. I prefer vegetarian food."),
    record(3, "spawn", "/web", "You search.", caller="/"),
    record(4, "result", "/web", "Traceback: no route to host", function="web.fetch", status="error"),
    record(5, "result", "/web", "a page", function="web.fetch", status="ok"),
    record(6, "reply", "/web", "The park can be rented for 90 euros.", to="/", status="ok"),
    record(7, "control", "/web", "No, look for a garden.", op="inject", by="user", mode="queue"),
    record(8, "result", "/", "The budget is 500 euros.", function="REMEMBER", status="ok"),
    record(9, "reply", "/", "The party is in the park.", to="user", status="ok"),
    record(10, "notice", "/", "something for people", level="info", code="x"),
]


def test_what_records_leave() -> None:
    found = list(memory.happenings(SESSION, "other"))
    assert [(one.record, one.occasion, one.first) for one in found] == [
        (2, "say", True),
        (4, "failure", False),
        (6, "reply", False),
        (7, "correction", False),
        (8, "remember", False),
        (9, "reply", False),
    ]
    assert {one.session for one in found} == {"s1"}


def test_who_read_what_came_from_outside_is_tainted() -> None:
    labels = {one.record: one.untrusted for one in memory.happenings(SESSION, "s1")}
    assert labels == {
        2: (),
        4: ("tool:web.fetch",),
        6: ("tool:web.fetch",),
        7: (),
        8: ("tool:web.fetch",),
        9: ("tool:web.fetch",),
    }


def test_a_child_inherits_what_its_caller_has_read() -> None:
    records = [
        record(1, "result", "/", "a page", function="web.fetch", status="ok"),
        record(2, "spawn", "/b", "You write.", caller="/"),
        record(3, "reply", "/b", "Done.", to="/", status="ok"),
    ]
    assert [one.untrusted for one in memory.happenings(records, "s")] == [("tool:web.fetch",)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    place = tmp_path / "sessions" / "s1"
    place.mkdir(parents=True)
    prev, data = GENESIS, b""
    for one in SESSION:
        raw, digest = encode(Record(one.n, one.at, one.kind, one.agent, one.step, one.body, one.fields, prev))
        data, prev = data + raw, digest
    (place / "journal.md").write_bytes(data)
    broken = tmp_path / "sessions" / "s2"
    broken.mkdir()
    (broken / "journal.md").write_bytes(b"nothing that we wrote")
    return Settings(data=tmp_path)


def test_the_commands(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.rebuild(settings) == 0
    assert capsys.readouterr().out.startswith("7 memories")
    assert memory.search(settings, "vegetarian food", limit=5, as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["text"] == "I prefer vegetarian food."
    assert set(rows[0]) >= {"id", "text", "kind", "score", "at", "session", "agent"}
    assert memory.show(settings, rows[0]["id"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "preference"
    assert memory.forget(settings, [rows[0]["id"]]) == 0
    assert capsys.readouterr().out.startswith("2 forgotten")
    assert memory.rebuild(settings) == 0
    assert capsys.readouterr().out.startswith("5 memories")
    assert memory.search(settings, "vegetarian food", limit=20, as_json=False) == 0
    assert "vegetarian" not in capsys.readouterr().out
    with pytest.raises(UsageError, match="There is no memory"):
        memory.show(settings, "s1/2")
    with pytest.raises(UsageError, match="There is no memory"):
        memory.forget(settings, ["nothing/1"])
