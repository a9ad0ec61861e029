"""Effects on a live directory: what is applied at once, what waits, and what a person makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from iact.core.errors import ReplayMismatch, UsageError
from iact.core.gate.effects import Effect
from iact.core.journal import read_journal
from iact.core.ports import JSON, FileChange, FileState
from iact.core.records.record import Record
from iact.core.session.effects import choose
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.apply import read_tree
from iact.core.tree.live_folder import PendingChange
from tests.core.session.fakes import Asked, Script, World
from tests.core.session.live_fakes import Killed, Overlays, does, live_runtime, states
from tests.records import with_fields


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory of the user's."""
    folder = tmp_path / "mine"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "src" / "main.py").write_text("print()")
    return folder


Then = Callable[[Session], Awaitable[object]]


async def nothing(session: Session) -> None:
    return None


def run(
    data: Path,
    mine: Path,
    script: Script,
    *,
    then: Then = nothing,
    overlays: Overlays | None = None,
    intent: float = 1,
    policy: str = "",
    scope: str = "default",
    session: str | None = None,
    say: str = "Go",
) -> tuple[str, object]:
    """One message to a session in `mine`, and what `then` gives; its journal is verified afterwards."""

    async def main() -> tuple[str, object]:
        async with live_runtime(
            data, script, open_live=overlays or Overlays(), policy=policy, scope=scope
        ) as runtime:
            opened = await runtime.open(session, intent=intent, workspace=mine)
            if say:
                await opened.ask(say)
            return opened.id, await then(opened)

    identity, found = asyncio.run(main())
    replay(data / "sessions" / identity, verify=True)
    return identity, found


def records(data: Path, session: str, *kinds: str) -> list[Record]:
    """The records of some kinds."""
    return [one for one in read_journal(data / "sessions" / session).records if one.kind in kinds]


async def waiting(session: Session) -> dict[str, str]:
    """What waits, and why."""
    return {path: item.held for path, item in (await session.effects.pending()).items()}


def test_what_is_added_is_real_at_once(tmp_path: Path, mine: Path) -> None:
    session, left = run(tmp_path, mine, does("write new.txt hello\nmkdir more\nwrite more/a 1"), then=waiting)
    assert left == {}
    assert (mine / "new.txt").read_text() == "hello"
    assert (mine / "more" / "a").read_text() == "1"
    effects, settled = records(tmp_path, session, "effects", "settle")
    assert effects.fields["impact"] == 1
    assert effects.fields["apply"] is True
    assert settled.fields == {"of": effects.n}


@pytest.mark.parametrize(
    "command",
    [
        "rm notes.txt",
        "write notes.txt other",
        "chmod 600 notes.txt",
        "chmod 755 notes.txt",
        "rmtree src",
        "ln notes.txt link",
        "ln /etc/passwd link",
        "write .bashrc x",
        "mkdir .git",
        "write src/.env x",
        "write ok.txt 1\nrm notes.txt",
        "write run.sh x\nchmod 4755 run.sh",
    ],
)
def test_whatever_is_more_waits_as_a_whole_and_changes_nothing(
    tmp_path: Path, mine: Path, command: str
) -> None:
    before = states(mine)
    session, left = run(tmp_path, mine, does(command), then=waiting)
    assert states(mine) == before
    assert left
    assert isinstance(left, dict)
    assert set(left.values()) == {"impact"}
    (effects,) = records(tmp_path, session, "effects")
    assert effects.fields["apply"] is False
    assert effects.fields["impact"] == 2


def test_what_the_session_added_is_its_own_until_somebody_else_changes_it(tmp_path: Path, mine: Path) -> None:
    session, _ = run(tmp_path, mine, does("write a 1\nwrite b 1", "write a 2", "rm b"))
    assert (mine / "a").read_text() == "2"
    assert not (mine / "b").exists()
    (mine / "a").write_text("by the user")
    _, left = run(tmp_path, mine, does("write a 9", after=4), session=session, then=waiting)
    assert left == {"a": "impact"}
    assert (mine / "a").read_text() == "by the user"


def test_with_intent_2_everything_is_applied(tmp_path: Path, mine: Path) -> None:
    _, left = run(
        tmp_path, mine, does("rm notes.txt\nwrite src/main.py x\nln src link"), intent=2, then=waiting
    )
    assert left == {}
    assert {path: one.type for path, one in states(mine).items()} == {
        "src": "folder", "src/main.py": "file", "link": "link",
    }  # fmt: skip


