"""Journals that say what can't be: every look at one ends well, or in one sentence that names the record."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from iact.core.errors import IactError, JournalCorrupt, JournalError
from iact.core.journal.file import FILE, read_journal
from iact.core.ports import JSON
from iact.core.stored.replay import replay
from iact.settings import Settings, load
from tests.hostile.crafted import PLACES, Change, chain, changes, crafted, header_of
from tests.hostile.looks import look, looks
from tests.rounds import rounds

CHANGES = rounds(1200)
"""Changed journals, in all shares together; 10,000 and more with IACT_TEST_SCALE=10."""
SHARES = 8
_LARGEST = 72_000

RECORDED = {
    folder: read_journal(folder).records for folder in PLACES if (folder / FILE).stat().st_size < _LARGEST
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return load(data=str(tmp_path / "data"))


@pytest.mark.parametrize("share", range(SHARES))
def test_any_field_can_hold_anything(share: int, tmp_path: Path, settings: Settings) -> None:
    dice = random.Random(f"crafted {share}")
    sources = [(records, changes(records, dice)) for records in RECORDED.values()]
    folder = tmp_path / "session"
    folder.mkdir()
    refused = 0
    for _ in range(CHANGES // SHARES):
        records, fresh = dice.choice(sources)
        change = next(fresh)
        (folder / FILE).write_bytes(crafted(records, change, dice))
        name, action = dice.choice(list(looks(settings, folder).items()))
        try:
            _, error = look(action)
        except Exception as bug:
            raise AssertionError(f"{name} of a journal with {change} raised {bug!r}") from bug
        refused += bool(error)
        assert not error or re.search(r"[Rr]ecord \d+|blob|agent|no context", error), (
            name,
            str(change),
            error,
        )
    assert 0 < refused < CHANGES


def one(folder: Path, n: int, field: str, value: JSON) -> Path:
    """A session whose record `n` says something else."""
    records = RECORDED[next(path for path in RECORDED if path.name == "tree")]
    folder.mkdir()
    (folder / FILE).write_bytes(crafted(records, Change(n, (field,), value), random.Random(1)))
    return folder


@pytest.mark.parametrize("value", [7, "smart", [], {"smart": 5}, {"smart": {"static": {"examples": 4}}}])
def test_models_of_a_wrong_type(tmp_path: Path, value: JSON) -> None:
    with pytest.raises(IactError, match=r"[Rr]ecord \d+"):
        replay(one(tmp_path / "s", 1, "models", value), verify=True)


def test_a_gate_record_whose_time_is_no_time(tmp_path: Path) -> None:
    recorded, n = next(
        (place, record.n)
        for place, records in RECORDED.items()
        for record in records
        if record.kind == "gate"
    )
    records = RECORDED[recorded]
    folder = tmp_path / "s"
    shutil.copytree(recorded, folder)  # with the values that are kept beside it
    (folder / FILE).write_bytes(crafted(records, Change(n, ("at",), "yesterday"), random.Random(1)))
    with pytest.raises(IactError, match=rf"Record {n} \(gate\) .*time"):
        replay(folder)


def test_a_wrapped_body_of_one_line(tmp_path: Path) -> None:
    records = RECORDED[next(path for path in RECORDED if path.name == "tree")]
    headers = [header_of(record) for record in records]
    headers[1]["wrapped"] = True
    bodies = [record.body for record in records]
    bodies[1] = "one line"
    (tmp_path / FILE).write_bytes(chain(headers, bodies))
    with pytest.raises(JournalCorrupt, match=r"Record 2 .* not wrapped in a fence"):
        read_journal(tmp_path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    records = RECORDED[next(path for path in RECORDED if path.name == "tree")]
    headers = [header_of(record) for record in records]
    headers[0]["ms"] = "HERE"
    data = chain(headers[:1], [records[0].body])
    assert number not in data.decode()
    line, rest = data.replace(b'"HERE"', number.encode()).split(b"\n", 1)
    (tmp_path / FILE).write_bytes(line + b"\n" + rest)
    with pytest.raises(JournalError, match=r"Record 1 .*header is not JSON"):
        read_journal(tmp_path)


@pytest.mark.parametrize("path", ["user", "/a/b/c", "//", "/../x", "a", "/x\u0000"])
def test_an_agent_is_a_child_of_its_caller(tmp_path: Path, path: str) -> None:
    """One whose caller is called "user" would have the rights of a root."""
    records = RECORDED[next(folder for folder in RECORDED if folder.name == "tree")]
    n = next(record.n for record in records if record.kind == "spawn")
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / FILE).write_bytes(crafted(records, Change(n, ("agent",), path), random.Random(1)))
    with pytest.raises(IactError, match=r"[Rr]ecord \d+"):
        replay(folder)
