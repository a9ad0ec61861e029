"""Whoever changes what the gate or a person is said to have decided is found out, field by field.

Three sessions have every kind of decision in them: allowed and denied for each reason, asked of a person and of an
endpoint, in a dialogue, in a plan's steps, and about a module that an agent wrote. Each of their `gate` and
`clearance` records is forged in each field, the chain of digests is made right again, and verification has to name
that very record.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import ReplayMismatch
from iact.core.gate.gate import Answer
from iact.core.journal.file import read_blob
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from iact.core.tree.apply import apply, read_tree
from iact.core.tree.tree import Tree
from tests.core.session.fakes import FakeHost, World, replies, runtime
from tests.core.session.test_clearance import Endpoint, question
from tests.core.session.test_control import until
from tests.core.session.test_module_loader import GrowingHost, deploy
from tests.core.session.test_verify import mismatch, rewrite
from tests.records import with_fields

POLICY = """
[scope.default]
functions = ["*"]
clearance = ["t.write"]
[[scope.default.rate]]
function = "t.fail"
calls = 1
per = 3600
[[scope.default.require]]
function = "web.fetch"
parameter = "text"
hosts = ["example.org"]
otherwise = "deny"
"""

PLAN = """\
goal: g
steps:
  - {id: page, call: web.fetch, params: {text: "example.org"}}
  - {id: look, call: t.read, refs: {text: {step: page}}}
  - {id: keep, call: t.destroy, refs: {text: {step: look}}}
"""

SCRIPT = {
    "/": [
        "```t.write\nfirst\n```\n```t.read\na\n```\n```t.read\nb\n```",
        "```t.fail\nx\n```\n```t.fail\ny\n```\n```web.fetch\nelsewhere.example\n```",
        f"{deploy('weather')}",
        "```weather.forecast\nRome\n```",
        f"```PLAN p\n{PLAN}```",
        "```t.read\nbig:40000\n```\n~~~t.write text=$read_3\n~~~",
        "```CALL reader intent=0\nRead.\n```",
        "Done.",
    ],
    "/reader": ["```t.read\nc\n```\n```t.write\nd\n```", "Read."],
}


class BothHost(GrowingHost):
    """A catalogue that grows, and has more than the module `t`."""

    def __init__(self) -> None:
        FakeHost.__init__(self, more=True)
        self.added, self.counts = {}, {}


async def answers(session: Session, record: int, *given: tuple[bool, JSON]) -> None:
    """Answer the questions that a person is asked, one after the other."""
    known = record
    for allow, remember in given:
        known = await question(session, known)
        await session.clear(known, allow, remember)


def person(data: Path) -> Path:
    """A person allows and remembers, denies, and lets time pass."""

    async def main() -> Path:
        world, host, authorities = World(), BothHost(), Authorities(seconds=600)
        async with runtime(
            data, replies(SCRIPT), world=world, host=host, policy=POLICY, authorities=authorities
        ) as it:
            session = await it.open(intent=2)
            said = await session.say("Go")
            await answers(session, said.n, (True, "call"), (False, None), (True, {"function": "t.write"}))
            await session.answer(said.n)
        late = Authorities(seconds=0.01)
        script = {**SCRIPT, "/": [*SCRIPT["/"], "```t.destroy\nagain\n```", "Over."]}
        async with runtime(data, replies(script), host=host, policy=POLICY, authorities=late) as it:
            session = await it.open(session.id)
            await session.ask("More")
            return session.journal

    return asyncio.run(main())


def endpoint(data: Path) -> Path:
    """An endpoint says yes, and then no."""

    class Moody(Endpoint):
        async def ask(self, request: object) -> Answer:
            self.asked.append(request)  # type: ignore[arg-type]
            return Answer(len(self.asked) % 3 > 0, "It depends.")

    async def main() -> Path:
        authorities = Authorities(endpoint=Moody(True))
        async with runtime(
            data, replies(SCRIPT), host=BothHost(), policy=POLICY, authorities=authorities
        ) as it:
            session = await it.open(intent=2)
            await session.ask("Go")
            return session.journal

    return asyncio.run(main())


def both(data: Path) -> Path:
    """What an endpoint allows is put to a person, where a rule asks."""

    async def main() -> Path:
        authorities = Authorities(endpoint=Endpoint(True), both=True)
        async with runtime(
            data, replies(SCRIPT), host=BothHost(), policy=POLICY, authorities=authorities
        ) as it:
            session = await it.open(intent=2)
            said = await session.say("Go")
            known = said.n
            for allow in (True, False, True):
                known = await _next_question(session, known)
                await session.clear(known, allow)
            await session.answer(said.n)
            return session.journal

    return asyncio.run(main())


async def _next_question(session: Session, known: int) -> int:
    def asked() -> list[Record]:
        return [one for one in session.records(known) if one.text("to") == "person"]

    await until(lambda: bool(asked()))
    return asked()[0].n


SESSIONS = {"person": person, "endpoint": endpoint, "both": both}


@pytest.fixture(scope="module", params=SESSIONS)
def journal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = SESSIONS[request.param](tmp_path_factory.mktemp(request.param))
    replay(path, verify=True)
    return path


ANSWERED = {"allow", "remember", "then"}
"""What somebody answered is an outcome; the gate's decision after it is then another."""


