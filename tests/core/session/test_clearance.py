"""A call that needs clearance waits: it is asked about once, in full, and runs only on a yes that still holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import UsageError
from iact.core.gate.clearance import ClearanceRequest
from iact.core.gate.gate import Answer
from iact.core.journal import read_journal
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from tests.core.session.fakes import FakeHost, ScriptedModel, World, replies, runtime
from tests.core.session.test_control import until
from tests.core.session.test_verify import mismatch, rewrite
from tests.records import with_fields

ASKS = """
[scope.default]
functions = ["*"]
clearance = ["t.write"]
"""
ONE = {"/": ["```WRITE\na\n```", "Done."]}
TWICE = {"/": ["```WRITE\na\n```\n```WRITE\na\n```", "Done."]}


def clearances(records: Sequence[Record], op: str) -> list[Record]:
    return [one for one in records if one.kind == "clearance" and one.text("op") == op]


async def question(session: Session, known: int = 0) -> int:
    """The number of the first question to a person behind record `known`."""

    def asked() -> list[int]:
        found = clearances(session.records(known), "ask")
        return [one.n for one in found if one.text("to") == "person"]

    await until(lambda: bool(asked()))
    return asked()[0]


def play(
    data: Path, script: Mapping[str, Sequence[str]], answers: Sequence[bool], *, policy: str = ASKS
) -> tuple[World, list[Record]]:
    """Ask once, and answer every question that comes; gives what was done and the journal, verified."""
    world = World()

    async def main() -> Path:
        async with runtime(data, replies(script), world=world, policy=policy) as opened:
            session = await opened.open(intent=2)
            said, known = await session.say("Go"), 0
            for answer in answers:
                known = await question(session, known)
                assert session.tree()[0].state == "waiting"
                await session.clear(known, answer)
            await session.answer(said.n)
            return session.journal

    journal = asyncio.run(main())
    return world, list(replay(journal, verify=True).records)


@pytest.mark.parametrize("allow", [True, False])
def test_a_call_runs_if_and_only_if_a_person_says_yes(tmp_path: Path, allow: bool) -> None:
    world, records = play(tmp_path, ONE, [allow])
    assert [text for _, _, text in world.done] == (["a"] if allow else [])
    (asked,), (answered,) = clearances(records, "ask"), clearances(records, "answer")
    gate = next(one for one in records if one.kind == "gate")
    assert asked.fields["params"] == {"text": "a"}
    assert asked.fields["provenance"] == {"text": ["model"]}
    assert (asked.text("to"), asked.text("rule"), asked.fields["impact"]) == ("person", "clearance", 1)
    assert (answered.number("ask"), answered.fields["allow"], answered.text("by")) == (asked.n, allow, "user")
    assert (gate.fields["allow"], gate.text("by"), gate.number("ask")) == (allow, "clearance", asked.n)
    assert [one.text("status") for one in records if one.kind == "result"] == [
        "ok" if allow else "incomplete"
    ]


def test_a_value_passed_by_name_is_shown_in_full_and_a_long_one_kept(tmp_path: Path) -> None:
    script = {
        "/": [
            "```VAR v\nsmall\n```\n```t.read\nbig:40000\n```\n~~~WRITE text=$v\n~~~",
            "~~~WRITE text=$read_1\n~~~",
            "Done.",
        ]
    }
    _, records = play(tmp_path, script, [True, True])
    small, large = clearances(records, "ask")
    assert small.fields["params"] == {"text": "small"}
    assert large.fields["params"] == {}
    attached = large.fields["attached"]
    assert isinstance(attached, dict)
    about = attached["text"]
    assert isinstance(about, dict)
    assert about["size"] == 40000
    session = next(tmp_path.glob("sessions/*"))
    assert (session / "blobs" / str(about["sha256"])).stat().st_size == 40000


def test_an_answer_is_good_for_one_call(tmp_path: Path) -> None:
    world, records = play(tmp_path, TWICE, [True, True])
    assert len(clearances(records, "ask")) == 2
    assert len(world.done) == 2


@pytest.mark.parametrize(
    "remember", ["call", {"function": "t.*"}, {"function": "t.write", "arguments": {"text": "a*"}}]
)
def test_a_remembered_yes_covers_later_calls_and_a_restart(tmp_path: Path, remember: object) -> None:
    script = {"/": [*TWICE["/"], *TWICE["/"]]}
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), world=world, policy=ASKS) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await session.clear(await question(session), True, remember)  # type: ignore[arg-type]
            await session.answer(said.n)
            name = session.id
        async with runtime(tmp_path, replies(script), world=world, policy=ASKS) as opened:
            session = await opened.open(name)
            await session.ask("Again")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert len(clearances(records, "ask")) == 1
    assert [text for _, _, text in world.done] == ["a"] * 4


def test_a_rule_does_not_cover_what_it_does_not_name(tmp_path: Path) -> None:
    script = {"/": ["```WRITE\na\n```\n```WRITE\nb\n```", "Done."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), policy=ASKS) as opened:
            session = await opened.open()
            said = await session.say("Go")
            first = await question(session)
            await session.clear(first, True, {"function": "t.write", "arguments": {"text": "a"}})
            await session.clear(await question(session, first), False)
            await session.answer(said.n)
            return session.journal

    assert len(clearances(replay(asyncio.run(main()), verify=True).records, "ask")) == 2


@pytest.mark.parametrize(
    ("allow", "remember"),
    [
        (False, "call"),
        (True, "all"),
        (True, {"function": "other.*"}),
        (True, {"function": "t.*", "impact": 2}),
    ],
)
async def test_what_cant_be_remembered_is_refused_and_the_question_stays(
    tmp_path: Path, allow: bool, remember: object
) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened:
        session = await opened.open()
        said = await session.say("Go")
        call = await question(session)
        with pytest.raises(UsageError, match="remember"):
            await session.clear(call, allow, remember)  # type: ignore[arg-type]
        await session.clear(call, True)
        assert (await session.answer(said.n)).body == "Done."


async def test_a_policy_can_forbid_to_remember(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS + "remember = false\n") as opened:
        session = await opened.open()
        await session.say("Go")
        with pytest.raises(UsageError, match="if the policy allows it"):
            await session.clear(await question(session), True, "call")


async def test_a_question_is_answered_once_and_only_where_there_is_one(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened:
        session = await opened.open()
        said = await session.say("Go")
        call = await question(session)
        with pytest.raises(UsageError, match="No call waits"):
            await session.clear(call + 1, True)
        await session.clear(call, False)
        with pytest.raises(UsageError, match="No call waits"):
            await session.clear(call, True)
        await session.answer(said.n)


def test_a_person_is_asked_once_for_a_command_whatever_its_blanks(tmp_path: Path) -> None:
    """A no holds for calls of that kind until the person's next message, for the agent's children as well."""
    child = "```CALL a\nWrite it.\n```"
    script = {
        "/": [*(f"```WRITE\n{' ' * blanks}a\n```" for blanks in range(2)), child, "I can't.", *ONE["/"]],
        "/a": ["```WRITE\na  \n```", "I can't either."],
    }
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            known = await question(session)
            await session.clear(known, False)
            await session.answer(said.n)
            assert len(clearances(session.records(), "ask")) == 1

            said = await session.say("All right, do it.")
            await session.clear(await question(session, known), True)
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    gates = [record for record in records if record.kind == "gate"]
    assert [gate.fields["allow"] for gate in gates] == [False, False, False, True]
    assert [gate.text("by") for gate in gates] == ["clearance"] * 4
    assert "You said no to this in this task." in gates[1].text("reason")
    assert "You said no to this in this task." in gates[2].text("reason")
    assert [bool(gate.fields.get("ask")) for gate in gates] == [True, False, False, True]
    assert [text for _, _, text in world.done] == ["a"]


def test_a_no_to_one_call_is_none_to_another(tmp_path: Path) -> None:
    script = {"/": ["```WRITE\na\n```", "```WRITE\nb\n```", "Done."]}
    world, records = play(tmp_path, script, [False, True])
    assert len(clearances(records, "ask")) == 2
    assert [text for _, _, text in world.done] == ["b"]


def test_two_of_a_kind_are_not_asked_about_together(tmp_path: Path) -> None:
    script = {"/": ["```WRITE\na\n```\n```WRITE\n a\n```", "Done."]}
    world, records = play(tmp_path, script, [False])
    assert len(clearances(records, "ask")) == 1
    assert world.done == []


def test_nobody_answers(tmp_path: Path) -> None:
    world, authorities = World(), Authorities(seconds=0.05)

    async def main() -> Path:
        async with runtime(
            tmp_path, replies(ONE), world=world, policy=ASKS, authorities=authorities
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    (answered,) = clearances(records, "answer")
    assert (answered.fields["allow"], answered.text("by")) == (False, "time")
    assert world.done == []


def test_an_intent_that_was_lowered_meanwhile_counts(tmp_path: Path) -> None:
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(ONE), world=world, policy=ASKS) as opened:
            session = await opened.open()
            said = await session.say("Go")
            call = await question(session)
            await session.set_intent(0)
            await session.clear(call, True)
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert world.done == []
    assert [one.text("by") for one in records if one.kind == "gate"] == ["impact"]


def test_a_question_can_be_withdrawn(tmp_path: Path) -> None:
    async def main() -> Path:
        async with runtime(tmp_path, replies(ONE), policy=ASKS) as opened:
            session = await opened.open()
            said = await session.say("Go")
            call = await question(session)
            await session.cancel("/")
            with pytest.raises(UsageError, match="No call waits"):
                await session.clear(call, True)
            assert (await session.answer(said.n)).text("status") == "cancelled"
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert not [one for one in records if one.kind == "gate"]


def test_while_paused_an_answer_is_taken_and_nothing_runs(tmp_path: Path) -> None:
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(ONE), world=world, policy=ASKS) as opened:
            session = await opened.open()
            said = await session.say("Go")
            call = await question(session)
            await session.pause("/")
            await session.clear(call, True)
            await session.pause("/")
            assert not [one for one in session.records() if one.kind == "gate"]
            await session.resume("/")
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert len(clearances(records, "ask")) == 1
    assert [text for _, _, text in world.done] == ["a"]


@pytest.mark.parametrize("answered", [False, True])
def test_a_crash_asks_again_what_was_not_answered_and_nothing_else(tmp_path: Path, answered: bool) -> None:
    """The journal is cut behind the question, or behind its answer, as a kill leaves it."""
    world = World()

    async def begin() -> tuple[str, int]:
        async with runtime(tmp_path, replies(ONE), world=World(), policy=ASKS) as opened:
            session = await opened.open()
            await session.say("Go")
            call = await question(session)
            if answered:
                await session.pause("/")  # so that nothing happens behind the answer
                await session.clear(call, True)
                await session.resume("/")
            return session.id, call

    name, call = asyncio.run(begin())
    file = tmp_path / "sessions" / name / "journal.md"
    kept = [one for one in read_journal(file).records if one.kind == "clearance"][-1].n
    cut = file.read_bytes().split(f"<!-- /{kept} ".encode())
    file.write_bytes(cut[0] + f"<!-- /{kept} ".encode() + cut[1].split(b"\n\n")[0] + b"\n\n")
    if answered:
        file_records = read_journal(file).records
        assert file_records[-1].text("op") == "answer"

    async def go_on() -> None:
        async with runtime(tmp_path, replies(ONE), world=world, policy=ASKS) as opened:
            session = await opened.open(name)
            if answered:
                await session.resume("/")
            else:
                await until(lambda: session.tree()[0].state == "waiting")
                await session.clear(call, True)
            await session.answer(0)

    asyncio.run(go_on())
    records = replay(file, verify=True).records
    assert len(clearances(records, "ask")) == 1
    assert len(clearances(records, "answer")) == 1
    assert [text for _, _, text in world.done] == ["a"]


class Endpoint:
    """Answers what it is told to; notes what it was asked."""

    def __init__(self, allow: bool) -> None:
        self.answer = Answer(allow, "the endpoint says so")
        self.asked: list[ClearanceRequest] = []

    async def ask(self, request: ClearanceRequest) -> Answer:
        self.asked.append(request)
        return self.answer


@pytest.mark.parametrize("allow", [True, False])
def test_an_endpoint_is_asked_about_every_call_that_nothing_cheaper_denies(
    tmp_path: Path, allow: bool
) -> None:
    world, endpoint = World(), Endpoint(allow)
    script = {"/": ["```READ\na\n```\n```WRITE\nb\n```\n```t.destroy\nc\n```", "Done."]}

    async def main() -> Path:
        authorities = Authorities(endpoint=endpoint)
        async with runtime(tmp_path, replies(script), world=world, authorities=authorities) as opened:
            session = await opened.open(intent=1)
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [one.question.request.function for one in endpoint.asked] == ["t.read", "t.write"]
    assert [one.arguments for one in endpoint.asked] == [{"text": "a"}, {"text": "b"}]
    assert [text for _, _, text in world.done] == (["a", "b"] if allow else [])
    gates = [(one.fields["allow"], one.text("by")) for one in records if one.kind == "gate"]
    assert gates == [(allow, "clearance"), (allow, "clearance"), (False, "impact")]


@pytest.mark.parametrize(("endpoint", "person"), [(True, True), (True, False), (False, None)])
def test_a_person_can_have_the_last_word_on_what_an_endpoint_allows(
    tmp_path: Path, endpoint: bool, person: bool | None
) -> None:
    """The endpoint is asked about both calls; the person about the one that a rule asks about, if the endpoint said yes."""
    world, first = World(), Endpoint(endpoint)
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
    script = {"/": ["```READ\na\n```\n```WRITE\nb\n```", "Done."]}
    authorities = Authorities(endpoint=first, both=True)

    async def main() -> Path:
        async with runtime(
            tmp_path, replies(script), world=world, authorities=authorities, policy=policy
        ) as opened:
            session = await opened.open(intent=1)
            said = await session.say("Go")
            if person is None:
                await session.answer(said.n)
                return session.journal
            await until(lambda: any(one.text("to") == "person" for one in session.records()))
            name, call = session.id, await question(session, said.n)
        # The endpoint's yes stands in the journal: after a restart the person alone is still asked.
        async with runtime(
            tmp_path, replies(script), world=world, authorities=authorities, policy=policy
        ) as opened:
            session = await opened.open(name)
            await session.clear(call, person)
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [one.question.request.function for one in first.asked] == ["t.read", "t.write"]
    assert [text for _, _, text in world.done] == ([] if not endpoint else ["a", "b"] if person else ["a"])
    assert [one.text("to") for one in clearances(records, "ask")] == ["endpoint", "endpoint"] + (
        ["person"] if endpoint else []
    )


def test_the_model_sees_nothing_of_a_question(tmp_path: Path) -> None:
    """Contexts of a run in which a person said yes are those of a run in which nobody was asked."""

    def contexts(folder: str, policy: str, answers: int) -> list[object]:
        model = ScriptedModel(replies(ONE))

        async def main() -> None:
            async with runtime(tmp_path / folder, replies(ONE), model=model, policy=policy) as opened:
                session = await opened.open()
                said = await session.say("Go")
                for _ in range(answers):
                    await session.clear(await question(session), True)
                await session.answer(said.n)

        asyncio.run(main())
        return [one.messages for one in model.asked]

    assert contexts("asked", ASKS, 1) == contexts("free", "", 0)


def test_a_forged_answer_is_noticed(tmp_path: Path) -> None:
    """A journal in which a call that was denied runs does not verify."""
    play(tmp_path, ONE, [False])
    journal = next(tmp_path.glob("sessions/*/journal.md"))

    def change(records: list[Record]) -> list[Record]:
        return [
            with_fields(one, {**one.fields, "allow": True}) if one.kind == "gate" else one for one in records
        ]

    at = next(one.n for one in read_journal(journal).records if one.kind == "gate")
    rewrite(journal, change)
    assert mismatch(journal).n == at


def test_a_tainted_agent_at_impact_two_is_asked_about(tmp_path: Path) -> None:
    script = {"/": ["```web.fetch\npage\n```", "```t.destroy\nx\n```", "Done."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), host=FakeHost(more=True)) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            await session.clear(await question(session), False)
            await session.answer(said.n)
            return session.journal

    (asked,) = clearances(replay(asyncio.run(main()), verify=True).records, "ask")
    assert asked.text("rule") == "provenance"
    assert asked.fields["read"] == ["tool:web.fetch"]
