"""A child that changes what another child wrote is told so, and so is the agent above both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from iact.core.journal import read_journal
from iact.core.stored.replay import replay
from iact.core.tree import apply_file_owners
from tests.core.session.fakes import Asked, ScriptedModel, World, replies
from tests.core.session.kept_files import KeptFiles
from tests.core.session.live_fakes import Overlays, live_runtime
from tests.core.session.test_control import until

KINDS = ("live", "scratch")
WROTE_OVER = "changed what another agent wrote"
DECIDE = "what another agent wrote: out.txt (of `/one`). Decide what stays."


def do(text: str) -> str:
    return f"```DO\n{text}\n```"


def call(name: str, task: str = "Do your part.") -> str:
    return f"```CALL {name}\n{task}\n```"


def contexts(
    data: Path, kind: str, by_path: Mapping[str, Sequence[str]], *, late: str = "", than: str = ""
) -> dict[str, str]:
    """Run a session. Returns the last context of each agent, as text.

    `late`: an agent that says nothing before the first call of `than` has ended.
    """
    script = replies(by_path)
    begins = asyncio.Event()

    def say(asked: Asked) -> str:
        if asked.path == than and asked.turn == 1:
            begins.set()
        return script(asked)

    model = ScriptedModel(say, holds={late: begins} if late else None)
    mine = data / "mine"
    mine.mkdir()

    async def main() -> str:
        async with live_runtime(
            data, say, model=model, open_live=Overlays(), versions=KeptFiles()
        ) as runtime:
            session = await runtime.open(None, intent=2, workspace=mine if kind == "live" else None)
            await session.ask("Go.")
            return session.id

    identity = asyncio.run(main())
    replay(data / "sessions" / identity, verify=True)
    return {asked.path: "\n".join(each.content for each in asked.messages) for asked in model.asked}


SUMMARY: Final = {
    "/": [call("one"), call("two"), "Done."],
    "/one": [do("write out.txt first\nwrite other.txt 1"), "Written."],
    "/two": [do("write out.txt second"), do("write out.txt third"), "Written, too."],
}


def shared(data: Path) -> Path:
    """A session in which a child writes over what another wrote. Returns its folder."""
    contexts(data, "scratch", SUMMARY)
    (session,) = (data / "sessions").iterdir()
    return session


@pytest.mark.parametrize("kind", KINDS)
def test_who_writes_over_anothers_file_is_told_and_the_caller_decides(tmp_path: Path, kind: str) -> None:
    read = contexts(tmp_path, kind, SUMMARY)

    told = f"You {WROTE_OVER}: out.txt (of `/one`). Your caller is told, and decides what stays."
    assert read["/two"].count(told) == 1, "its own file is its own from then on"
    assert WROTE_OVER not in read["/one"]
    assert read["/"].count(DECIDE) == 1
    assert read["/"].index("Written, too.") < read["/"].index(DECIDE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_taken_away_was_anothers_as_well(tmp_path: Path, kind: str) -> None:
    read = contexts(
        tmp_path,
        kind,
        {
            "/": [call("one"), call("two"), "Done."],
            "/one": [do("write out.txt first"), "Written."],
            "/two": [do("rm out.txt"), "Removed."],
        },
    )
    assert WROTE_OVER in read["/two"]
    assert DECIDE in read["/"]


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_told_what_was_asked_for(tmp_path: Path, kind: str) -> None:
    read = contexts(
        tmp_path,
        kind,
        {
            "/": [call("one"), call("two", "Improve out.txt."), "Done."],
            "/one": [do("write out.txt first"), "Written."],
            "/two": [do("write out.txt second"), "Better."],
        },
    )
    assert not any("another agent wrote" in text for text in read.values())


def test_a_name_that_begins_with_anothers_does_not_ask_for_it(tmp_path: Path) -> None:
    read = contexts(
        tmp_path,
        "scratch",
        {
            "/": [call("one"), call("two", "Write out.txt.bak and other/out.txt."), "Done."],
            "/one": [do("write out.txt first"), "Written."],
            "/two": [do("write out.txt second"), "Written, too."],
        },
    )
    assert WROTE_OVER in read["/two"]


@pytest.mark.parametrize("kind", KINDS)
def test_callers_and_their_children_work_on_the_same_files(tmp_path: Path, kind: str) -> None:
    """A child goes on with what its caller began, and a caller with what its child did."""
    read = contexts(
        tmp_path,
        kind,
        {
            "/": [do("write out.txt 1"), call("one"), do("write out.txt 4"), call("two"), "Done."],
            "/one": [do("write out.txt 2"), call("deep"), "Written."],
            "/one/deep": [do("write out.txt 3"), "Written."],
            "/two": [do("write out.txt 5"), "Written."],
        },
    )
    assert not any("another agent wrote" in text for text in read.values())


@pytest.mark.parametrize("kind", KINDS)
def test_of_cousins_the_agent_above_both_decides(tmp_path: Path, kind: str) -> None:
    read = contexts(
        tmp_path,
        kind,
        {
            "/": [call("one"), call("two"), "Done."],
            "/one": [do("write out.txt first"), "Written."],
            "/two": [call("deep"), "Written, too."],
            "/two/deep": [do("write out.txt second"), "Written below."],
        },
    )
    assert f"{WROTE_OVER}: out.txt (of `/one`). `/` is told" in read["/two/deep"]
    assert "another agent wrote" not in read["/two"]
    through = "For this, it changed (through `/two/deep`) what another agent wrote: out.txt (of `/one`)."
    assert read["/"].count(through) == 1


def at_once(data: Path) -> dict[str, str]:
    """Run a session in which two children write while the other is at work. Returns the last context of each agent."""
    both_wrote, both_ended = asyncio.Event(), asyncio.Event()
    world = World(hold={"both": both_wrote, "ends": both_ended})
    both = "```CALL_ASYNC one\nDo your part.\n```\n```CALL_ASYNC two\nDo your part.\n```\n```WAIT\n```"
    script = replies(
        {
            "/": [both, "Done."],
            "/one": [
                do("write out.txt one\nwrite one.txt 1\nwait both"),
                do("wait ends\nwrite out.txt one"),
                "Written.",
            ],
            "/two": [
                do("write out.txt two\nwrite two.txt 2\nwait both"),
                do("write own.txt two"),
                "Written.",
            ],
        }
    )
    model = ScriptedModel(script)

    async def main() -> None:
        async with live_runtime(data, script, model=model, versions=KeptFiles(), world=world) as runtime:
            session = await runtime.open(None, intent=2)
            answer = asyncio.create_task(session.ask("Go."))
            files = session.journal.parent / "workspace"
            # Each wrote this file after the shared one, which both have written by then.
            await until(lambda: (files / "one.txt").exists() and (files / "two.txt").exists())
            both_wrote.set()
            await until(lambda: session.journal.read_text().count('"kind":"result"') >= 2)
            both_ended.set()
            await answer
            replay(session.journal, verify=True)

    asyncio.run(main())
    return {asked.path: "\n".join(each.content for each in asked.messages) for asked in model.asked}


def test_of_calls_at_the_same_time_nobody_is_told_what_is_not_known(tmp_path: Path) -> None:
    """Both wrote while the other was at work, so it can't be told whose file it is."""
    read = at_once(tmp_path)
    assert not any("another agent wrote" in text for text in read.values())


