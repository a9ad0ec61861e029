"""The stored sessions of a data directory, without a model, a sandbox or a running session."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from iact.core.errors import IactError, JournalError, UsageError
from iact.core.journal.seal import KEY
from iact.core.stored.journals import Tail, check_integrity, journal_file, read_records
from iact.core.stored.replay import replay
from iact.core.stored.store import SessionStore
from tests.core.session.fakes import replies, runtime


def stored(data: Path, *said: str) -> str:
    """A session in which the root answered."""

    async def main() -> str:
        async with runtime(data, replies({"/": [f"Heard {one}." for one in said]})) as opened:
            session = await opened.open()
            for one in said:
                await session.ask(one)
            return session.id

    return asyncio.run(main())


def test_reading_makes_nothing_on_disk(tmp_path: Path) -> None:
    made = stored(tmp_path, "I prefer tabs.")
    (tmp_path / KEY).unlink()
    before = sorted(tmp_path.rglob("*"))
    store = SessionStore(tmp_path)
    assert [info.id for info in store.sessions()] == [made]
    assert "no seals of this installation" in store.read(made).foreign
    assert store.last_record(made) == len(read_records(store.path_of(made)))
    assert len([*store.statements()]) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_session_of_ours_is_not_foreign(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    made = stored(tmp_path, "one")
    assert store.read(made).foreign == ""
    assert store.read(made, verify=True).view.nodes() == replay(store.path_of(made)).view.nodes()
    assert [info.foreign for info in store.sessions()] == [False]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "nothing"])
def test_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    stored(tmp_path, "one")
    store = SessionStore(tmp_path)
    (tmp_path / "journal.md").write_text("x")
    with pytest.raises(UsageError, match="There is no session"):
        store.path_of(name)
    with pytest.raises(UsageError):
        store.read(name)


def test_a_fork_is_a_session_of_the_same_store(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    made = stored(tmp_path, "one", "two")
    fork = store.fork(made, 3)
    assert fork.journal == journal_file(store.path_of(fork.session))
    assert {info.id for info in store.sessions()} == {fork.session, made}
    assert store.read(fork.session).total == 4


def test_what_is_worth_remembering_of_those_that_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, other = stored(tmp_path, "I prefer the moon."), stored(tmp_path, "I prefer x.")
    store = SessionStore(tmp_path)
    journal = journal_file(store.path_of(other))
    assert journal is not None
    journal.write_bytes(journal.read_bytes().replace(b"Heard I prefer x.", b"Heard I prefer y."))
    with caplog.at_level(logging.WARNING):
        found = [*store.statements()]
    assert {one.session for one in found} == {made}
    assert any("moon" in one.text for one in found)
    assert "not remembered" in caplog.text


def test_without_versions_none_are_compared(tmp_path: Path) -> None:
    made = stored(tmp_path, "one")
    store = SessionStore(tmp_path)
    assert store.versions_in(made) == []
    with pytest.raises(UsageError, match="no version begins"):
        store.compare(made, "abcdef")
    with pytest.raises(UsageError, match="does not work in a directory of yours"):
        store.waiting(made)


def test_damage_is_found_and_named(tmp_path: Path) -> None:
    journal = journal_file(SessionStore(tmp_path).path_of(stored(tmp_path, "one")))
    assert journal is not None
    whole = check_integrity(journal)
    assert (whole.error, whole.record, whole.records) == (None, None, len(read_records(journal)))
    journal.write_bytes(journal.read_bytes().replace(b"Heard one.", b"Heard two."))
    broken = check_integrity(journal)
    assert isinstance(broken.error, JournalError)
    assert broken.record == broken.records + 1
    assert broken.offset is not None
    assert check_integrity(tmp_path / "nothing").error is not None


def test_the_last_records_and_those_that_follow(tmp_path: Path) -> None:
    path = SessionStore(tmp_path).path_of(stored(tmp_path, "one", "two"))
    records = read_records(path)
    assert [record.n for record in Tail(path)] == [record.n for record in records]
    assert [record.n for record in Tail(path, last=2)] == [len(records) - 1, len(records)]
    # The session is closed, so following ends by itself.
    assert records[-1].kind == "close"
    assert len([*Tail(path, follow=True)]) == len(records)


def test_refusals_are_sentences(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    made = stored(tmp_path, "one")
    with pytest.raises(IactError) as raised:
        asyncio.run(store.restore(made, json.dumps("x")))
    assert str(raised.value).endswith(".")
