"""The journal on disk: durability, groups, failures of the disk, the lock, blobs, versions."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.errors import (
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalTooNew,
    JournalUnwritable,
    UsageError,
)
from iact.core.journal import file
from iact.core.journal.file import FILE, Journal, read_blob, read_journal, write_blob
from iact.core.journal.record import encode
from iact.core.records.content import Unknown
from iact.core.records.dialogue import Say
from iact.core.records.record import Record
from tests.records import opening, opening_fields, raw_record

AT = "2026-05-04T03:02:01.123456Z"


def begin(directory: Path) -> Journal:
    """A journal whose first record is queued."""
    journal = Journal.create(directory)
    journal.append(opening(), "/", 1, AT)
    return journal


def say(journal: Journal, body: str) -> Record:
    return journal.append(Say(), "/", 1, AT, body)


async def store(directory: Path, bodies: Sequence[str]) -> None:
    """A closed journal with one record for each body, behind the first."""
    journal = begin(directory)
    for body in bodies:
        say(journal, body)
    await journal.close()


def bodies(directory: Path) -> list[str]:
    """The bodies of a stored journal, without the first."""
    return [record.body for record in read_journal(directory).records[1:]]


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    asyncio.run(store(tmp_path / "s", ["a", "```\nopen", ""]))
    assert bodies(tmp_path / "s") == ["a", "```\nopen", ""]


def test_many_appends_at_once_share_few_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    sync = os.fdatasync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)

    async def one(journal: Journal, at: int) -> None:
        await journal.durable(say(journal, str(at)).n)

    async def run() -> None:
        journal = begin(tmp_path / "s")
        async with asyncio.TaskGroup() as group:
            for at in range(500):
                group.create_task(one(journal, at))
        await journal.close()

    asyncio.run(run())
    assert bodies(tmp_path / "s") == [str(at) for at in range(500)]
    assert len(syncs) <= 3


async def test_records_that_nobody_waits_for_are_gathered_and_who_waits_waits_for_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    sync = os.fdatasync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    monkeypatch.setattr(file, "_PAUSE", 3600.0)
    journal = begin(tmp_path / "s")
    await journal.durable(1)
    for at in range(100):
        last = say(journal, str(at))
        await asyncio.sleep(0)
    assert len(syncs) == 1
    await journal.durable(last.n)
    assert len(syncs) == 2
    assert bodies(tmp_path / "s") == [str(at) for at in range(100)]
    await journal.close()


async def test_records_that_nobody_waits_for_reach_the_disk_by_themselves(tmp_path: Path) -> None:
    journal, there = begin(tmp_path / "s"), asyncio.Event()
    await journal.durable(1)
    journal.on_durable = lambda records: there.set()
    say(journal, "a")
    await there.wait()
    assert bodies(tmp_path / "s") == ["a"]
    await journal.close()


async def test_what_tells_of_an_effect_does_not_wait_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_PAUSE", 3600.0)
    journal, there = begin(tmp_path / "s"), asyncio.Event()
    await journal.durable(1)
    journal.on_durable = lambda records: there.set()
    say(journal, "a")
    say(journal, "b")
    journal.hasten()
    await there.wait()
    assert bodies(tmp_path / "s") == ["a", "b"]
    await journal.close()


async def test_durable_means_on_disk(tmp_path: Path) -> None:
    journal = begin(tmp_path / "s")
    for body in ("a", "b", "c"):
        record = say(journal, body)
        await journal.durable(record.n)
        assert bodies(tmp_path / "s")[-1] == body
    await journal.close()


def test_a_watcher_hears_of_records_in_order_and_only_when_they_are_on_disk(tmp_path: Path) -> None:
    heard: list[int] = []

    async def run() -> None:
        journal = begin(tmp_path / "s")

        def listen(records: Sequence[Record]) -> None:
            heard.extend(record.n for record in records)
            assert len(read_journal(tmp_path / "s").records) >= len(heard)

        journal.on_durable = listen
        for at in range(20):
            await journal.durable(say(journal, str(at)).n if at % 3 else 1)
        await journal.close()

    asyncio.run(run())
    assert heard == list(range(1, heard[-1] + 1))


@pytest.mark.parametrize("short", [False, True], ids=["at once", "in the middle of a record"])
def test_a_full_disk_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    real, full, size = os.pwrite, [False], [0]

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if not full[0]:
            return real(descriptor, data, offset)
        if short and offset == size[0]:
            return real(descriptor, bytes(data)[:40], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", pwrite)

    async def run() -> None:
        journal = begin(tmp_path / "s")
        await journal.durable(say(journal, "kept").n)
        full[0], size[0] = True, (tmp_path / "s" / "journal.md").stat().st_size
        lost = [say(journal, "lost"), say(journal, "lost too")]
        for record in lost:
            with pytest.raises(JournalUnwritable, match="No space left on device"):
                await journal.durable(record.n)
        with pytest.raises(JournalUnwritable, match="up to record 2 is stored"):
            say(journal, "after")
        await journal.close()

    asyncio.run(run())
    contents = read_journal(tmp_path / "s")
    assert [record.body for record in contents.records] == ["", "kept"]
    assert contents.torn == 0
    full[0] = False
    journal, _ = Journal.open(tmp_path / "s")
    journal.abandon()


async def test_of_a_group_that_does_not_fit_the_records_that_do_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small reply comes before a large one, which fills the disk: that both were written at once costs nobody the first."""
    journal = begin(tmp_path / "s")
    await journal.durable(1)
    heard = list[int]()
    journal.on_durable = lambda records: heard.extend(record.n for record in records)
    room = journal.directory.joinpath("journal.md").stat().st_size + 4096
    real = os.pwrite

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if offset >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, bytes(data)[: room - offset], offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    fits, too_large, later = say(journal, "fits"), say(journal, "x" * 5000), say(journal, "later")
    with pytest.raises(JournalUnwritable, match="up to record 2 is stored"):
        await journal.durable(later.n)
    await journal.durable(fits.n)
    with pytest.raises(JournalUnwritable, match="No space left on device"):
        await journal.durable(too_large.n)
    assert heard == [fits.n]
    await journal.close()
    contents = read_journal(tmp_path / "s")
    assert [record.body for record in contents.records] == ["", "fits"]
    assert contents.torn == 0


