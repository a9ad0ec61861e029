"""Sessions as a whole: what lists show of them, what a search finds, and deleting them and taking that back."""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import io
import os
import sqlite3
import tarfile
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.clock import SystemClock
from iact.core.errors import IactError, JournalLocked, MemoryUnavailable, UsageError
from iact.core.journal.ends import JournalEnds
from iact.core.journal.file import Journal, read_journal
from iact.core.journal.record import encode
from iact.core.journal.seal import KEY
from iact.core.stored.about import FILE as ABOUT
from iact.core.stored.archive import archive_name
from iact.core.stored.deletion import Deletion, Retention, lent
from iact.core.stored.index import FILE as INDEX
from iact.core.stored.index import query
from iact.core.stored.store import SessionStore
from iact.core.stored.text_search import Whose, find
from tests.core.session.fakes import TickingClock, replies, runtime
from tests.core.session.memories import FakeMemory
from tests.core.session.test_clearance import question
from tests.sealing import SEALER


def stored(data: Path, *said: str, days: float | None = None) -> str:
    """A session in which the root answered; so many `days` ago, if it matters when."""
    clock = TickingClock()
    if days is not None:
        clock.advance((datetime.now(UTC) - clock.now()).total_seconds() - days * 86_400)

    async def main() -> str:
        script = replies({"/": [f"Heard {one}." for one in said]})
        async with runtime(data, script, clock=clock) as opened:
            session = await opened.open()
            for one in said:
                await session.ask(one)
            return session.id

    return asyncio.run(main())


def bytes_of(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below a directory: its content, its mode and when it was written."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.lstat().st_mode,
            path.lstat().st_mtime_ns if path.is_file() else 0,
        )
        for path in sorted(folder.rglob("*"))
    }


def holding(data: Path, *words: str) -> list[Path]:
    """The files below a directory in whose bytes one of these words is, in whatever case, or in whose name."""
    found = []
    for path in sorted(data.rglob("*")):
        content = path.read_bytes().lower() if path.is_file() else b""
        if any(word.lower().encode() in content or word in path.name for word in words):
            found.append(path)
    return found


def indexed(data: Path) -> SessionStore:
    return SessionStore(data, indexed=True)


# --- lists ------------------------------------------------------------------------------------------


def test_a_name_and_a_pin_are_beside_the_journal_and_go_without_a_trace(tmp_path: Path) -> None:
    made = stored(tmp_path, "Which moon is far?")
    store = SessionStore(tmp_path)
    before = bytes_of(store.path_of(made))
    assert store.rename(made, "  The  moon\n") == "The moon"
    store.pin(made, True)
    (info,) = store.sessions()
    assert (info.title, info.named, info.pinned) == ("The moon", True, True)
    assert (store.path_of(made) / ABOUT).read_text() == '{"title": "The moon", "pinned": true}\n'
    store.rename(made, "")
    store.pin(made, False)
    assert bytes_of(store.path_of(made)) == before
    with pytest.raises(UsageError, match="at most 200 characters"):
        store.rename(made, "x" * 201)
    with pytest.raises(UsageError, match="There is no session"):
        store.rename("nothing", "x")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"title": 3, "pinned": "yes", "at": "x", "source": []}', "\xff" * 9]
)
def test_what_is_beside_a_journal_can_be_anything(tmp_path: Path, text: str) -> None:
    made = stored(tmp_path, "one")
    (tmp_path / "sessions" / made / ABOUT).write_text(text)
    (info,) = SessionStore(tmp_path).sessions()
    assert (info.title, info.pinned, info.source) == ("one", False, "")


