"""A fork shares the records up to its point and nothing else, at every record, also of a session that runs."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt, JournalUnwritable, ReplayMismatch, UsageError
from iact.core.journal import encode, read_journal
from iact.core.journal.file import sync_directory
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.stored import fork as forking
from iact.core.stored.fork import MadeFork, fork, new_session
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, ScriptedModel, World, replies, runtime
from tests.core.session.test_control import DEEP, until
from tests.records import with_fields
from tests.sealing import SEALER

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)

FULL = {
    "/": [
        "```CALL a\nTask.\n```\n```WRITE\nby the root\n```",
        "```CALL_ASYNC b\nTask.\n```\n```t.lose\ngone\n```\n```WAIT\n```",
        "Root done.",
    ],
    "/a": ["```READ\n" + "long " * 6000 + "\n```", "```WRITE\nby a\n```", "A done, see $read_1."],
    "/b": ["```t.fail\nx\n```", "B done."],
}


def take(sessions: Path, source: Path, at: int | None, *, run: bool = False) -> MadeFork:
    return fork(sessions, source, at, session=new_session(NOW), now=NOW, run=run, sealer=SEALER)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a session three agents wide with every kind of outcome, a blob and files."""

    async def main() -> Path:
        async with runtime(tmp_path_factory.mktemp("recorded"), replies(FULL), chunk=4096) as opened:
            session = await opened.open()
            await session.ask("Go")
            folder = session.journal.parent
        (folder / "workspace" / "notes").mkdir()
        (folder / "workspace" / "notes" / "a.txt").write_text("kept")
        return folder

    return asyncio.run(main())


def go_on(data: Path, session: str, world: World) -> list[Record]:
    """Open a session, say something, and see it through; the model says what it would have said."""

    def script(asked: Asked) -> str:
        said = FULL[asked.path]
        return said[asked.turn] if asked.turn < len(said) else "Ready."

    async def main() -> Path:
        async with runtime(data, script, world=world, chunk=4096) as opened:
            one = await opened.open(session)
            said = await one.say("And now?")
            await one.answer(said.n)
            return one.journal

    return list(replay(asyncio.run(main()), verify=True).records)


def test_every_record_is_a_place_to_fork(recorded: Path, tmp_path: Path) -> None:
    records, before = read_journal(recorded).records, contents(recorded)
    assert len({one.kind for one in records}) >= 9
    for at in range(1, len(records) + 1):
        forked_at(recorded, tmp_path / str(at), records, at, run=False)
        forked_at(recorded, tmp_path / f"{at}-run", records, at, run=True)
        assert contents(recorded) == before, at


def forked_at(recorded: Path, data: Path, records: list[Record], at: int, *, run: bool) -> None:
    """One fork opens, verifies and goes on: with what was under way, or without."""
    made, world = take(data / "sessions", recorded, at, run=run), World()
    shared = replay(made.directory, verify=True)
    assert list(shared.records[:-1]) == records[:at]
    assert shared.records[-1].fields == {
        "from": recorded.name,
        "after": at,
        "session": made.session,
        "workspace": "current",
        **({} if run else {"drops": True}),
    }
    assert shared.tree.session == made.session == made.directory.name
    assert (made.directory / "workspace" / "notes" / "a.txt").read_text() == "kept"
    assert [path.name for path in (data / "sessions").iterdir()] == [made.session]

    after = go_on(data, made.session, world)
    assert after[at].kind == "fork"
    assert [(one.kind, one.agent) for one in after[-2:]] == [("reply", "/"), ("close", "/")]
    # What could change something and had begun when it was forked is not run again.
    begun = {one.n for one in records[:at] if one.kind == "call"}
    assert not [call for call, function, _ in world.done if function != "t.read" and call in begun]
    if not run:  # nor is anything carried out that was written before
        written = {one.n for one in after[: at + 1] if one.kind == "turn"}
        results = [one for one in after[at + 1 :] if one.kind == "result" and one.fields["turn"] in written]
        assert {one.text("status") for one in results} <= {"forked"}
        assert not [call for call, _, _ in world.done if after[call - 1].fields["turn"] in written]


def test_a_call_under_way_is_reported_as_interrupted(recorded: Path, tmp_path: Path) -> None:
    call = next(
        one
        for one in read_journal(recorded).records
        if one.kind == "call" and one.text("function") == "t.write"
    )
    made = take(tmp_path / "sessions", recorded, call.n, run=True)
    after = go_on(tmp_path, made.session, World())
    outcome = next(one for one in after[call.n :] if one.kind == "result")
    assert (outcome.fields["call"], outcome.text("status")) == (call.n, "interrupted")


