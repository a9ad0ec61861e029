"""Where a journal lies and who may read it, what `append` gives back, and the sentences for what can't be done."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt, JournalError, JournalLocked, JournalUnwritable, UsageError
from iact.core.journal.file import FILE, Journal, read_blob, read_journal
from iact.core.journal.reader import Reader
from iact.core.journal.record import encode
from iact.core.records.content import Unknown
from iact.core.records.dialogue import Say
from iact.core.records.record import Record
from tests.records import opening, opening_fields, raw_record

AT = "2026-05-04T03:02:01.123456Z"
CONTENT = b"a value"
SHA = hashlib.sha256(CONTENT).hexdigest()


def stored(directory: Path) -> Path:
    """A closed journal of one record."""

    async def main() -> None:
        journal = Journal.create(directory)
        journal.append(opening(), "/", 1, AT)
        await journal.close()

    asyncio.run(main())
    return directory


def test_a_new_session_is_its_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        directory = stored(tmp_path / "deep" / "below" / "s")
    finally:
        os.umask(old)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / FILE).stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in directory.iterdir()) == ["blobs", FILE, "workspace"]


def test_a_directory_that_is_there_is_used_and_a_journal_in_it_is_not_replaced(tmp_path: Path) -> None:
    for name in ("blobs", "workspace"):
        (tmp_path / "s" / name).mkdir(parents=True)
    stored(tmp_path / "s")
    before = (tmp_path / "s" / FILE).read_bytes()
    with pytest.raises(JournalUnwritable, match=r"^No session can be stored in .*/s: File exists\.$"):
        Journal.create(tmp_path / "s")
    assert (tmp_path / "s" / FILE).read_bytes() == before


def test_opening_makes_the_folders_that_are_missing(tmp_path: Path) -> None:
    directory = stored(tmp_path / "s")
    for name in ("blobs", "workspace"):
        (directory / name).rmdir()
    journal, contents = Journal.open(directory)
    journal.abandon()
    assert (journal.directory, len(contents.records)) == (directory, 1)
    assert sorted(one.name for one in directory.iterdir()) == ["blobs", FILE, "workspace"]


def test_an_empty_journal_is_opened_at_its_beginning(tmp_path: Path) -> None:
    Journal.create(tmp_path / "s").abandon()

    async def main() -> None:
        journal, contents = Journal.open(tmp_path / "s")
        assert contents.records == []
        assert journal.append(opening(), "/", 1, AT).n == 1
        await journal.close()

    asyncio.run(main())
    assert len(read_journal(tmp_path / "s").records) == 1


def test_append_gives_the_record_as_it_is_read_again(tmp_path: Path) -> None:
    async def main() -> list[Record]:
        journal = Journal.create(tmp_path / "s")
        given = [
            journal.append(opening(), "/", 1, AT),
            journal.append(Say(), "/a", 2, AT, "hello"),
        ]
        await journal.close()
        return given

    given = asyncio.run(main())
    assert given == read_journal(tmp_path / "s").records
    assert given == [*Reader(tmp_path / "s" / FILE).read()]
    assert read_journal(tmp_path / "s" / FILE).records == given


async def test_a_blob_can_be_read_before_and_after_it_is_on_disk(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "s")
    record = journal.append(opening(), "/", 1, AT, "", {SHA: CONTENT})
    assert journal.blob(SHA) == CONTENT
    assert list((tmp_path / "s" / "blobs").iterdir()) == []
    await journal.durable(record.n)
    (tmp_path / "s" / "blobs" / SHA).unlink()
    with pytest.raises(JournalError, match=rf"The blob {SHA[:12]}… .* is missing"):
        journal.blob(SHA)
    await journal.close()


def test_a_blobs_name_is_quoted_in_part(tmp_path: Path) -> None:
    with pytest.raises(JournalError) as raised:
        read_blob(tmp_path, "g" * 100)
    assert str(raised.value) == f"'{'g' * 80}' is not the name of a blob."


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        journal = Journal.create(tmp_path / "s")
        journal.append(opening(), "/", 1, AT)
        await journal.close()
        with pytest.raises(JournalUnwritable, match=r"^The session is closed\.$"):
            journal.append(Say(), "/", 1, AT)

    asyncio.run(main())
    journal, _ = Journal.open(tmp_path / "s")
    journal.abandon()
    with pytest.raises(JournalUnwritable, match="The session is closed"):
        journal.append(Say(), "/", 1, AT)


def test_a_second_opener_is_told_where(tmp_path: Path) -> None:
    directory = stored(tmp_path / "s")
    journal, _ = Journal.open(directory)
    says = f"The session in {directory} is open in another process; use or end that process."
    with pytest.raises(JournalLocked) as raised:
        Journal.open(directory)
    assert str(raised.value) == says
    journal.abandon()


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "s" / FILE).mkdir(parents=True)
    for read in (lambda: read_journal(tmp_path / "s"), lambda: [*Reader(tmp_path / "s").read()]):
        with pytest.raises(JournalError, match=r"The journal .*journal\.md can't be read: Is a directory\.$"):
            read()
    with pytest.raises(JournalError, match=r"The journal in .*/s can't be opened: Is a directory\.$"):
        Journal.open(tmp_path / "s")


def test_a_journal_that_opens_no_session_is_damaged_at_its_first_byte(tmp_path: Path) -> None:
    data, _ = encode(raw_record(1, AT, "say", "/", 1))
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(JournalCorrupt) as raised:
        read_journal(tmp_path)
    assert str(raised.value) == "Record 1 at byte 0 is damaged: it does not open a session."
    assert (raised.value.n, raised.value.offset) == (1, 0)


def test_a_wrong_length_is_told_of_the_record_that_has_it(tmp_path: Path) -> None:
    first, digest = encode(raw_record(1, AT, "open", "/", 1, "", opening_fields()))
    one = raw_record(2, AT, "say", "/", 1, "hello", prev=digest)
    second, digest = encode(one)
    third, _ = encode(replace(one, n=3, prev=digest))
    (tmp_path / FILE).write_bytes(first + second.replace(b'"bytes":5', b'"bytes":900') + third)
    with pytest.raises(JournalCorrupt) as raised:
        read_journal(tmp_path)
    assert str(raised.value) == f"Record 2 at byte {len(first)} is damaged: its length is wrong."
    assert (raised.value.n, raised.value.offset) == (2, len(first))


def test_a_failure_that_is_none_of_the_disk_stops_the_session_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise RuntimeError("out of threads")

    async def main() -> None:
        journal = Journal.create(tmp_path / "s")
        heard: list[int] = []
        journal.on_durable = lambda records: heard.append(len(records))
        monkeypatch.setattr(os, "fdatasync", fail)
        record = journal.append(opening(), "/", 1, AT)
        with pytest.raises(JournalUnwritable, match=r"can't be written \(out of threads\)"):
            await journal.durable(record.n)
        assert heard == [0], "who watches is told that it stopped"
        with pytest.raises(JournalUnwritable, match="out of threads"):
            await journal.durable(record.n)
        await journal.close()

    asyncio.run(main())


async def test_a_refused_record_changes_nothing(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "s")
    with pytest.raises(UsageError):
        journal.append(Unknown("later", {"n": 1}), "/", 1, AT, "", {SHA: CONTENT})
    with pytest.raises(JournalError, match="is missing"):
        journal.blob(SHA)
    assert journal.append(opening(), "/", 1, AT).n == 1
    await journal.close()