async def test_a_failing_sync_is_no_acknowledgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begin(tmp_path / "s")
    await journal.durable(1)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(JournalUnwritable, match="Input/output error"):
        await journal.durable(say(journal, "x").n)
    assert journal.failed is not None
    assert journal.durable_n == 1
    await journal.close()


def test_a_record_that_cannot_be_stored_is_refused_and_the_next_one_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        journal = begin(tmp_path / "s")
        with pytest.raises(UsageError, match="'weight'"):
            journal.append(Unknown("later", {"weight": float("nan")}), "/", 1, AT)
        assert say(journal, "fine").n == 2
        await journal.close()

    asyncio.run(run())
    assert bodies(tmp_path / "s") == ["fine"]


def test_a_torn_end_is_dropped_and_the_session_goes_on(tmp_path: Path) -> None:
    asyncio.run(store(tmp_path / "s", ["a", "b" * 500]))
    file = tmp_path / "s" / FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:-300])

    async def run() -> int:
        journal, contents = Journal.open(tmp_path / "s")
        say(journal, "c")
        await journal.close()
        return contents.torn

    assert asyncio.run(run()) > 0
    assert bodies(tmp_path / "s") == ["a", "c"]


def test_damage_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    asyncio.run(store(tmp_path / "s", ["first body", "second body"]))
    file = tmp_path / "s" / FILE
    changed = file.read_bytes().replace(b"first body", b"fir5t body")
    file.write_bytes(changed)
    with pytest.raises(JournalCorrupt, match="Record 2 at byte"):
        Journal.open(tmp_path / "s")
    assert file.read_bytes() == changed


def test_only_one_process_writes(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from iact.core.journal.file import Journal\n"
        "try: Journal.open(Path(sys.argv[1]))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )

    def other() -> str:
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "s")], capture_output=True, text=True, check=True
        ).stdout

    async def run() -> None:
        journal = begin(tmp_path / "s")
        await journal.durable(1)
        assert other().startswith("JournalLocked")
        with pytest.raises(JournalLocked, match="open in another process"):
            Journal.open(tmp_path / "s")
        await journal.close()

    asyncio.run(run())
    assert other() == ""


