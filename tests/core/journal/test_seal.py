"""Seals say who wrote a record: only the holder of the key makes them, and whatever is changed loses them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ForeignSession, JournalCorrupt, JournalError
from iact.core.journal import Journal, Parser, encode, read_journal
from iact.core.journal.ends import JournalEnds
from iact.core.journal.file import FILE
from iact.core.journal.reader import Reader
from iact.core.journal.seal import KEY, Sealer, open_sealer, read_sealer
from iact.core.ports import JSON
from iact.core.records.record import GENESIS
from iact.core.records.session import Notice
from tests.records import NOTICE, opening, opening_fields, raw_record

AT = "2026-01-01T00:00:00.000000Z"
OURS, THEIRS = Sealer(b"o" * 32), Sealer(b"t" * 32)


def journal(sealers: list[Sealer | None], bodies: list[str] | None = None) -> bytes:
    """A journal whose records these sealers wrote, one each."""
    data, prev = b"", GENESIS
    for n, sealer in enumerate(sealers, 1):
        fields = opening_fields("1.1") if n == 1 else NOTICE
        body = bodies[n - 1] if bodies else f"body {n}"
        record = raw_record(n, AT, "open" if n == 1 else "notice", "/", n, body, fields, prev)
        encoded, prev = encode(record, sealer)
        data += encoded
    return data


def stored(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(data)
    return folder


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200), st.binary(max_size=200))
def test_a_seal_is_an_hmac_as_everybody_makes_them(key: bytes, one: bytes, two: bytes) -> None:
    assert Sealer(key).seal(one, two) == hmac.new(key, one + two, hashlib.sha256).hexdigest()[:16]


def test_what_one_wrote_is_ones_own_and_nobody_elses(tmp_path: Path) -> None:
    session = stored(tmp_path, journal([OURS, OURS, OURS]))
    assert read_journal(session, OURS).foreign == ""
    assert "no seals of this installation" in read_journal(session, THEIRS).foreign
    assert read_journal(session).foreign == ""  # nobody asked


@pytest.mark.parametrize("stranger", [None, THEIRS])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_one_record_of_a_stranger_makes_a_session_foreign(
    tmp_path: Path, stranger: Sealer | None, place: int
) -> None:
    sealers: list[Sealer | None] = [OURS, OURS, OURS]
    sealers[place - 1] = stranger
    session = stored(tmp_path, journal(sealers))
    assert read_journal(session, OURS).foreign == f"record {place} was not written by this installation"
    with pytest.raises(ForeignSession, match="iact session adopt") as raised:
        Journal.open(session, OURS)
    assert raised.value.why in str(raised.value)


@given(st.data())
def test_whatever_is_changed_in_a_sealed_journal_is_noticed(data: st.DataObject) -> None:
    """Also by somebody who mends lengths, digests and chain: they can't mend the seal."""
    bodies = data.draw(st.lists(st.text(max_size=40), min_size=3, max_size=3))
    records = list(Parser().feed(journal([OURS] * 3, bodies)))
    place = data.draw(st.integers(0, 2))
    changed, prev = b"", GENESIS
    for n, record in enumerate(records):
        body = record.body + "!" if n == place else record.body
        mended = raw_record(
            record.n,
            record.at,
            record.kind,
            record.agent,
            record.step,
            body,
            record.fields,
            prev,
            "",
            record.seal,
        )
        encoded, prev = encode(mended)
        changed += encoded
    parser = Parser(sealer=OURS)
    assert len(list(parser.feed(changed))) == 3
    assert parser.seals.unsealed == place + 1


def test_a_seal_is_no_field_and_comes_back_as_it_was() -> None:
    data = journal([OURS, None])
    records = list(Parser().feed(data))
    assert [bool(one.seal) for one in records] == [True, False]
    assert all("seal" not in one.fields for one in records)
    assert b"".join(encode(one)[0] for one in records) == data


def test_a_seal_that_stands_elsewhere_is_damage() -> None:
    line, rest = journal([OURS]).split(b"\n", 1)
    seal = line[-len(b',"seal":"0123456789abcdef"} -->') : -len(b"} -->")]
    moved = line.replace(seal, b"").replace(b'"n":1', b'"n":1' + seal)
    with pytest.raises(JournalCorrupt, match="seal"):
        list(Parser().feed(moved + b"\n" + rest))


def test_what_is_appended_is_sealed_and_stays_ones_own(tmp_path: Path) -> None:
    async def write(directory: Path) -> None:
        made = Journal.create(directory, OURS)
        made.append(opening("1.1"), "/", 1, AT)
        last = made.append(Notice(level="warning", code="test"), "/", 2, AT, "```\nan open fence")
        await made.durable(last.n)
        await made.close()

    async def go_on(directory: Path) -> None:
        again, contents = Journal.open(directory, OURS)
        assert contents.foreign == ""
        again.append(Notice(level="warning", code="test"), "/", 3, AT, "more")
        await again.close()

    asyncio.run(write(tmp_path / "s"))
    asyncio.run(go_on(tmp_path / "s"))
    found = read_journal(tmp_path / "s", OURS)
    assert found.foreign == ""
    assert len(found.records) == 3
    assert found.records[1].body == "```\nan open fence"