def test_a_person_applies_a_part_and_drops_the_rest(tmp_path: Path, mine: Path) -> None:
    async def review(session: Session) -> object:
        await session.effects.apply(["notes.txt"])
        after = await waiting(session)
        await session.effects.drop(None)
        return after, await waiting(session)

    session, found = run(
        tmp_path, mine, does("write notes.txt better\nrm src/main.py\nwrite ok.txt 1"), then=review
    )
    assert found == ({"ok.txt": "impact", "src/main.py": "impact"}, {})
    assert (mine / "notes.txt").read_text() == "better"
    assert (mine / "src" / "main.py").exists()
    assert not (mine / "ok.txt").exists()
    ops = [one.text("op") for one in records(tmp_path, session, "control")]
    assert ops == ["overlay", "apply", "drop"]


def test_a_folder_comes_with_what_is_in_it_and_a_file_with_its_new_folder(tmp_path: Path, mine: Path) -> None:
    async def review(session: Session) -> object:
        return (await session.effects.apply(["new/deep/a"])).done, (
            await session.effects.apply(["src/"])
        ).done

    _, found = run(
        tmp_path, mine, does("rmtree src\nwrite new/deep/a 1\nwrite new/b 1\nrm notes.txt"), then=review
    )
    assert found == (("new", "new/deep", "new/deep/a"), ("src", "src/main.py"))
    assert sorted(states(mine)) == ["new", "new/deep", "new/deep/a", "notes.txt"]


def test_a_path_at_which_nothing_waits_is_named(tmp_path: Path, mine: Path) -> None:
    async def review(session: Session) -> object:
        with pytest.raises(UsageError, match=r"No change is waiting at 'nots\.txt'"):
            await session.effects.apply(["nots.txt"])
        with pytest.raises(UsageError, match="No change is waiting at 'src'"):
            await session.effects.patch("src")
        return await session.effects.patch("notes.txt")

    _, patch = run(tmp_path, mine, does("rm notes.txt"), then=review)
    assert str(patch).startswith("--- notes.txt")


def test_nothing_is_applied_that_changed_after_the_person_had_looked(tmp_path: Path, mine: Path) -> None:
    async def review(session: Session) -> object:
        seen = session.state.records
        await session.ask("Again")
        with pytest.raises(UsageError, match=r"'notes\.txt' changed again after you looked"):
            await session.effects.apply(None, since=seen)
        await session.effects.apply(["src/main.py"], since=seen)
        return await waiting(session)

    script = does("write notes.txt 1\nrm src/main.py", "pass", "write notes.txt 2")
    _, left = run(tmp_path, mine, lambda asked: "Done." if asked.turn == 1 else script(asked), then=review)
    assert left == {"notes.txt": "impact"}
    assert (mine / "notes.txt").read_text() == "mine"


def test_what_somebody_changed_meanwhile_is_overwritten_by_force_alone(tmp_path: Path, mine: Path) -> None:
    async def review(session: Session) -> object:
        (mine / "notes.txt").write_text("changed below")
        shown = {path: one.change.conflict for path, one in (await session.effects.pending()).items()}
        settled = await session.effects.apply(None)
        kept = (mine / "notes.txt").read_text()
        await session.effects.apply(None, force=True)
        return shown, [(one.path, one.outcome) for one in settled.left], kept, await waiting(session)

    _, found = run(tmp_path, mine, does("write notes.txt agent"), then=review)
    assert found == ({"notes.txt": True}, [("notes.txt", "conflict")], "changed below", {})
    assert (mine / "notes.txt").read_text() == "agent"


def test_what_builds_on_something_that_waits_waits_too(tmp_path: Path, mine: Path) -> None:
    _, left = run(
        tmp_path,
        mine,
        does("write .new/a 1", "write .new/b 1", "write free 1", "write notes.txt x"),
        then=waiting,
    )
    assert left == {".new": "impact", ".new/a": "impact", ".new/b": "impact", "notes.txt": "impact"}
    assert (mine / "free").exists()


