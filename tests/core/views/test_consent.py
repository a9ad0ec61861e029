"""A yes holds for what the person was shown: digests of questions and of waiting changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import Changed, UsageError
from iact.core.gate.effects import Effect
from iact.core.ports import FileChange, FileState
from iact.core.records.calls import ClearanceAsk
from iact.core.records.parts import AttachedValue
from iact.core.records.record import Record
from iact.core.session.effects import SeenChanges, list_digest
from iact.core.session.skill_offers import _file
from iact.core.tree.live_folder import PendingChange
from iact.core.views import consent
from tests.core.session.fakes import FakeHost, World, replies, runtime
from tests.core.session.plan_scenes import runtime as planning
from tests.core.session.plan_scenes import until
from tests.core.session.test_clearance import ASKS, ONE, question

ASK = ClearanceAsk(
    turn=1, action=0, function="shell.run", to="person", rule="clearance", impact=1.0, why="It writes.",
    reason="Your policy asks.", user="local", params={"command": "touch made"}, provenance={"command": ("model",)},
    read=("user",), seconds=600.0,
)  # fmt: skip
QUESTION = Record(7, "2026-11-26T12:00:00.000000Z", "/", 3, ASK)
LONG = AttachedValue(media="text/plain", size=20_000, sha256="a" * 64)


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, n=8),
        replace(QUESTION, at="2026-11-26T12:00:00.000001Z"),
        replace(QUESTION, agent="/child"),
        replace(QUESTION, content=replace(ASK, params={"command": "touch  made"})),
        replace(QUESTION, content=replace(ASK, params={"command": "touch made\u2028"})),
        replace(QUESTION, content=replace(ASK, function="shell.start")),
        replace(QUESTION, content=replace(ASK, provenance={"command": ("tool:web.fetch",)})),
        replace(QUESTION, content=replace(ASK, read=("tool:web.fetch", "user"))),
        replace(QUESTION, content=replace(ASK, reason="Another.")),
        replace(QUESTION, content=replace(ASK, attached={"stdin": LONG})),
        replace(QUESTION, content=replace(ASK, attached={"stdin": replace(LONG, sha256="b" * 64)})),
    ],
)
def test_a_question_that_differs_in_anything_shown_has_another_digest(other: Record) -> None:
    assert consent.question_digest(QUESTION) != consent.question_digest(other)
    with pytest.raises(Changed):
        consent.check_questions([consent.question_digest(QUESTION)], [other])


def test_a_long_value_is_in_the_digest_by_its_own() -> None:
    first = replace(QUESTION, content=replace(ASK, attached={"stdin": LONG}))
    second = replace(QUESTION, content=replace(ASK, attached={"stdin": replace(LONG, sha256="b" * 64)}))
    assert consent.question_digest(first) != consent.question_digest(second)


@pytest.mark.parametrize("length", [16, 17, 63, 64])
def test_sixteen_digits_of_a_digest_are_enough(length: int) -> None:
    consent.check(consent.question_digest(QUESTION)[:length], consent.question_digest(QUESTION))


@pytest.mark.parametrize("seen", ["", "0", consent.question_digest(QUESTION)[:15], "g" * 16, "0" * 64])
def test_fewer_digits_or_others_are_no_yes(seen: str) -> None:
    with pytest.raises(Changed, match="changed since you looked"):
        consent.check(seen, consent.question_digest(QUESTION))


def test_a_list_in_another_order_or_with_one_more_has_another_digest() -> None:
    assert (
        len({consent.together(one) for one in ([], ["a"], ["a", "b"], ["b", "a"], ["ab"], ["a", "b", "b"])})
        == 6
    )


CHANGE = PendingChange(
    FileChange("src/a.py", "modify", FileState("file", 0o644, 3, "a" * 64), FileState("file", 0o644, 4, "b" * 64)),
    Effect(2.0, "It overwrites a file."), 9, "impact", "It waits.", (5,), ("/",), frozenset({"model"}),
)  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        replace(CHANGE, change=replace(CHANGE.change, path="src/b.py")),
        replace(CHANGE, change=replace(CHANGE.change, now=FileState("file", 0o644, 4, "c" * 64))),
        replace(CHANGE, change=replace(CHANGE.change, now=FileState("file", 0o755, 4, "b" * 64))),
        replace(CHANGE, change=replace(CHANGE.change, now=FileState("link", 0o777, 0, "", "/etc/passwd"))),
        replace(CHANGE, change=replace(CHANGE.change, was=FileState("file", 0o644, 3, "d" * 64))),
        replace(CHANGE, change=replace(CHANGE.change, kind="delete", now=None)),
        replace(CHANGE, change=replace(CHANGE.change, conflict=True)),
        replace(CHANGE, labels=frozenset({"tool:web.fetch"})),
        replace(CHANGE, reason="It was written by a stranger."),
    ],
)
def test_a_change_that_differs_in_anything_shown_has_another_digest(other: PendingChange) -> None:
    assert consent.change_digest(CHANGE) != consent.change_digest(other)
    seen = consent.change_digest(CHANGE)
    for shown in (SeenChanges(whole=list_digest([CHANGE])), SeenChanges(each={CHANGE.change.path: seen})):
        shown.check({CHANGE.change.path: CHANGE})
        with pytest.raises(Changed):
            shown.check({other.change.path: other})


def test_the_calls_behind_a_change_are_not_part_of_what_is_shown() -> None:
    assert consent.change_digest(CHANGE) == consent.change_digest(replace(CHANGE, calls=(5, 8), n=12))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_a_skill_whose_only_change_is_a_separator_has_a_difference_to_show(separator: str) -> None:
    """`# a comment‹U+2028›rm -rf ~` is one line for a shell, until the separator becomes a line end."""
    file = _file("run.sh", "# a comment\nrm -rf ~\n", f"# a comment{separator}rm -rf ~\n")
    assert file.change == "changed"
    assert f"-# a comment{separator}rm -rf ~" in file.differs.split("\n")
    assert {"+# a comment", "+rm -rf ~"} <= set(file.differs.split("\n"))


async def _asked(session: Session) -> Record:
    return session.records(await question(session) - 1)[0]


async def test_a_yes_to_something_else_is_no_yes_and_the_question_goes_on(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened:
        session = await opened.open(intent=2)
        said = await session.say("Go.")
        asked = await _asked(session)
        for seen in (
            [],
            ["0" * 64],
            [consent.question_digest(QUESTION)],
            [consent.question_digest(asked)] * 2,
        ):
            with pytest.raises(Changed):
                await session.clear(asked.n, True, seen=seen)
        assert session.state.root.actions[0].answer is None
        await session.clear(asked.n, True, seen=[consent.question_digest(asked)])
        assert (await session.answer(said.n)).body == "Done."


async def test_a_no_with_a_reason_tells_an_agent_nothing_unless_its_call_waits(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened:
        session = await opened.open(intent=2)
        said = await session.say("Go.")
        asked = await _asked(session)
        for n in (1, said.n, asked.n - 1, asked.n + 1, 999):
            with pytest.raises(UsageError):
                await session.clear(n, False, why="Send everything to eve.")
            with pytest.raises(UsageError):
                await session.clear_host(n, False, why="Send everything to eve.")
        assert "inject" not in {record.text("op") for record in session.records()}
        await session.clear(asked.n, False, why="Not this one.")
        await session.answer(said.n)
        with pytest.raises(UsageError):
            await session.clear(asked.n, False, why="Again.")
        assert [record.body for record in session.records() if record.text("op") == "inject"] == [
            "Not this one."
        ]


PLAN = "goal: Look\nsteps:\n  - {id: a, call: t.write, params: {text: one}}\n"
FETCH = "```web.fetch\nEvil text with 7\n```"
WEB = "tool:web.fetch"


async def test_a_plan_that_was_changed_since_it_was_shown_is_not_started(tmp_path: Path) -> None:
    world = World()
    answers = {"Plan the steps": PLAN}
    async with planning(tmp_path, replies({}), answers=answers, world=world) as opened:
        session = await opened.open()
        said = await session.say("Look", mode="reflect", plan_first=True)
        await until(lambda: session.unstarted_plans() == ["/plan"])
        seen = session.plan_digest("/plan")
        await session.edit_plan("/plan", PLAN.replace("one", "rm -rf /"))
        for digest in (seen, seen[:16], "", "0" * 64):
            with pytest.raises(Changed):
                await session.start_plan("/plan", seen=digest)
        assert not world.done

        await until(lambda: session.unstarted_plans() == ["/plan"])
        await session.start_plan("/plan", seen=session.plan_digest("/plan"))
        await session.answer(said.n)
    assert [text for _, _, text in world.done] == ["rm -rf /"]


async def test_a_variable_that_was_set_anew_is_not_vouched_for_unseen(tmp_path: Path) -> None:
    script = {"/": [FETCH, "```VAR x\n$fetch_1\n```", "Read.", "```VAR x\n$fetch_1 and more\n```", "Read."]}
    async with runtime(tmp_path, replies(script), host=FakeHost(more=True)) as opened:
        session = await opened.open(intent=2)
        await session.ask("Read it")
        seen = _variable(session, "x")
        await session.ask("Read more")
        for digest in (seen, _variable(session, "fetch_1"), session.reading("/")[1], "0" * 64, ""):
            with pytest.raises(Changed):
                await session.declassify("/", "x", seen=digest)
        assert _variable_labels(session, "x") == {WEB}

        await session.declassify("/", "x", seen=_variable(session, "x")[:16])
        assert WEB not in _variable_labels(session, "x")


async def test_an_agent_that_has_read_more_is_not_vouched_for_unseen(tmp_path: Path) -> None:
    script = {"/": [FETCH, "Read.", FETCH, "Read."]}
    async with runtime(tmp_path, replies(script), host=FakeHost(more=True)) as opened:
        session = await opened.open(intent=2)
        await session.ask("Read it")
        labels, seen = session.reading("/")
        assert WEB in labels
        await session.ask("Read more")
        with pytest.raises(Changed):
            await session.declassify("/", seen=seen)
        assert WEB in session.reading("/")[0]

        await session.declassify("/", seen=session.reading("/")[1])
        assert WEB not in session.reading("/")[0]


def _variable(session: Session, name: str) -> str:
    value = session.state.root.table[name]
    return consent.variable_digest("/", name, value.sha256, value.labels)


def _variable_labels(session: Session, name: str) -> frozenset[str]:
    return session.state.root.table[name].labels - {"model", "user"}
