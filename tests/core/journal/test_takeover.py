"""A journal in a store that several hosts reach: one writer at a time, whatever the network does."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt, JournalError, JournalUnwritable, StoreUnavailable, Superseded
from iact.core.journal.file import FILE, Contents, Journal, read_journal, write_blob
from iact.core.journal.segments import SegmentWriter, read_segments
from iact.core.journal.takeover import take_over
from iact.core.records.calls import Result
from iact.core.records.dialogue import Say
from iact.core.records.parts import Artifact
from iact.core.records.record import Record
from tests.objects import Objects
from tests.records import opening

AT = "2026-05-04T03:02:01.123456Z"


class Host:
    """One machine: a directory of its own, and the store."""

    def __init__(self, folder: Path, store: Objects, name: str) -> None:
        self.directory, self.store, self.name = folder / name / "s", store, name
        self.openings = 0
        self.troubles: list[str] = []
        self.clock = 0.0

    def _pause(self, seconds: float) -> None:
        self.clock += seconds

    def writer(self) -> SegmentWriter:
        self.openings += 1
        minted = hashlib.sha256(f"{self.name} {self.openings}".encode()).hexdigest()[:32]
        return SegmentWriter(self.store, "s", minted, pause=self._pause, now=lambda: self.clock)

    def begin(self) -> Journal:
        journal = Journal.create(self.directory, segments=self.writer())
        journal.on_trouble = self.troubles.append
        journal.append(opening(), "/", 1, AT)
        return journal

    def take_over(self) -> tuple[Journal, Contents]:
        return take_over(self.directory, self.store, self.writer(), host=self.name, at=AT, sealer=None)


async def say(journal: Journal, body: str) -> Record:
    record = journal.append(Say(), "/", 1, AT, body)
    await journal.durable(record.n)
    return record


def told(contents: Contents) -> list[str]:
    """What a journal says, without its first record."""
    return [one.body or f"epoch {one.fields['epoch']} {one.fields['host']}" for one in contents.records[1:]]


def stored(store: Objects) -> bytes:
    return b"".join(segment.data for segment in read_segments(store, "s"))


@pytest.fixture
def store() -> Objects:
    return Objects()


async def test_what_is_in_the_store_is_the_file(tmp_path: Path, store: Objects) -> None:
    a = Host(tmp_path, store, "a")
    journal = a.begin()
    for body in ("one", "two"):
        await say(journal, body)
    await journal.close()
    assert stored(store) == (a.directory / FILE).read_bytes()
    assert told(read_journal(a.directory)) == ["one", "two"]


async def test_another_host_goes_on_and_the_first_stops_for_good(tmp_path: Path, store: Objects) -> None:
    a, b = Host(tmp_path, store, "a"), Host(tmp_path, store, "b")
    first = a.begin()
    await say(first, "one")
    second, contents = await asyncio.to_thread(b.take_over)
    assert told(contents) == ["one", "epoch 2 b"]
    with pytest.raises(Superseded, match="Another host has taken over the session s"):
        await say(first, "never")
    with pytest.raises(Superseded):
        first.append(Say(), "/", 1, AT, "nor this")
    await say(second, "two")
    await asyncio.gather(first.close(), second.close())
    assert told(read_journal(b.directory)) == ["one", "epoch 2 b", "two"]
    assert stored(store) == (b.directory / FILE).read_bytes()
    assert told(read_journal(a.directory)) == ["one"]  # what it has is the beginning of the truth
    again, contents = await asyncio.to_thread(a.take_over)
    assert told(contents) == ["one", "epoch 2 b", "two", "epoch 3 a"]
    await again.close()
    assert stored(store) == (a.directory / FILE).read_bytes()


async def test_of_two_that_take_over_at_once_both_are_in_the_journal_and_one_goes_on(
    tmp_path: Path, store: Objects
) -> None:
    """The second claims between the first one's look and its claim."""

    a, b, c = (Host(tmp_path, store, name) for name in "abc")
    await a.begin().close()
    between: list[Journal] = []

    def claim_first(what: str, name: str) -> None:
        if what == "create" and not between:
            store.before = lambda what, name: None
            between.append(c.take_over()[0])

    store.before = claim_first
    journal, contents = b.take_over()
    assert told(contents) == ["epoch 2 c", "epoch 3 b"]
    with pytest.raises(Superseded):
        await say(between[0], "never")
    await say(journal, "mine")
    await asyncio.gather(journal.close(), between[0].close())
    assert stored(store) == (b.directory / FILE).read_bytes()


async def test_a_lost_answer_to_our_own_success_is_no_defeat(tmp_path: Path, store: Objects) -> None:
    a = Host(tmp_path, store, "a")
    journal = a.begin()
    await say(journal, "one")
    lost: list[str] = []

    def lose_once(what: str, name: str) -> bool:
        lost.append(name)
        return len(lost) == 1

    store.lost = lose_once
    await say(journal, "two")
    await say(journal, "three")
    await journal.close()
    assert told(read_journal(a.directory)) == ["one", "two", "three"]
    assert a.troubles == ["No answer came.", ""]