def test_a_fork_is_listed_with_its_source_and_a_number(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    made = stored(tmp_path, "one", "two")
    first, second = store.fork(made, 3).session, store.fork(made, 4).session
    third = store.fork(first).session
    store.rename(second, "mine")
    shown = {one.id: one for one in store.sessions()}
    assert [(shown[one].source, shown[one].at) for one in (made, first, second)] == [
        ("", 0),
        (made, 3),
        (made, 4),
    ]
    # Nothing was said in the first, so what was branched off it is one more branch of the same message.
    assert (shown[third].source, shown[third].at, shown[second].title) == (made, 3, "mine")
    # Ids of one second are in any order.
    numbers = {shown[one].title.removeprefix("one (fork ") for one in (first, third)}
    assert numbers < {"1)", "2)", "3)"}
    assert len(numbers) == 2
    store.rename(made, "First")
    titles = {one.id: one.title for one in store.sessions()}
    assert (titles[made], titles[second], titles[first][:12]) == ("First", "mine", "First (fork ")


def test_a_fork_of_a_fork_in_which_something_was_said_is_its_own(tmp_path: Path) -> None:
    made = stored(tmp_path, "one")

    async def main() -> tuple[str, str]:
        async with runtime(tmp_path, replies({"/": ["Heard.", "Heard."]})) as opened:
            first = await opened.fork(made, 3)
            session = await opened.open(first)
            await session.ask("two")
            return first, await opened.fork(first, len(session.records()))

    first, second = asyncio.run(main())
    shown = {one.id: one for one in SessionStore(tmp_path).sessions()}
    assert (shown[first].source, shown[second].source) == (made, first)


def test_what_a_session_at_rest_is_at(tmp_path: Path) -> None:
    """It waits for a person, was cut off at work, or failed: the list says so when nobody has it open."""

    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'

    async def main() -> None:
        script = replies({"/": ["```WRITE\na\n```", "Done."]})
        async with runtime(tmp_path, script, policy=policy) as opened, opened.watch_sessions() as changes:
            session = await opened.open(intent=2)
            said = await session.say("Write it.")
            seen = []
            async with asyncio.timeout(300):
                async for name, now in changes:
                    assert (name, now is not None) == (session.id, True)
                    seen.append(now)
                    if now is not None and now.state == "waits":
                        break
            n = await question(session)
            asked = session.records()[n - 1]
            assert [one.state for one in opened.sessions()] == ["waits"]
            assert seen[-1] is not None
            assert (seen[-1].what, seen[-1].since) == ("t.write", asked.at)
            assert opened.sessions()[0].since == asked.at
        # The server ended: nobody has it open, and it waits all the same.
        (info,) = SessionStore(tmp_path).sessions()
        assert (info.state, info.what, info.since, info.open) == ("waits", "t.write", asked.at, False)
        async with runtime(tmp_path, script, policy=policy) as opened:
            session = await opened.open(info.id)
            await session.clear(asked.n, True)
            assert (await session.answer(said.n)).body == "Done."
        assert [one.state for one in SessionStore(tmp_path).sessions()] == ["idle"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("last", "state"),
    [("say", "unfinished"), ("reply", "idle"), ("close", "idle"), ("open", "idle")],
)
def test_a_session_that_was_cut_off_at_work_is_listed_as_unfinished(
    tmp_path: Path, last: str, state: str
) -> None:
    made = stored(tmp_path, "one")
    directory = SessionStore(tmp_path).path_of(made)
    kept = []
    for record in read_journal(directory).records:
        kept.append(record)
        if record.kind == last:
            break
    (directory / "journal.md").write_bytes(b"".join(encode(one, SEALER)[0] for one in kept))
    assert [one.state for one in SessionStore(tmp_path).sessions()] == [state]


def test_a_session_that_cannot_be_read_stays_in_the_list_with_its_reason(tmp_path: Path) -> None:
    whole, damaged = stored(tmp_path, "one", days=0), stored(tmp_path, "two", days=400)
    store = SessionStore(tmp_path)
    store.rename(damaged, "The second")
    journal = store.path_of(damaged) / "journal.md"
    kept = journal.read_bytes()
    journal.write_bytes(b"no record" + kept)

    for read in (store, indexed(tmp_path), indexed(tmp_path)):
        found = {one.id: one for one in read.sessions()}
        assert found[whole].readable
        assert (found[damaged].title, found[damaged].state) == ("The second", "unreadable")
        assert "damaged" in found[damaged].what

    # What is made readable is listed as before, and what is not readable is not deleted for its age.
    os.utime(journal, (0, 0))
    tidied = asyncio.run(deletion(store, FakeMemory(), Retention(days=30)).tidy())
    assert tidied.sessions == ()
    journal.write_bytes(kept)
    assert all(one.readable for one in indexed(tmp_path).sessions())


def test_a_session_that_cannot_be_read_can_be_deleted_restored_and_deleted_for_good(tmp_path: Path) -> None:
    made = stored(tmp_path, "one")
    store, memory = SessionStore(tmp_path), FakeMemory()
    (store.path_of(made) / "journal.md").write_bytes(b"no record")

    async def scene() -> None:
        at_rest = deletion(store, memory)
        assert (await at_rest.delete([made])).sessions == (made,)
        assert store.sessions() == []
        assert (await at_rest.restore([made])).sessions == (made,)
        assert [one.readable for one in store.sessions()] == [False]
        await at_rest.delete([made])
        assert (await at_rest.purge([made])).sessions == (made,)

    asyncio.run(scene())
    assert not store.deleted()


def test_a_session_that_may_be_read_again_is_listed_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right that is granted changes nothing of the file by which the index could notice it."""
    stored(tmp_path, "Which moon is far?")

    def refuse(*arguments: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(JournalEnds, "of", refuse)
        (info,) = indexed(tmp_path).sessions()
    assert (info.state, info.what) == ("unreadable", "Permission denied")

    (info,) = indexed(tmp_path).sessions()
    assert info.readable
    assert info.title == "Which moon is far?"


# --- the index --------------------------------------------------------------------------------------


def test_the_index_says_what_the_journals_say_and_is_made_again_from_them(tmp_path: Path) -> None:
    made, other = stored(tmp_path, "The Mönch is a mountain."), stored(tmp_path, "私は東京に住んでいます。")
    plain = SessionStore(tmp_path).sessions()
    store = indexed(tmp_path)
    assert store.sessions() == plain == store.sessions() == indexed(tmp_path).sessions()
    assert [one.id for one, _ in store.search("monch moun", 10).rows] == [made]
    ((_, hit),) = store.search("東京", 10).rows
    assert hit is not None
    assert (hit.session, hit.match, hit.before + hit.match + hit.after) == (
        other,
        "東京",
        "私は東京に住んでいます。",
    ) or ("東京" in hit.before + hit.match + hit.after)
    assert store.search("nothing like it", 10).rows == ()
    store.rename(made, "Alps")
    assert [one.title for one, _ in store.search("alps", 10).rows] == ["Alps"]
    for damage in (b"no database at all" * 400, b""):
        (tmp_path / INDEX).write_bytes(damage)
        for end in ("-wal", "-shm"):
            (tmp_path / f"{INDEX}{end}").unlink(missing_ok=True)
        fresh = indexed(tmp_path)
        assert {one.id for one in fresh.sessions()} == {made, other}
        assert [one.id for one, _ in fresh.search("monch", 10).rows] == [made]


def test_the_index_counts_only_for_the_journal_that_it_saw(tmp_path: Path) -> None:
    made = stored(tmp_path, "apple")
    store = indexed(tmp_path)
    assert [one.id for one, _ in store.search("apple", 5).rows] == [made]
    # Somebody claims in the index that the session is called otherwise and is ours; the seals say what is so.
    journal = store.path_of(made) / "journal.md"
    (tmp_path / KEY).write_bytes(b"x" * 32)
    assert [one.foreign for one in indexed(tmp_path).sessions()] == [True]
    with sqlite3.connect(tmp_path / INDEX) as database:
        database.execute("UPDATE listed SET title = 'pear', \"foreign\" = 0")
    database.close()
    with journal.open("ab") as stream:
        stream.write(b"torn")
    (info,) = indexed(tmp_path).sessions()
    assert (info.title, info.foreign) == ("apple", True)


def test_text_that_comes_is_found_and_a_damaged_journal_costs_only_itself(tmp_path: Path) -> None:
    store = indexed(tmp_path)
    made, broken = stored(tmp_path, "apple"), stored(tmp_path, "pear")
    assert store.index is not None
    assert store.index.update(store.folder) == 0
    file = store.path_of(broken) / "journal.md"
    file.write_bytes(file.read_bytes().replace(b"Heard pear.", b"Heard plum."))

    async def more() -> None:
        async with runtime(tmp_path, replies({"/": ["", "Heard quince."]})) as opened:
            await (await opened.open(made)).ask("quince")

    asyncio.run(more())
    ((info, hit),) = store.search("quince", 5).rows
    assert info.id == made
    assert hit is not None
    assert read_journal(store.path_of(made)).records[hit.n - 1].body == "Heard quince."
    assert store.search("plum", 5).rows == ()


def test_without_a_place_for_an_index_lists_are_the_same(tmp_path: Path) -> None:
    made = stored(tmp_path, "apple")
    (tmp_path / INDEX).unlink(missing_ok=True)
    (tmp_path / INDEX).mkdir()
    store = indexed(tmp_path)
    assert [one.id for one in store.sessions()] == [made]
    assert [one.id for one, _ in store.search("appl", 5).rows] == [made]  # by its title


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("two words", '"two"* "words"*'),
        ('"as it is" x', '"as it is" "x"*'),
        ("my_func", '"my_func"*'),
        ('say "', '"say"*'),
        ("++ -- *", ""),
        ("NEAR(a b) OR c*", '"NEAR(a"* "b)"* "OR"* "c*"*'),
    ],
)
def test_what_is_typed_is_words_and_never_a_query(tmp_path: Path, typed: str, wanted: str) -> None:
    assert query(typed) == wanted
    stored(tmp_path, "apple")
    indexed(tmp_path).search(typed, 5)


# --- within a session -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "agent", "whose", "found"),
    [
        ("HEARD", "", "", [("reply", "Heard")]),
        ("one", "", "user", [("say", "One")]),
        ("one", "", "agents", [("reply", "One")]),
        ("one", "/nobody", "", []),
        ("nothing like it", "", "", []),
    ],
)
def test_text_is_found_once_where_it_was_said(
    tmp_path: Path, text: str, agent: str, whose: Whose, found: list[tuple[str, str]]
) -> None:
    directory = SessionStore(tmp_path).path_of(stored(tmp_path, "One"))
    records = read_journal(directory).records
    places = [*find(records, text, agent=agent, whose=whose, directory=directory)]
    assert [(one.kind, one.match) for one in places] == found


# --- deleting ---------------------------------------------------------------------------------------


def deletion(
    store: SessionStore, memory: FakeMemory | None = None, retention: Retention | None = None
) -> Deletion:
    return Deletion(store, SystemClock(), lent(memory), retention)


def test_a_deleted_session_that_is_restored_is_byte_for_byte_what_it_was(tmp_path: Path) -> None:
    made, other = stored(tmp_path, "I prefer a quizzaltine."), stored(tmp_path, "two")
    store, memory = indexed(tmp_path), FakeMemory()
    workspace = store.path_of(made) / "workspace"
    (workspace / "locked").mkdir()
    (workspace / "locked" / "file").write_text("quizzaltine")
    os.symlink("/etc/passwd", workspace / "link")
    (workspace / "locked").chmod(0o500)
    store.rename(made, "named")
    before = bytes_of(store.path_of(made))
    assert [one.id for one, _ in store.search("quizzal", 5).rows] == [made]

    done = asyncio.run(deletion(store, memory).delete([made, "nothing"]))
    assert (done.sessions, list(done.refused)) == ((made,), ["nothing"])
    assert [one.id for one in store.sessions()] == [other]
    assert store.search("quizzal", 5).rows == ()
    assert [one.session for one in store.statements() if one.session == made] == []
    assert memory.dropped == [((made,), False)]
    assert [(one.id, info.title, one.forgotten) for one, info in store.deleted()] == [(made, "named", True)]
    with pytest.raises(UsageError, match=f"iact session restore {made}"):
        store.read(made)

    assert asyncio.run(deletion(store, memory).restore([made])).sessions == (made,)
    assert bytes_of(store.path_of(made)) == before
    assert memory.kept
    assert {one.session for one in memory.kept} == {made}
    assert [one.id for one, _ in store.search("quizzal", 5).rows] == [made]
    assert store.deleted() == []

    asyncio.run(deletion(store, memory).delete([made]))
    assert asyncio.run(deletion(store, memory).purge([made])).sessions == (made,)
    assert memory.dropped[-1] == ((made,), True)
    assert holding(tmp_path, "quizzaltine", made) == []
    assert [one.id for one in store.sessions()] == [other]
    with pytest.raises(UsageError, match="There is no session"):
        store.read(made)


def test_a_session_that_somebody_has_open_is_not_deleted(tmp_path: Path) -> None:
    made = stored(tmp_path, "one")
    store = SessionStore(tmp_path)

    async def main() -> None:
        journal, _ = Journal.open(store.path_of(made), SEALER)
        with pytest.raises(JournalLocked, match="open in another process"):
            store.delete(made)
        await journal.close()

    asyncio.run(main())
    assert [one.id for one in store.sessions()] == [made]
    assert store.deleted() == []


def test_where_memory_is_down_nothing_is_purged_and_tidying_makes_good_for_it(tmp_path: Path) -> None:
    made = stored(tmp_path, "one")
    store, memory = SessionStore(tmp_path), FakeMemory(down=True)
    done = asyncio.run(deletion(store, memory).delete([made]))
    assert done.note.startswith("Memory still holds what came of it")
    assert [one.forgotten for one, _ in store.deleted()] == [False]
    with pytest.raises(MemoryUnavailable):
        asyncio.run(deletion(store, memory).purge([made]))
    assert [one.id for one, _ in store.deleted()] == [made]
    memory.down = False
    asyncio.run(deletion(store, memory).tidy())
    assert (memory.dropped, [one.forgotten for one, _ in store.deleted()]) == ([((made,), False)], [True])


def test_sessions_are_kept_as_long_and_as_large_as_the_settings_say(tmp_path: Path) -> None:
    store, memory = SessionStore(tmp_path), FakeMemory()
    old, pinned, running = (stored(tmp_path, one, days=40) for one in ("old", "pinned", "running"))
    new = stored(tmp_path, "new", days=0)
    store.pin(pinned, True)
    keep = Retention(days=30)
    done = asyncio.run(deletion(store, memory, keep).tidy([running]))
    assert done.sessions == (old,)
    assert {one.id for one in store.sessions()} == {pinned, running, new}
    # Nothing is purged before its time, and then for good.
    asyncio.run(deletion(store, memory, keep).tidy([running]))
    assert [one.id for one, _ in store.deleted()] == [old]
    asyncio.run(deletion(store, memory, Retention(trash_days=0)).tidy())
    assert store.deleted() == []
    assert memory.dropped == [((old,), False), ((old,), True)]
    # By size the ones that changed longest ago go first, and no more than must.
    for file in (pinned, running, new):
        (store.path_of(file) / "workspace" / "large").write_bytes(os.urandom(100_000))
    done = asyncio.run(deletion(store, memory, Retention(bytes=350_000)).tidy())
    assert done.sessions == (running,)
    assert asyncio.run(deletion(store, memory, Retention()).tidy()).sessions == ()


async def test_the_runtime_closes_what_it_deletes_and_tells_who_watches(tmp_path: Path) -> None:
    memory = FakeMemory()
    async with runtime(tmp_path, replies({"/": ["Heard."]}), memory=memory) as opened:
        session = await opened.open()
        await session.ask("one")
        async with opened.watch_sessions() as changes, session.watch() as events:
            done = await opened.delete([session.id])
            assert done.sessions == (session.id,)
            assert await anext(changes) == (session.id, None)
            assert [event async for event in events]  # the stream ends
        assert opened.sessions() == []
        assert (await opened.restore_sessions([session.id])).sessions == (session.id,)
        again = await opened.open(session.id)
        assert [one.kind for one in again.records()][-1] == "close"


# --- archives ---------------------------------------------------------------------------------------


def archive(store: SessionStore, session: str, folder: Path) -> Path:
    file = folder / archive_name(session)
    with file.open("wb") as stream:
        store.export(session, stream)
    return file


def test_a_session_goes_to_another_machine_and_is_foreign_there_and_comes_home_as_ours(
    tmp_path: Path,
) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    made = stored(home, "one")
    store = SessionStore(home)
    store.rename(made, "named")
    (store.path_of(made) / "workspace" / "notes.txt").write_text("hello")
    os.mkfifo(store.path_of(made) / "workspace" / "pipe")
    file = archive(store, made, tmp_path)
    with pytest.raises(UsageError, match=r"already a session .* here"):
        store.import_session(file)

    stored(away, "theirs")
    (away / KEY).write_bytes(b"y" * 32)
    elsewhere = SessionStore(away)
    got = elsewhere.import_session(file)
    assert got.session == made
    assert (
        "was not written by this installation" in got.foreign
        or "no seals of this installation" in got.foreign
    )
    shown = {one.id: one for one in elsewhere.sessions()}[made]
    assert (shown.title, shown.foreign) == ("named", True)
    assert (got.directory / "workspace" / "notes.txt").read_text() == "hello"

    journal = (store.path_of(made) / "journal.md").read_bytes()
    asyncio.run(deletion(store).delete([made]))
    with pytest.raises(UsageError, match="in the trash"):
        store.import_session(file)
    asyncio.run(deletion(store).purge([made]))
    home_again = store.import_session(archive(elsewhere, made, away))
    assert (home_again.foreign, home_again.session) == ("", made)
    assert (home_again.directory / "journal.md").read_bytes() == journal

    async def go_on() -> str:
        async with runtime(home, replies({"/": ["", "Heard two."]})) as opened:
            return (await (await opened.open(made)).ask("two")).body

    assert asyncio.run(go_on()) == "Heard two."


def crafted(kind: str, journal: bytes, target: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Entries that must not come to anything outside."""

    def entry(name: str, content: bytes = b"", **given: object) -> tuple[tarfile.TarInfo, bytes]:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        for key, value in given.items():
            setattr(info, key, value)
        return info, content

    yield entry("x/journal.md", journal)
    match kind:
        case "climbs":
            yield entry("x/workspace/../../../../evil", b"evil")
            yield entry("../evil", b"evil")
        case "absolute":
            yield entry(f"x/workspace/{target}/evil", b"ok")
            yield entry(str(target / "evil"), b"evil")
        case "link":
            yield entry("x/workspace/out", type=tarfile.SYMTYPE, linkname=str(target))
            yield entry("x/workspace/out/evil", b"evil")
        case "hard link":
            yield entry("x/workspace/key", type=tarfile.LNKTYPE, linkname="../../seal.key")
        case "device":
            yield entry("x/workspace/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)
        case "journal link":
            yield entry("x/blobs/" + "0" * 64, type=tarfile.SYMTYPE, linkname="/etc/passwd")


@pytest.mark.parametrize("kind", ["climbs", "absolute", "link", "hard link", "device", "journal link"])
def test_nothing_in_an_archive_reaches_out_of_it(tmp_path: Path, kind: str) -> None:
    made = stored(tmp_path / "made", "one")
    journal = (tmp_path / "made" / "sessions" / made / "journal.md").read_bytes()
    target = tmp_path / "target"
    target.mkdir()
    file = tmp_path / "crafted.tar"
    with tarfile.open(file, "w") as packed:
        for info, content in crafted(kind, journal, target):
            packed.addfile(info, io.BytesIO(content))
    data = tmp_path / "data"
    store = SessionStore(data)
    got = store.import_session(file)
    assert got.foreign
    assert not [
        path
        for path in tmp_path.rglob("evil")
        if not path.is_relative_to(data / "sessions" / made / "workspace")
    ]
    assert [*target.iterdir()] == []
    assert not any(path.is_symlink() for path in (got.directory / "blobs").iterdir())
    assert [one.id for one in store.sessions()] == [made]


@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE]
)
def test_a_header_that_declares_a_huge_name_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """Less than a megabyte of archive could take the memory that it declares."""
    header = tarfile.TarInfo("x/workspace/file")
    header.type, header.size = kind, 64 << 20
    file = tmp_path / "crafted.tar.gz"
    with gzip.open(file, "wb") as packed:
        packed.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            packed.write(bytes(1 << 20))

    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="declares 67,108,864 bytes of names"):
            SessionStore(tmp_path / "data").import_session(file)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 << 20


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00", None])
def test_what_is_no_archive_is_refused_in_a_sentence(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(IactError) as raised:
        SessionStore(tmp_path / "data").import_session(file)
    assert str(raised.value).endswith(".")
    assert [*(tmp_path / "data" / "sessions").iterdir()] == []