def test_calls_that_are_known_to_write_a_file_at_the_same_time_are_told_that_they_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whose version is there, so neither hears that it changed what the other wrote."""

    def names(_: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
        is_shared = "out.txt" in str(arguments)
        return ("/workspace/out.txt",) if is_shared else ()

    monkeypatch.setattr(apply_file_owners, "paths_written", names)
    read = at_once(tmp_path)

    assert not any(WROTE_OVER in text for text in read.values())
    for agent, other in (("/one", "/two"), ("/two", "/one")):
        met = (
            f"and another agent wrote at the same time: out.txt (with `{other}`). One may have replaced what"
        )
        told = f"You {met} the other wrote. Your caller is told, and decides what stays."
        assert read[agent].count(told) == 1
    assert read["/"].count("For this, it and another agent wrote at the same time: out.txt (with ") == 1
    assert read["/"].count("the other wrote: look, and decide what stays.") == 1, "once for both"


IN_ORDER = """\
steps:
  - {id: a, agent: one, task: "Do your part."}
  - {id: look, call: t.read, params: {text: one}, after: [a]}
  - {id: b, agent: two, task: "Do your part.", after: [look]}
"""
BESIDE = """\
steps:
  - {id: a, agent: one, task: "Do your part."}
  - {id: b, agent: two, task: "Do your part."}
"""


@pytest.mark.parametrize(("plan", "is_told"), [(IN_ORDER, False), (BESIDE, True)])
def test_of_steps_that_are_not_in_order_the_caller_of_the_plan_decides(
    tmp_path: Path, plan: str, is_told: bool
) -> None:
    """A step that builds on another goes on with its files; others were to do something of their own."""
    read = contexts(
        tmp_path,
        "scratch",
        {
            "/": [f"```PLAN audit\n{plan}```", "Done."],
            "/audit/one": [do("write out.txt first"), "Written."],
            "/audit/two": [do("write out.txt second"), "Written, too."],
        },
        late="/audit/two",
        than="/audit/one",
    )
    assert ("out.txt (of `/audit/one`). `/` is told" in read["/audit/two"]) == is_told
    through = (
        "For this, it changed (through `/audit/two`) what another agent wrote: out.txt (of `/audit/one`)."
    )
    assert (through in read["/"]) == is_told


def test_a_version_names_what_changed_where_several_share_the_files(tmp_path: Path) -> None:
    contexts(
        tmp_path,
        "scratch",
        {
            "/": [do("write mine.txt 1"), call("one"), do("write mine.txt 2"), "Done."],
            "/one": [do("write a.txt 1\nwrite b.txt 1"), do("rm a.txt"), "Written."],
        },
    )
    (session,) = (tmp_path / "sessions").iterdir()
    results = [record for record in read_journal(session).records if record.text("function") == "hands.do"]
    named = [record.fields.get("changed") for record in results if record.kind == "result"]
    assert named == [None, ["a.txt", "b.txt"], ["a.txt"], ["mine.txt"]], (
        "alone, an agent knows what is its own"
    )