def forgeries(record: Record) -> Iterator[tuple[str, Record]]:
    """The record with one thing changed, and the name of that."""
    fields = dict(record.fields)
    for name, value in fields.items():
        for other in [one for one in _others(value) if json.dumps(one) != json.dumps(value)]:
            yield name, with_fields(record, {**fields, name: other})
        yield name, with_fields(record, {one: fields[one] for one in fields if one != name})
    for name in ("endpoint", "ask", "then", "remember", "attached", "status", "anything"):
        if name not in fields:
            for made in (True, 1, "cancelled"):
                yield name, with_fields(record, {**fields, name: made})
    yield "body", dataclasses.replace(record, body="Allowed, I swear.")
    yield "at", dataclasses.replace(record, at="yesterday")
    yield "at", dataclasses.replace(record, at="")


def _others(value: JSON) -> list[JSON]:
    match value:
        case bool():
            return [not value, int(value), str(value)]
        case int() | float():
            return [value + 1, value - 1, value + 0.5, str(value), True]
        case str():
            return [value + " ", "", "user", "impact", "endpoint", "person", None]
        case list():
            return [[*value, "tool:x.y"], value[1:] if value else None, None]
        case dict():
            return [{**value, "more": "x"}, {}, None] if value else [{"more": "x"}, None]
        case _:
            return [1]


def possible(record: Record, name: str, forged: Record) -> bool:
    """Whether a forged record tells of another outcome that there could have been."""
    value = forged.fields.get(name)
    if record.text("op") == "ask":
        is_time = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        return name == "seconds" and is_time
    if record.text("op") != "answer":
        return False
    if name == "reason":
        return record.text("by") == "endpoint" and isinstance(value, str)
    return name in ANSWERED


def named(records: list[Record], journal: Path) -> int | None:
    """The record that verification names, or None."""
    try:
        read_tree(records, lambda digest: read_blob(journal.parent, digest), strict=True)
    except ReplayMismatch as error:
        return error.n
    return None


def test_a_forged_field_of_a_decision_or_of_a_question_is_named(journal: Path) -> None:
    records = list(replay(journal).records)
    seen: set[str] = set()
    tree = folded(records, 0, journal)
    for record in records:
        for name, forged in forgeries(record) if record.kind in ("gate", "clearance") else ():
            found = refused(tree, forged)
            if found is None:
                tree = folded(records, record.n - 1, journal)
                taken = [*records[: record.n - 1], forged, records[record.n]]
                # Of two calls of one function either can be decided first; then the call is named that was not.
                later = name == "action" and named(taken, journal) == record.n + 1
                assert later or possible(record, name, forged), (name, forged, record)
            else:
                assert found == record.n
                seen.add(f"{record.kind}.{name}")
        apply(tree, record)  # what was refused has left no trace
    assert seen >= {f"gate.{name}" for name in GATE} | {f"clearance.{name}" for name in QUESTION}


def folded(records: list[Record], count: int, journal: Path) -> Tree:
    """The tree after the first `count` records."""
    tree = Tree(strict=True, blobs=lambda digest: read_blob(journal.parent, digest))
    for record in records[:count]:
        apply(tree, record)
    return tree