def test_an_agent_that_takes_its_change_back_leaves_nothing_waiting(tmp_path: Path, mine: Path) -> None:
    session, left = run(tmp_path, mine, does("write notes.txt x", "write notes.txt mine"), then=waiting)
    assert left == {}
    last = records(tmp_path, session, "effects")[-1]
    assert last.fields["gone"] == ["notes.txt"]
    assert "impact" not in last.fields


def test_a_call_that_changes_nothing_leaves_no_record_but_a_word_in_its_result(
    tmp_path: Path, mine: Path
) -> None:
    session, _ = run(tmp_path, mine, does("pass", "write a 1"))
    first, second = records(tmp_path, session, "result")
    assert first.number("unchanged") == first.n - 1
    assert "unchanged" not in second.fields
    (effects,) = records(tmp_path, session, "effects")
    assert effects.fields["calls"] == [second.number("call")]


OFFICE = """
[scope.office]
functions = ["*"]
caps = { "hands.gently" = 0.5 }
[[scope.office.effects]]
path = "docs/**"
[[scope.office.effects]]
path = "*.lock"
impact = 2
"""


def test_a_policy_lets_classes_pass_and_holds_others(tmp_path: Path, mine: Path) -> None:
    (mine / "docs").mkdir()
    (mine / "docs" / "a.md").write_text("old")
    _, left = run(
        tmp_path, mine, does("write docs/a.md new", "write my.lock x", "rm docs/a.md"), policy=OFFICE, scope="office",
        then=waiting,
    )  # fmt: skip
    assert left == {"my.lock": "impact"}
    assert not (mine / "docs" / "a.md").exists()


def test_an_agent_that_read_from_outside_waits_for_a_person_even_with_intent_2(
    tmp_path: Path, mine: Path
) -> None:
    def script(asked: Asked) -> str:
        return ["```web.fetch\npage\n```", "```DO\nwrite a 1\n```", "```DO\nrm notes.txt\n```", "Done."][
            asked.turn
        ]

    session, left = run(tmp_path, mine, script, intent=2, then=waiting)
    assert left == {"notes.txt": "provenance"}
    assert (mine / "a").exists()
    assert records(tmp_path, session, "effects")[-1].text("reason") == (
        "The changes have impact 2 and are touched by tool:web.fetch."
    )


def test_calls_that_overlap_are_one_transaction_within_the_rights_of_each(tmp_path: Path, mine: Path) -> None:
    """The child may do 1: whatever happened while it was at work is applied within that only."""

    async def main() -> tuple[str, dict[str, str], bool]:
        world = World(hold={"go": asyncio.Event()})

        def script(asked: Asked) -> str:
            if asked.path == "/":
                call = "```CALL_ASYNC slow intent=1\nWork.\n```"
                return [call, "```DO\nrm notes.txt\n```", "```WAIT\n```", "Done."][asked.turn]
            return ["```DO\nwait go\nwrite a 1\n```", "Done."][asked.turn]

        async with live_runtime(tmp_path, script, open_live=Overlays(), world=world) as runtime:
            session = await runtime.open(intent=2, workspace=mine)
            said = await session.say("Go")
            while not any(one.kind == "result" and one.agent == "/" for one in session.records()):
                await session._live.grew.wait()
            meanwhile = (mine / "notes.txt").exists()
            world.hold["go"].set()
            await session.answer(said.n)
            return session.id, await waiting(session), meanwhile

    session, left, meanwhile = asyncio.run(main())
    assert meanwhile
    assert left == {"a": "impact", "notes.txt": "impact"}
    (effects,) = records(tmp_path, session, "effects")
    assert len(effects.fields["calls"]) == 2  # type: ignore[arg-type]
    replay(tmp_path / "sessions" / session, verify=True)


def test_what_waits_is_there_again_when_the_session_is_opened_again(tmp_path: Path, mine: Path) -> None:
    session, before = run(tmp_path, mine, does("rm notes.txt"), then=waiting)
    overlays = Overlays()
    _, after = run(tmp_path, mine, does("pass"), session=session, then=waiting, say="", overlays=overlays)
    assert before == after == {"notes.txt": "impact"}
    assert overlays.opened[0].closed