async def test_a_store_that_goes_away_is_waited_for_and_then_given_up(tmp_path: Path, store: Objects) -> None:
    a = Host(tmp_path, store, "a")
    journal = a.begin()
    await say(journal, "one")

    def away_for(seconds: float) -> None:
        until = a.clock + seconds

        def before(what: str, name: str) -> None:
            if a.clock < until:
                raise StoreUnavailable("The store is away.")

        store.before = before

    away_for(30)
    await say(journal, "two")
    assert a.troubles == ["The store is away.", ""]
    away_for(3000)
    with pytest.raises(JournalUnwritable, match=r"has not answered for 60 seconds \(The store is away\.\)"):
        await say(journal, "three")
    assert a.troubles[-1] == ""
    await journal.close()
    store.before = lambda what, name: None
    again, contents = await asyncio.to_thread(a.take_over)
    assert told(contents) == ["one", "two", "epoch 2 a"]
    await again.close()


def test_blobs_are_there_before_the_record_that_names_them(tmp_path: Path, store: Objects) -> None:
    content = b"\x00" * 100_000
    digest = hashlib.sha256(content).hexdigest()
    created: list[str] = []
    store.before = lambda what, name: created.append(name) if what == "create" else None

    async def run() -> None:
        a, b = Host(tmp_path, store, "a"), Host(tmp_path, store, "b")
        journal = a.begin()
        await journal.durable(1)
        record = journal.append(Say(), "/", 1, AT, "large", {digest: content})
        await journal.durable(record.n)
        assert created[-2:] == [f"sessions/s/blobs/{digest}", "sessions/s/journal/0000000002"]
        other, _ = await asyncio.to_thread(b.take_over)
        assert other.blob(digest) == content
        await asyncio.gather(journal.close(), other.close())

    asyncio.run(run())


def test_an_artifact_that_a_module_left_beside_the_journal_is_stored_with_the_record_that_names_it(
    tmp_path: Path, store: Objects
) -> None:
    content = b"a figure"
    digest = hashlib.sha256(content).hexdigest()

    async def run() -> None:
        a, b = Host(tmp_path, store, "a"), Host(tmp_path, store, "b")
        journal = a.begin()
        write_blob(a.directory, digest, content)
        named = Artifact(name="figure", media="image/png", sha256=digest, size=len(content))
        result = Result(turn=1, action=0, function="t.draw", call=1, status="ok", artifacts=(named,))
        for _ in range(2):
            await journal.durable(journal.append(result, "/", 2, AT).n)
        other, _ = await asyncio.to_thread(b.take_over)
        assert other.blob(digest) == content
        await asyncio.gather(journal.close(), other.close())

    asyncio.run(run())


async def test_a_copy_that_differs_is_put_right(tmp_path: Path, store: Objects) -> None:
    """A host that lost power has less, or something else, than the store."""

    a = Host(tmp_path, store, "a")
    journal = a.begin()
    for body in ("one", "two", "three"):
        await say(journal, body)
    await journal.close()
    file = a.directory / FILE
    whole = file.read_bytes()
    for damaged in (whole[:-40], whole + b"torn", b"x" * len(whole), b""):
        before = set(a.directory.glob("journal.kept-*.md"))
        file.write_bytes(damaged)
        again, _ = await asyncio.to_thread(a.take_over)
        await again.close()
        assert file.read_bytes() == stored(store)
        assert file.read_bytes().startswith(whole)
        # What only this host had is not thrown away.
        kept = set(a.directory.glob("journal.kept-*.md")) - before
        lost = not stored(store).startswith(damaged)
        assert [one.read_bytes() for one in kept] == ([damaged] if lost else [])


async def test_a_segment_that_is_damaged_or_missing_is_named(tmp_path: Path, store: Objects) -> None:
    a, b = Host(tmp_path, store, "a"), Host(tmp_path, store, "b")
    journal = a.begin()
    for body in ("one", "two", "three"):
        await say(journal, body)
    await journal.close()
    name = "sessions/s/journal/0000000002"
    kept = store.content[name]
    store.content[name] = b"rubbish"
    with pytest.raises(JournalCorrupt, match="Segment 2 of the journal of session s is damaged"):
        b.take_over()
    del store.content[name]
    with pytest.raises(JournalCorrupt, match="Segment 2 of the journal of session s is missing"):
        b.take_over()
    store.content[name] = kept
    (await asyncio.to_thread(b.take_over))[0].abandon()


async def test_what_the_store_does_not_have_is_left_as_it_is(tmp_path: Path, store: Objects) -> None:
    a = Host(tmp_path, Objects(), "a")
    await a.begin().close()
    whole = (a.directory / FILE).read_bytes()
    a.store = store
    with pytest.raises(JournalError, match="There is no session s in the store"):
        a.take_over()
    assert (a.directory / FILE).read_bytes() == whole


def test_what_is_not_there_can_not_be_taken_over(tmp_path: Path, store: Objects) -> None:
    with pytest.raises(JournalError, match="There is no session s in the store"):
        Host(tmp_path, store, "a").take_over()


async def test_a_session_that_another_host_has_begun_is_not_begun_again(
    tmp_path: Path, store: Objects
) -> None:
    journal = Host(tmp_path, store, "a").begin()
    await journal.durable(1)
    other = Host(tmp_path, store, "b").begin()
    with pytest.raises(Superseded):
        await other.durable(1)
    await asyncio.gather(journal.close(), other.close())
