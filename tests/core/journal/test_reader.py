"""The streaming reader gives what `read_journal` gives, from any place, while the journal grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt, JournalError, JournalTooNew
from iact.core.journal import encode, read_journal
from iact.core.journal.file import last_number
from iact.core.journal.reader import Reader
from iact.core.ports import JSON
from iact.core.records.record import GENESIS, blobs_of
from tests.records import NOTICE, opening_fields, raw_record

AT = "2026-05-04T03:02:01.123456Z"


def chain(count: int, *, version: str = "1.0") -> list[bytes]:
    """The bytes of `count` records that follow each other."""
    pieces, digest = list[bytes](), GENESIS
    for n in range(1, count + 1):
        fields: dict[str, JSON] = opening_fields(version) if n == 1 else NOTICE
        one = raw_record(n, AT, "open" if n == 1 else "notice", "/", n, f"body {n}", fields, digest)
        data, digest = encode(one)
        pieces.append(data)
    return pieces


def test_it_goes_on_where_it_stood_whatever_came_in_between(tmp_path: Path) -> None:
    pieces, journal = chain(5), tmp_path / "journal.md"
    journal.write_bytes(b"".join(pieces[:2]) + pieces[2][:30])
    reader = Reader(tmp_path)
    assert [one.n for one in reader.read()] == [1, 2]
    assert (reader.last, reader.pending, reader.offset) == (2, 30, len(pieces[0]) + len(pieces[1]))
    # Another writer cut the torn tail off and wrote something else in its place.
    journal.write_bytes(b"".join(pieces[:4]))
    assert [one.n for one in reader.read()] == [3, 4]
    assert list(reader.read()) == []
    journal.write_bytes(b"".join(pieces))
    assert [one.body for one in reader.read()] == ["body 5"]
    assert (reader.offset, reader.pending) == (journal.stat().st_size, 0)


def test_taking_a_part_moves_no_further_than_that(tmp_path: Path) -> None:
    pieces = chain(4)
    (tmp_path / "journal.md").write_bytes(b"".join(pieces))
    reader = Reader(tmp_path / "journal.md")
    for one in reader.read():
        if one.n == 2:
            break
    assert reader.offset == len(pieces[0]) + len(pieces[1])
    assert [one.n for one in reader.read()] == [3, 4]


def test_it_gives_what_the_whole_reader_gives(tmp_path: Path) -> None:
    (tmp_path / "journal.md").write_bytes(b"".join(chain(50)))
    assert list(Reader(tmp_path).read()) == read_journal(tmp_path).records


def test_damage_behind_its_place_is_named_by_number_and_byte_of_the_file(tmp_path: Path) -> None:
    pieces, journal = chain(3), tmp_path / "journal.md"
    journal.write_bytes(b"".join(pieces[:2]))
    reader = Reader(journal)
    assert len(list(reader.read())) == 2
    journal.write_bytes(b"".join(pieces[:2]) + pieces[2].replace(b"body 3", b"body 4"))
    with pytest.raises(JournalCorrupt) as raised:
        list(reader.read())
    assert (raised.value.n, raised.value.offset) == (3, len(pieces[0]) + len(pieces[1]))


def test_a_newer_version_and_no_journal_are_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.md").write_bytes(b"".join(chain(1, version="2.0")))
    with pytest.raises(JournalTooNew):
        list(Reader(tmp_path).read())
    with pytest.raises(JournalError, match="There is no journal"):
        list(Reader(tmp_path / "nowhere").read())


def test_the_last_number_is_read_from_the_end(tmp_path: Path) -> None:
    journal = tmp_path / "journal.md"
    journal.write_bytes(b"")
    assert last_number(journal) == 0
    journal.write_bytes(b"".join(chain(12)))
    assert last_number(journal) == 12
    journal.write_bytes(b"".join(chain(12))[:-3])
    assert last_number(journal) == 11


def test_the_blobs_of_a_record_are_found_at_any_depth() -> None:
    one, two = "a" * 64, "b" * 64
    fields: dict[str, JSON] = {
        "digest": "c" * 64,
        "blob": {"sha256": one, "size": 1},
        "artifacts": [{"name": "x", "more": [{"sha256": two}]}, {"sha256": "short"}, {"sha256": 5}],
    }
    assert blobs_of(raw_record(2, AT, "result", "/", 2, "", fields)) == {one, two}