@pytest.mark.parametrize("dies_after", [0, 1, 2])
def test_a_crash_while_applying_is_finished_when_the_session_is_opened_again(
    tmp_path: Path, mine: Path, dies_after: int
) -> None:
    overlays = Overlays()

    async def main() -> str:
        async with live_runtime(
            tmp_path, does("rm notes.txt\nwrite src/main.py x\nwrite b 1"), open_live=overlays
        ) as runtime:
            session = await runtime.open(workspace=mine)
            await session.ask("Go")
            overlays.opened[0].dies_after = dies_after
            with pytest.raises(Killed):
                await session.effects.apply(None)
            return session.id

    session = asyncio.run(main())
    assert records(tmp_path, session, "settle") == []
    _, left = run(tmp_path, mine, does("pass"), session=session, say="", then=waiting)
    assert left == {}
    assert {path: (mine / path).read_text() for path in ("b", "src/main.py")} == {
        "b": "1",
        "src/main.py": "x",
    }
    assert not (mine / "notes.txt").exists()


def test_what_was_written_and_never_looked_at_waits(tmp_path: Path, mine: Path) -> None:
    session, _ = run(tmp_path, mine, does("pass"))
    (tmp_path / "sessions" / session / "live" / "folder" / "left").write_text("by a process that went on")
    _, left = run(tmp_path, mine, does("pass"), session=session, say="", then=waiting)
    assert left == {"left": "unasked"}
    assert not (mine / "left").exists()


def test_where_there_can_be_no_overlay_the_stricter_rating_stands_and_people_are_told(
    tmp_path: Path, mine: Path
) -> None:
    overlays = Overlays(refuses="This file system can't be overlaid; use another one.")
    session, left = run(tmp_path, mine, does("write a 1"), overlays=overlays, then=waiting)
    assert left == {}
    assert not (mine / "a").exists()
    (notice,) = [one for one in records(tmp_path, session, "notice") if one.text("code") == "live"]
    assert "This file system can't be overlaid; use another one." in notice.body
    assert (notice.text("level"), records(tmp_path, session, "gate")[0].fields["allow"]) == ("warning", False)


def test_an_overlay_that_is_lost_is_recorded_and_calls_are_rated_as_without(
    tmp_path: Path, mine: Path
) -> None:
    session, _ = run(tmp_path, mine, does("write a 1"))
    run(tmp_path, mine, does("write b 1", after=2), session=session, overlays=Overlays(refuses="None."))
    assert [one.fields["allow"] for one in records(tmp_path, session, "gate")] == [True, False]
    assert not (mine / "b").exists()
    ops = [(one.text("op"), one.fields["value"]) for one in records(tmp_path, session, "control")]
    assert ops == [("overlay", True), ("overlay", False)]


def test_an_overlay_that_fails_is_told_once_and_applies_nothing(tmp_path: Path, mine: Path) -> None:
    overlays = Overlays()

    async def review(session: Session) -> object:
        overlays.opened[0].broken = "The overlay can't be read."
        await session.ask("Go on")
        overlays.opened[0].broken = ""
        return await waiting(session)

    session, left = run(
        tmp_path, mine, lambda asked: ["Yes.", "```DO\nwrite a 1\n```", "```DO\nwrite b 1\n```", "Done."][asked.turn],
        then=review, overlays=overlays,
    )  # fmt: skip
    assert left == {}  # the next look found both, and they are additions of calls that ended
    assert (mine / "a").exists()
    assert [one.body for one in records(tmp_path, session, "notice")] == ["The overlay can't be read."]


def test_no_context_tells_of_what_waits(tmp_path: Path, mine: Path) -> None:
    seen: list[str] = []

    def script(asked: Asked) -> str:
        seen.append("\n".join(one.content for one in asked.messages))
        return does("rm notes.txt", "write ok 1")(asked)

    async def review(session: Session) -> None:
        await session.effects.apply(None)
        await session.ask("Go on")

    run(tmp_path, mine, script, then=review)
    assert not any(word in seen[-1] for word in ("pending", "overlay", "applied", "impact", "settle"))


def test_a_fork_takes_nothing_with_it_that_waits(tmp_path: Path, mine: Path) -> None:
    session, _ = run(tmp_path, mine, does("rm notes.txt"))

    async def main() -> tuple[dict[str, str], dict[str, str]]:
        async with live_runtime(tmp_path, does("pass"), open_live=Overlays()) as runtime:
            forked = await runtime.open(
                await runtime.fork(session, len(read_journal(tmp_path / "sessions" / session).records))
            )
            return await waiting(forked), await waiting(await runtime.open(session))

    assert asyncio.run(main()) == ({}, {"notes.txt": "impact"})


