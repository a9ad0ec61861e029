"""Nobody is there to answer: the policy denies, allows, or holds a call until a person comes, and the rest goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from iact.core.views.questions import Undecided, undecided_since
from tests.core.session.fakes import TickingClock, World, replies, runtime
from tests.core.session.test_clearance import clearances
from tests.core.session.test_verify import mismatch, rewrite
from tests.records import with_fields

NOBODY = Authorities(attended=False, seconds=0.01)
PLAIN = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]\n'
WRITE = "```WRITE\na\n```"


def ruled(then: str) -> str:
    """A policy that asks about each write, and says what becomes of a question that nobody is there to answer."""
    return f'{PLAIN}[[scope.default.nobody]]\nfunction = "t.write"\nthen = "{then}"\n'


def play(
    data: Path, script: Mapping[str, Sequence[str]], policy: str, *, world: World | None = None
) -> tuple[World, list[Record], Record | None]:
    """Say something with nobody there; gives what was done, the journal, verified, and the reply."""
    world = world or World()

    async def main() -> tuple[Path, Record | None]:
        async with runtime(data, replies(script), world=world, policy=policy, authorities=NOBODY) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            return session.journal, await session.answer_unless_held(said.n)

    journal, reply = asyncio.run(main())
    return world, list(replay(journal, verify=True).records), reply


def done(world: World) -> list[str]:
    return [text for _, _, text in world.done]


def test_it_is_denied_at_once_where_the_policy_says_so(tmp_path: Path) -> None:
    world, records, reply = play(tmp_path, {"/": [WRITE, "Done."]}, ruled("deny"))
    assert reply is not None
    assert done(world) == []
    (answered,) = clearances(records, "answer")
    assert (answered.fields["allow"], answered.text("by")) == (False, "policy")


def test_without_a_rule_it_is_denied_at_once_and_named(tmp_path: Path) -> None:
    world, records, reply = play(tmp_path, {"/": [WRITE, "Done."]}, PLAIN)
    assert reply is not None
    assert done(world) == []
    (asked,), (answered,) = clearances(records, "ask"), clearances(records, "answer")
    assert (answered.fields["allow"], answered.text("by")) == (False, "policy")
    assert undecided_since(records, 0) == [Undecided(asked, allowed=False)]
    assert undecided_since(records, answered.n) == []


def test_a_held_call_waits_while_others_work_and_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """A sibling does its work meanwhile; then the session is closed, opened again a day later, and answered."""
    policy, world = ruled("hold"), World()
    script = {
        "/": ["```CALL_ASYNC a\nWrite.\n```\n```CALL_ASYNC b\nRead.\n```\n```WAIT\n```", "Both."],
        "/a": [WRITE, "Written."],
        "/b": ["```READ\nb\n```", "Was read."],
    }
    _, records, reply = play(tmp_path, script, policy, world=world)
    assert reply is None
    assert done(world) == ["b"]
    (asked,) = clearances(records, "ask")
    assert asked.fields.get("seconds") is None
    assert not clearances(records, "answer")
    assert any(one.kind == "reply" and one.agent == "/b" for one in records)

    async def later() -> Path:
        clock = TickingClock()
        clock.advance(86_400)  # the hour that an agent may work has stood still
        async with runtime(tmp_path, replies(script), world=world, policy=policy, clock=clock) as opened:
            session = await opened.open(stored(tmp_path))
            await session.clear(asked.n, True)
            await session.answer(asked.n)
            return session.journal

    journal = asyncio.run(later())
    assert "a" in done(world)
    found = list(replay(journal, verify=True).records)
    assert found[-1].kind == "close"
    assert next(one for one in reversed(found) if one.kind == "reply").body == "Both."


def stored(data: Path) -> str:
    (journal,) = data.glob("sessions/*/journal.md")
    return journal.parent.name


def test_steps_that_do_not_depend_on_a_held_one_go_on(tmp_path: Path) -> None:
    plan = (
        "```PLAN p\nsteps:\n  - {id: w, call: t.write, params: {text: a}}\n"
        "  - {id: x, call: t.read, params: {text: b}}\n  - {id: y, call: t.read, params: {text: c}, after: [x]}\n"
        "  - {id: z, call: t.read, params: {text: d}, after: [w]}\n```"
    )
    world, records, reply = play(tmp_path, {"/": [plan, "Done."]}, ruled("hold"))
    assert reply is None
    assert done(world) == ["b", "c"]
    assert not any(one.kind == "reply" for one in records)


@pytest.mark.parametrize(
    ("then", "op", "change"),
    [
        ("deny", "answer", {"allow": True}),
        ("hold", "ask", {"seconds": 0.01}),
        ("deny", "ask", {"seconds": None}),
        (None, "answer", {"allow": True}),
    ],
)
def test_an_answer_that_the_policy_does_not_give_is_named(
    tmp_path: Path, then: str | None, op: str, change: Mapping[str, JSON]
) -> None:
    """Who can write the journal can't have the policy say yes, nor have a question wait where it does not say so."""
    play(tmp_path, {"/": [WRITE, "Done."]}, ruled("deny") if then else PLAIN)
    (journal,) = tmp_path.glob("sessions/*/journal.md")

    def change_it(found: list[Record]) -> list[Record]:
        return [
            with_fields(one, {**one.fields, **change}) if one.text("op") == op else _under(one, then)
            for one in found
        ]

    rewrite(journal, change_it)
    if then == "hold":  # how long a person has is a setting; that the policy answered in place of one is not
        assert "policy" in str(mismatch(journal))
    else:
        assert mismatch(journal)


def _under(record: Record, then: str | None) -> Record:
    """The record that says which policy holds, with another rule."""
    policy = record.fields.get("policy")
    if then is None or not isinstance(policy, dict):
        return record
    rule: dict[str, JSON] = {"function": "t.write", "then": then}
    return with_fields(record, {**record.fields, "policy": {**policy, "nobody": [rule]}})