async def test_closing_twice_at_once_closes_once(tmp_path: Path) -> None:
    journal = begin(tmp_path / "s")
    async with asyncio.TaskGroup() as group:
        group.create_task(journal.close())
        group.create_task(journal.close())
    with pytest.raises(JournalUnwritable, match="closed"):
        say(journal, "late")


def _blob(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_blobs_are_on_disk_before_the_record_that_names_them(tmp_path: Path) -> None:
    content = b"\0\xff" * 1000

    async def run() -> None:
        journal = begin(tmp_path / "s")
        record = journal.append(Say(), "/", 2, AT, blobs={_blob(content): content})
        assert journal.blob(_blob(content)) == content
        await journal.durable(record.n)
        assert read_blob(tmp_path / "s", _blob(content)) == content
        await journal.close()

    asyncio.run(run())


def test_a_blob_that_does_not_fit_on_the_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blobs").mkdir()

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_blob(tmp_path, _blob(b"x"), b"x")
    assert list((tmp_path / "blobs").iterdir()) == []


def test_a_blob_of_the_wrong_length_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / _blob(b"whole")).write_bytes(b"who")
    write_blob(tmp_path, _blob(b"whole"), b"whole")
    assert read_blob(tmp_path, _blob(b"whole")) == b"whole"


@pytest.mark.parametrize(
    ("digest", "match"),
    [
        (_blob(b"never stored"), "missing"),
        (_blob(b"damaged"), "damaged"),
        ("../journal.md", "not the name of a blob"),
        ("", "not the name"),
    ],
)
def test_a_blob_that_cannot_be_read_is_told(tmp_path: Path, digest: str, match: str) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / _blob(b"damaged")).write_bytes(b"damage!")
    with pytest.raises(JournalError, match=match):
        read_blob(tmp_path, digest)


def _write(tmp_path: Path, record: Record) -> Path:
    data, _ = encode(record)
    (tmp_path / FILE).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "fine"), [("1.0", True), ("1.99", True), ("2.0", False), ("10.1", False)]
)
def test_only_a_newer_major_version_is_refused(tmp_path: Path, version: str, fine: bool) -> None:
    _write(tmp_path, raw_record(1, AT, "open", "/", 1, "", opening_fields(version)))
    if fine:
        assert len(read_journal(tmp_path).records) == 1
    else:
        with pytest.raises(JournalTooNew, match=version):
            read_journal(tmp_path)


def test_a_newer_version_is_named_even_if_the_rest_cannot_be_read(tmp_path: Path) -> None:
    _write(tmp_path, raw_record(1, AT, "open", "/", 1, "", {"format": "2.0"}))
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"records of another form")
    with pytest.raises(JournalTooNew):
        read_journal(tmp_path)


@pytest.mark.parametrize("version", ["", "x", "²", 3, None])
def test_a_journal_without_a_version_is_damaged(tmp_path: Path, version: str | int | None) -> None:
    with pytest.raises(JournalCorrupt, match=r"does not open a session|its field 'format'"):
        read_journal(
            _write(tmp_path, raw_record(1, AT, "open", "/", 1, "", {**opening_fields(), "format": version}))
        )


def test_fields_and_kinds_of_a_newer_minor_version_are_kept_as_they_are(tmp_path: Path) -> None:
    first, digest = encode(raw_record(1, AT, "open", "/", 1, "", {**opening_fields("1.7"), "mood": ["new"]}))
    second, _ = encode(raw_record(2, AT, "a_kind_of_later", "/", 2, "x", {"more": {}}, digest))
    (tmp_path / FILE).write_bytes(first + second)
    found = read_journal(tmp_path).records
    assert [(record.kind, dict(record.fields)) for record in found] == [
        ("open", {**opening_fields("1.7"), "mood": ["new"]}),
        ("a_kind_of_later", {"more": {}}),
    ]


def test_where_there_is_no_journal_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no journal at"):
        read_journal(tmp_path / "nothing.md")
    with pytest.raises(JournalError, match="no session at"):
        Journal.open(tmp_path)