def test_what_a_live_session_calls_first_is_started_with_it(tmp_path: Path, mine: Path) -> None:
    """The viewer, and for a session that may write the worker; only where there is an overlay."""

    async def started(workspace: Path | None, intent: float, refuses: str = "") -> set[tuple[str, str, str]]:
        world = World()
        async with live_runtime(
            tmp_path, does("pass"), open_live=Overlays(refuses), world=world, warm_live=("hands",)
        ) as runtime:
            await (await runtime.open(workspace=workspace, intent=intent)).ask("Go")
        return world.warmed

    look, work = ("hands", "look", "/"), ("hands", "work", "/")
    assert asyncio.run(started(mine, 1)) == {look, work}
    assert asyncio.run(started(mine, 0)) == {look}
    assert asyncio.run(started(None, 1)) == set()
    assert asyncio.run(started(mine, 1, "There can be none.")) == set()


def test_choose_takes_what_belongs_together() -> None:
    with pytest.raises(UsageError, match="No changes are waiting"):
        choose({}, None)


DERIVED = {"calls", "impact", "why", "apply", "held", "reason"}


def test_a_forged_judgement_is_named_by_verification(tmp_path: Path, mine: Path) -> None:
    """Every field of a record of effects that follows from what stands before: changed, taken away, and made up."""

    async def review(session: Session) -> None:
        await session.effects.apply(["notes.txt"])
        await session.effects.drop(None)

    script = does("write a 1", "rm notes.txt\nwrite b 1", "write a 2", "write src/main.py mine")
    session, _ = run(tmp_path, mine, script, then=review)
    directory = tmp_path / "sessions" / session
    journal = read_journal(directory).records
    seen: set[str] = set()
    for at, record in enumerate(journal):
        for name, forged in forgeries(record):
            if forged == record:
                continue  # its header says what holds anyway
            with pytest.raises(ReplayMismatch) as raised:
                read_tree([*journal[:at], forged, *journal[at + 1 :]], lambda digest: b"", strict=True)
            assert raised.value.n == record.n, (name, forged)
            seen.add(f"{record.kind}.{name}")
    assert seen == {f"effects.{name}" for name in (*DERIVED, "changes", "gone")} | {
        "settle.of", "settle.left", "control.paths",
    }  # fmt: skip


def forgeries(record: Record) -> Iterator[tuple[str, Record]]:
    """The record with one field changed to what can't have been."""
    fields = dict(record.fields)

    def made(name: str, value: JSON) -> tuple[str, Record]:
        return name, with_fields(record, {**fields, name: value})

    if record.kind == "effects":
        for name in sorted(DERIVED):
            others: list[JSON] = [None, "impact", "", 1, 0.5, True, [1], "Nothing."]
            for value in others:
                if fields.get(name) != value and not (fields.get(name) is True and value == 1):
                    yield made(name, value)
        yield made("changes", "none")
        yield made("changes", [{"path": "a", "kind": "add"}])
        yield made("changes", {"sha256": 1})
        yield made("gone", ["never"])
    elif record.kind == "settle":
        yield made("of", record.n)
        yield made("left", [{"path": "never", "outcome": "failed", "why": ""}])
        yield made("left", "x")
    elif record.kind == "control" and record.text("op") in ("apply", "drop"):
        yield made("paths", ["never"])
        yield made("paths", [1])


def test_a_fold_is_linear_in_what_waits(tmp_path: Path) -> None:
    """Thousands of paths in folders are chosen and met in no more time than their number asks for."""
    state = FileState("file", 0o644, 1, "a" * 64)
    folder = FileState("folder", 0o755)
    changes = [FileChange("many", "add", None, folder)] + [
        FileChange(f"many/{at}", "add", None, state) for at in range(20_000)
    ]
    pending = {one.path: PendingChange(one, Effect(1, "."), 1) for one in changes}
    assert len(choose(pending, ["many"])) == 20_001
    assert choose(pending, ["many/7"]) == ["many", "many/7"]
    assert choose(pending, ["many/7"], dropping=True) == ["many/7"]