def refused(tree: Tree, record: Record) -> int | None:
    """The record that is named when this one comes next; None if it is taken."""
    try:
        apply(tree, record)
    except ReplayMismatch as error:
        tree.agents[record.agent].step -= 1
        return error.n
    return None


GATE = ("allow", "by", "impact", "reason", "endpoint", "ask", "turn", "action", "function", "at")
QUESTION = ("rule", "impact", "why", "reason", "user", "params", "provenance", "read", "attached", "function")


def test_a_yes_that_nobody_gave_is_named_by_the_decision_that_follows(journal: Path) -> None:
    """Another answer is another outcome, so it is the decision on it that can't stand."""
    records = list(replay(journal).records)
    answered = [one for one in records if one.text("op") == "answer" and one.text("by") != "time"]
    assert answered
    for record in answered:
        allow = record.fields["allow"] is not True
        forged = with_fields(record, {**record.fields, "allow": allow})
        found = named([*records[: record.n - 1], forged, *records[record.n :]], journal)
        follows = next(one.n for one in records[record.n :] if one.kind in ("gate", "clearance"))
        assert found in (record.n, follows)


def test_a_decision_that_is_missing_is_named_by_what_rests_on_it(journal: Path) -> None:
    records = list(replay(journal).records)
    gates = [one for one in records if one.kind == "gate"]
    for gate in gates:
        rests = next(one for one in records[gate.n :] if one.agent == gate.agent and one.kind != "node")
        assert (rests.kind == "call") == (gate.fields["allow"] is True)
        assert named(_without(records, gate), journal) == rests.n


def _without(records: list[Record], gone: Record) -> list[Record]:
    """All others, with their numbers and steps as they were; but steps of the same agent close up."""
    found: list[Record] = []
    for one in records:
        if one.n > gone.n and one.agent == gone.agent:
            one = dataclasses.replace(one, step=one.step - 1)
        if one.n != gone.n:
            found.append(one)
    return found


@pytest.mark.parametrize("turned", [True, False])
def test_a_call_of_what_was_denied_is_named(journal: Path, turned: bool) -> None:
    """A call stands where there was a denial; or the denial stands where there was a call."""
    records = list(replay(journal).records)
    for gate in [one for one in records if one.kind == "gate" and one.fields["allow"] is not turned]:
        fields: dict[str, JSON] = {**gate.fields, "allow": turned}
        forged = with_fields(gate, fields)
        assert named([*records[: gate.n - 1], forged, *records[gate.n :]], journal) == gate.n
    for gate in [one for one in records if one.kind == "gate" and one.fields["allow"] is False]:
        result = next(one for one in records[gate.n :] if one.agent == gate.agent)
        made = with_fields(result, {**result.fields, "status": "ok", "media": "text/plain"})
        assert named([*records[: result.n - 1], made, *records[result.n :]], journal) == result.n


def test_the_impact_of_a_call_is_that_of_its_decision(journal: Path) -> None:
    records = list(replay(journal).records)
    for call in [one for one in records if one.kind == "call" and "impact" in one.fields]:
        for impact in _others(call.fields["impact"]):
            forged = with_fields(call, {**call.fields, "impact": impact})
            assert named([*records[: call.n - 1], forged, *records[call.n :]], journal) == call.n


def test_a_forged_chain_is_named_by_the_command_too(journal: Path, tmp_path: Path) -> None:
    """The same through a file whose digests were made right again."""
    records = list(replay(journal).records)
    copy = tmp_path / "journal.md"
    for name, blob in _blobs(journal).items():
        (tmp_path / "blobs").mkdir(exist_ok=True)
        (tmp_path / "blobs" / name).write_bytes(blob)
    for kind in ("gate", "clearance"):
        at = next(one for one in records if one.kind == kind and "reason" in one.fields)
        copy.write_bytes(journal.read_bytes())

        def change(all_records: list[Record], at: Record = at) -> list[Record]:
            forged = with_fields(at, {**at.fields, "reason": "Because."})
            return [*all_records[: at.n - 1], forged, *all_records[at.n :]]

        rewrite(copy, change)
        found = mismatch(copy)
        assert found.n == at.n
        assert 'says reason: "Because."; the core says reason: ' in str(found)


def _blobs(journal: Path) -> Mapping[str, bytes]:
    return {one.name: one.read_bytes() for one in (journal.parent / "blobs").iterdir()}