def test_a_fork_of_a_fork_knows_both(recorded: Path, tmp_path: Path) -> None:
    first = take(tmp_path / "sessions", recorded, 5)
    second = take(tmp_path / "sessions", first.directory, None)
    found = replay(second.directory, verify=True)
    assert [one.text("from") for one in found.records if one.kind == "fork"] == [
        recorded.name,
        first.session,
    ]
    assert found.tree.session == second.session
    assert second.at == 6


@pytest.mark.parametrize("wrong", [{"from": "another"}, {"after": 4}])
def test_a_fork_record_that_does_not_fit_what_it_stands_behind_does_not_verify(
    recorded: Path, tmp_path: Path, wrong: dict[str, JSON]
) -> None:
    made = take(tmp_path / "sessions", recorded, 5)
    shared = read_journal(made.directory).records
    lie = with_fields(shared[-1], {**shared[-1].fields, **wrong})
    (tmp_path / "journal.md").write_bytes(b"".join(encode(one)[0] for one in (*shared[:-1], lie)))
    with pytest.raises(ReplayMismatch) as raised:
        replay(tmp_path, verify=True)
    assert raised.value.n == 6


@pytest.mark.no_prefix_law("the original and its twin go their own ways behind one model")
def test_a_running_session_is_forked_and_does_not_notice(recorded: Path, tmp_path: Path) -> None:
    hold = asyncio.Event()
    world, model = World(hold={"held": hold}), ScriptedModel(replies(DEEP))

    async def main() -> tuple[Path, str]:
        async with runtime(tmp_path, replies(DEEP), world=world, model=model) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: world.done)
            made = await opened.fork(session.id, session.records()[-1].n, run=True)
            hold.set()
            assert (await session.answer(said.n)).body == "Root done."
            twin = await opened.open(made)
            # The leaf's call is reported as interrupted there; the leaf goes on from that.
            assert (await twin.answer(0)).body == "Root done."
            return session.journal, made

    journal, made = asyncio.run(main())
    original, twin = replay(journal, verify=True), replay(tmp_path / "sessions" / made, verify=True)
    assert not [one for one in original.records if one.kind == "fork"]
    assert next(one.text("status") for one in twin.records if one.kind == "result") == "interrupted"
    assert [text for _, _, text in world.done] == ["held", "after", "after"]


@pytest.mark.parametrize("at", [0, -1, 10_000])
def test_a_record_that_is_not_there_is_refused(recorded: Path, tmp_path: Path, at: int) -> None:
    with pytest.raises(UsageError, match=f"There is no record {at}"):
        take(tmp_path / "sessions", recorded, at)
    assert not (tmp_path / "sessions").exists()


def test_records_before_the_damage_can_be_saved_by_a_fork(recorded: Path, tmp_path: Path) -> None:
    data = bytearray((recorded / "journal.md").read_bytes())
    data[-60] ^= 1
    (tmp_path / "journal.md").write_bytes(data)
    last = len(read_journal(recorded).records)
    with pytest.raises(JournalCorrupt):
        take(tmp_path / "sessions", tmp_path / "journal.md", last)
    made = take(tmp_path / "sessions", tmp_path / "journal.md", last - 1)
    assert made.workspace == "none"
    assert read_journal(made.directory).records[last - 1].kind == "fork"


def test_blobs_are_shared_and_only_those_that_the_records_name(recorded: Path, tmp_path: Path) -> None:
    (recorded / "blobs" / ("0" * 64)).write_bytes(b"of nobody")
    whole = take(tmp_path / "sessions", recorded, None)
    kept = list((whole.directory / "blobs").iterdir())
    assert kept
    assert all(path.samefile(recorded / "blobs" / path.name) for path in kept)
    early = take(tmp_path / "sessions", recorded, 2)
    assert not list((early.directory / "blobs").iterdir())
    (recorded / "blobs" / ("0" * 64)).unlink()