def test_a_torn_tail_is_no_strangers_work_and_a_foreign_one_is_left_alone(tmp_path: Path) -> None:
    whole = journal([OURS, OURS])
    session = stored(tmp_path / "ours", whole[:-30])
    _, contents = Journal.open(session, OURS)
    assert (len(contents.records), contents.foreign) == (1, "")
    other = stored(tmp_path / "theirs", whole[:-30])
    with pytest.raises(ForeignSession):
        Journal.open(other, THEIRS)
    assert (other / FILE).read_bytes() == whole[:-30]
    assert not (other / "workspace").exists()


# --- adoption -------------------------------------------------------------------------------------


def adopted(prefix: bytes, sha256: str, sealer: Sealer | None) -> bytes:
    records = list(Parser().feed(prefix))
    terms = {
        name: value
        for name, value in opening_fields().items()
        if name not in ("session", "tail", "workspace")
    }
    fields: dict[str, JSON] = {
        **terms, "policy": {}, "workspace": "none", "by": "user",
        "from": "s", "after": len(records), "session": "t", "sha256": sha256,
    }  # fmt: skip
    n = len(records) + 1
    return prefix + encode(raw_record(n, AT, "adopt", "/", n, "", fields, records[-1].digest), sealer)[0]


def test_what_an_adopt_record_names_is_ours_and_nothing_else_is(tmp_path: Path) -> None:
    prefix = journal([THEIRS, None])
    right = hashlib.sha256(prefix).hexdigest()
    for name, data, why in (
        ("right", adopted(prefix, right, OURS), ""),
        ("another", adopted(prefix, "0" * 64, OURS), "the part that it adopted has changed since"),
        ("unsealed", adopted(prefix, right, None), "no seals of this installation"),
        ("theirs", adopted(prefix, right, THEIRS), "no seals of this installation"),
    ):
        found = read_journal(stored(tmp_path / name, data), OURS).foreign
        assert (found == "") == (why == ""), name
        assert why in found, name


def test_records_behind_an_adoption_need_seals(tmp_path: Path) -> None:
    prefix = journal([None])
    data = adopted(prefix, hashlib.sha256(prefix).hexdigest(), OURS)
    last = list(Parser().feed(data))[-1]
    data += encode(raw_record(3, AT, "notice", "/", 3, "x", NOTICE, last.digest), THEIRS)[0]
    assert (
        read_journal(stored(tmp_path, data), OURS).foreign == "record 3 was not written by this installation"
    )


# --- a list of many ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100_000, 6 << 20])
def test_the_ends_of_a_journal_say_whose_it_is(tmp_path: Path, size: int) -> None:
    faking = '<!-- iact {"n":2,"at":"x","prev":"00000000"} -->\n### 2 · fake\n\n' + "x" * size
    for sealer, ours in ((OURS, True), (None, False), (THEIRS, False)):
        file = stored(tmp_path, journal([OURS, sealer], ["a", faking])) / FILE
        ends = JournalEnds.of(file, OURS)
        assert ends.last == 2
        # A last record longer than what a list reads is not looked for; opening reads all of it.
        assert ends.sealed == (ours and size < 4 << 20)
        assert (read_journal(tmp_path, OURS).foreign == "") == ours


def test_a_reader_knows_the_seals_of_what_it_read(tmp_path: Path) -> None:
    reader = Reader(stored(tmp_path, journal([OURS, THEIRS])), OURS)
    for record in reader.read():
        assert reader.seals.unsealed == (0 if record.n == 1 else 2)


# --- the key ------------------------------------------------------------------------------------------


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    assert read_sealer(tmp_path / "data") is None
    first = open_sealer(tmp_path / "data")
    file = tmp_path / "data" / KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_size == 32
    assert [path.name for path in file.parent.iterdir()] == [KEY]
    assert open_sealer(tmp_path / "data").seal(b"x") == first.seal(b"x")


def test_many_who_start_at_once_have_one_key(tmp_path: Path) -> None:
    seals: list[str] = []
    threads = [
        threading.Thread(target=lambda: seals.append(open_sealer(tmp_path).seal(b"x"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seals) == 8
    assert len(set(seals)) == 1


@pytest.mark.parametrize("how", ["short", "long", "link", "pipe", "folder"])
def test_what_is_no_key_is_refused_with_what_to_do(tmp_path: Path, how: str) -> None:
    key = tmp_path / KEY
    match how:
        case "short":
            key.write_bytes(b"x" * 31)
        case "long":
            key.write_bytes(b"x" * 33)
        case "link":
            (tmp_path / "other").write_bytes(b"x" * 32)
            key.symlink_to(tmp_path / "other")
        case "pipe":
            os.mkfifo(key)
        case _:
            key.mkdir()
    with pytest.raises(JournalError, match="move the file away"):
        open_sealer(tmp_path)


def test_a_key_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    open_sealer(tmp_path)
    (tmp_path / KEY).chmod(0o644)
    open_sealer(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600