def test_blobs_are_copied_where_they_can_not_be_shared(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    made = take(tmp_path / "sessions", recorded, None)
    for path in (made.directory / "blobs").iterdir():
        assert path.read_bytes() == (recorded / "blobs" / path.name).read_bytes()
        assert path.stat().st_nlink == 1


def test_a_workspace_is_copied_without_following_anything(recorded: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    source = tmp_path / "source"
    source.mkdir()
    (source / "journal.md").write_bytes((recorded / "journal.md").read_bytes())
    files = source / "workspace"
    (files / "deep").mkdir(parents=True)
    (files / "deep" / "run.sh").write_text("true")
    (files / "deep" / "run.sh").chmod(0o4755)
    (files / "link").symlink_to(secret)
    (files / "deep" / "key").symlink_to(secret / "key")
    (files / "dangling").symlink_to("nowhere")
    os.mkfifo(files / "pipe")
    os.utime(files / "deep" / "run.sh", (1_000_000_000, 1_000_000_000))

    made = take(tmp_path / "sessions", source, 3)
    copied = made.directory / "workspace"
    assert os.readlink(copied / "link") == str(secret)
    assert os.readlink(copied / "deep" / "key") == str(secret / "key")
    assert os.readlink(copied / "dangling") == "nowhere"
    assert not (copied / "pipe").exists()
    script = (copied / "deep" / "run.sh").stat()
    assert (stat.S_IMODE(script.st_mode), script.st_mtime) == (0o755, 1_000_000_000)
    assert made.left_out == 1
    assert read_journal(made.directory).records[-1].fields["left_out"] == 1


def test_directories_nested_without_end_are_left_out(recorded: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    folder = source / "workspace"
    folder.mkdir(parents=True)
    (source / "journal.md").write_bytes((recorded / "journal.md").read_bytes())
    for _ in range(150):
        folder = folder / "d"
        folder.mkdir()
    made = take(tmp_path / "sessions", source, 1)
    assert made.left_out == 1
    deepest = made.directory / "workspace" / "/".join(["d"] * 100)
    assert deepest.is_dir()
    assert not (deepest / "d").exists()


def test_a_directory_of_the_users_is_shared_and_not_copied(recorded: Path, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    (live / "mine").write_text("mine")

    async def main() -> Path:
        async with runtime(tmp_path, replies({"/": ["Hello."]})) as opened:
            session = await opened.open(workspace=live)
            await session.ask("Hi")
            return session.journal.parent

    made = take(tmp_path / "sessions", asyncio.run(main()), None)
    assert made.workspace == "live"
    assert not list((made.directory / "workspace").iterdir())
    assert replay(made.directory, verify=True).tree.workspace == str(live)


@pytest.mark.parametrize("step", ["sendfile", "fsync", "mkdir"])
def test_a_fork_that_can_not_be_stored_leaves_nothing(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (tmp_path / "sessions").mkdir()

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(JournalUnwritable, match="No space left on device"):
        take(tmp_path / "sessions", recorded, 4)
    monkeypatch.undo()
    assert not list((tmp_path / "sessions").iterdir())


def test_what_a_killed_fork_left_is_removed_by_the_next_and_a_running_one_is_not(
    recorded: Path, tmp_path: Path
) -> None:
    sessions = tmp_path / "sessions"
    left, young = sessions / ".forking-left" / "session", sessions / ".forking-young" / "session"
    for folder in (left, young):
        folder.mkdir(parents=True)
    os.utime(left.parent, (1_000_000_000, 1_000_000_000))
    with forking.workshop(sessions, "running"):
        os.utime(sessions / ".forking-running", (1_000_000_000, 1_000_000_000))
        made = take(sessions, recorded, 2)
        assert {path.name for path in sessions.iterdir()} == {
            ".forking-running",
            ".forking-young",
            made.session,
        }
    sync_directory(sessions)


def test_nothing_that_is_half_built_is_in_the_list_of_sessions(recorded: Path, tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with runtime(tmp_path, replies({"/": ["Hello."]})) as opened:
            made = take(tmp_path / "sessions", recorded, 4)
            with forking.workshop(tmp_path / "sessions", "building") as place:
                place.mkdir()
                (place / "journal.md").write_bytes((recorded / "journal.md").read_bytes())
                listed = [(info.id, info.title, info.records) for info in opened.sessions()]
            assert listed == [(made.session, "Go", 5)]
            return [info.id for info in opened.sessions()]

    assert len(asyncio.run(main())) == 1


CAREFUL = {"/": ["```WRITE\nrm -rf build\n```\n```VAR x\n1\n```\n```WRITE\nand more\n```", "Done."]}


def before_the_call(folder: Path) -> int:
    """The record of the first turn, whose calls nobody has decided about yet."""
    return next(one.n for one in read_journal(folder).records if one.kind == "turn")


async def played(data: Path, script: dict[str, list[str]]) -> Path:
    async with runtime(data, replies(script)) as opened:
        session = await opened.open()
        await session.ask("Clean up")
        return session.journal.parent


def test_a_fork_before_a_call_does_not_make_it_and_the_agent_reads_so(tmp_path: Path) -> None:
    async def main() -> tuple[Path, World, ScriptedModel]:
        source = await played(tmp_path, CAREFUL)
        world, model = World(), ScriptedModel(lambda asked: "I do not.")
        async with runtime(tmp_path, lambda asked: "", world=world, model=model) as opened:
            session = await opened.open(await opened.fork(source, before_the_call(source)))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not model.asked, "nothing runs until somebody speaks"
            said = await session.say("Do NOT run that.")
            assert (await session.answer(said.n)).body == "I do not."
            return session.journal, world, model

    journal, world, model = asyncio.run(main())
    records = replay(journal, verify=True).records
    dropped = [one for one in records if one.kind == "result" and one.text("status") == "forked"]
    assert [one.text("function") for one in dropped] == ["t.write", "VAR", "t.write"]
    assert not world.done
    newest = model.asked[0].newest
    assert newest.count("`WRITE` was not carried out: the session was forked here.") == 2
    assert newest.index("forked here") < newest.index("Do NOT run that.")


def test_a_fork_that_is_to_run_makes_the_call_that_was_pending(tmp_path: Path) -> None:
    async def main() -> World:
        source, world = await played(tmp_path, CAREFUL), World()
        async with runtime(tmp_path, replies(CAREFUL), world=world) as opened:
            session = await opened.open(await opened.fork(source, before_the_call(source), run=True))
            await session.answer(0)
        return world

    assert [text for _, _, text in asyncio.run(main()).done] == ["rm -rf build", "and more"]


def test_all_that_works_below_the_root_ends_where_a_fork_drops_it(tmp_path: Path) -> None:
    hold = asyncio.Event()
    world = World(hold={"held": hold})

    async def main() -> tuple[Path, str]:
        async with runtime(tmp_path, replies(DEEP), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: world.done)
            at = session.records()[-1].n
            hold.set()
            await session.answer(said.n)
            return session.journal.parent, await opened.fork(session.id, at)

    _, made = asyncio.run(main())
    model = ScriptedModel(lambda asked: "Ready.")

    async def again() -> Path:
        async with runtime(tmp_path, lambda asked: "", world=world, model=model) as opened:
            session = await opened.open(made)
            assert [view.state for view in session.tree()] == ["idle", "cancelled", "cancelled"]
            said = await session.say("Leave it.")
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(again()), verify=True).records
    after = records[next(one.n for one in records if one.kind == "fork") :]
    assert [(one.kind, one.agent, one.text("status")) for one in after[:4]] == [
        ("result", "/a/b", "forked"),  # the one under way
        ("result", "/a/b", "forked"),  # the one behind it
        ("reply", "/a/b", "cancelled"),
        ("reply", "/a", "cancelled"),
    ]
    assert "Your child /a did not finish (cancelled)" in model.asked[0].newest
    assert [text for _, _, text in world.done] == ["held", "after"], "the original's, and no more"


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 4])
def test_a_crash_while_dropping_leaves_nothing_to_be_carried_out(tmp_path: Path, kept: int) -> None:
    """The journal ends after any of the records by which the fork's opening drops what was under way."""
    world = World()

    async def main() -> Path:
        source = await played(tmp_path, FULL_CUT)
        at = next(one.n for one in read_journal(source).records if one.kind == "call" and one.agent == "/a/b")
        async with runtime(tmp_path, lambda asked: "") as opened:
            made = await opened.fork(source, at)
            await opened.open(made)
        folder = tmp_path / "sessions" / made
        records = read_journal(folder).records
        lines = b"".join(encode(one, SEALER)[0] for one in records[: at + 1 + kept])
        (folder / "journal.md").write_bytes(lines)
        async with runtime(tmp_path, lambda asked: "Ready.", world=world) as opened:
            session = await opened.open(made)
            assert not [view for view in session.tree() if view.state in ("acting", "waiting", "thinking")]
            await session.ask("Go on.")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert not world.done


FULL_CUT = {**DEEP, "/a/b": ["```WRITE\nfirst\n```\n```WRITE\nafter\n```", "B done."]}
