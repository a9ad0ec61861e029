"""Spans of recorded sessions of every version, of the examples, of random sessions that crash, and of forks at any record."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.journal import read_journal
from iact.core.records.kinds import FORMAT
from iact.core.stored.journals import read_records
from iact.faces.otel.span import Span, span_id, trace_id
from iact.faces.otel.spans import SpanFold, spans
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_random import Story, live
from tests.core.stored.test_fork import FULL, go_on, take
from tests.faces.otel.laws import check, check_tree
from tests.rounds import rounds

ROOT = Path(__file__).parents[3]
JOURNALS = sorted((ROOT / "tests" / "journals").glob("*/*/journal.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*/journal.md"))


def named(path: Path) -> str:
    return "/".join(path.parts[-3:-1])


def tree_of(made: Sequence[Span]) -> list[str]:
    """The spans as an indented list, in the order in which they began."""
    below: dict[str, list[Span]] = defaultdict(list)
    for one in sorted(made, key=lambda one: int(one.attributes["iact.record"])):  # type: ignore[arg-type]
        below[one.parent_id].append(one)

    def lines(parent: str, depth: int) -> list[str]:
        return [
            line
            for one in below[parent]
            for line in [
                "  " * depth + one.name + (f" ({one.error})" if one.error else ""),
                *lines(one.span_id, depth + 1),
            ]
        ]

    return lines("", 0)


@pytest.mark.parametrize("journal", [*JOURNALS, *EXAMPLES], ids=named)
def test_the_laws_hold_for_recorded_sessions(journal: Path) -> None:
    check(read_records(journal))


def test_there_are_journals_of_every_version() -> None:
    assert {one.parts[-3] for one in JOURNALS} == {"1.0", "1.1", "1.2", FORMAT}
    assert len(EXAMPLES) >= 10


def test_a_child_that_is_continued_has_a_span_for_each_piece_of_work() -> None:
    made = spans(read_records(ROOT / "tests" / "journals" / FORMAT / "tree" / "journal.md"))
    assert tree_of(made) == [
        "create_agent root",
        "  invoke_agent root",
        "    chat scripted",
        "    invoke_agent writer",
        "      chat scripted",
        "      execute_tool t.read",
        "      chat scripted",
        "      invoke_agent checker",
        "        chat scripted",
        "      execute_tool t.fail (ValueError)",
        "      chat scripted",
        "    execute_tool t.destroy (denied)",
        "    chat scripted",
        "    invoke_agent writer",
        "      chat scripted",
        "    chat scripted",
        "  invoke_agent root",
        "    chat scripted",
        "    invoke_agent writer",
        "      invoke_agent checker",  # a person spoke to it while its caller worked
        "        chat scripted",
        "      chat scripted",
        "      chat scripted",
        "    chat scripted",
    ]


def test_a_plan_its_planner_its_versions_and_its_judges() -> None:
    made = spans(read_records(ROOT / "examples" / "meeting" / "journal.md"))
    assert tree_of(made) == [
        "create_agent root",
        "  invoke_agent root",
        "    invoke_agent plan",
        "      invoke_workflow reflect",
        "        execute_tool meetings.check",
        "        chat scripted",
        "        chat scripted",
        "      plan plan",
        "        chat scripted",
        "      plan plan",
        "        chat scripted",
        "      invoke_workflow reflect",
        "        execute_tool meetings.create",
        "        chat scripted",
        "        execute_tool meetings.invite",
        "        chat scripted",
    ]
    invited = next(one for one in made if one.name.endswith("meetings.invite"))
    assert [event.name for event in invited.events] == [
        "iact.clearance.asked", "iact.clearance.answered", "iact.gate.verdict", "iact.call",
    ]  # fmt: skip
    assert invited.events[1].attributes == {"iact.clearance.allow": True, "iact.clearance.by": "user"}


def test_nothing_that_was_said_is_in_a_span_unless_it_is_asked_for() -> None:
    records = read_records(ROOT / "examples" / "meeting" / "journal.md")
    said = [
        line for one in records if one.kind != "module" for line in one.body.splitlines() if len(line) > 40
    ]
    assert said

    def text(*, content: bool) -> str:
        return json.dumps([one.to_json() for one in spans(records, content=content)], ensure_ascii=False)

    quoted = [json.dumps(line, ensure_ascii=False)[1:-1] for line in said]
    assert not [line for line in quoted if line in text(content=False)]
    kept = text(content=True)
    question = next(one.body for one in records if one.kind == "say")
    answer = records[-2].body
    assert question in kept
    assert answer in kept
    assert "ada@example.org" in kept


def test_ids_are_those_that_anybody_gets_and_are_as_opentelemetry_wants_them() -> None:
    # Traces that were exported once are found again by them, so they never change.
    assert trace_id("20260101-000000-aaaaaaaa") == "72c686e1ffd69998338bfe17aa5e39fa"
    assert span_id("20260101-000000-aaaaaaaa", 2, "/ invoke_agent 0") == "b8cb52a8c163583e"
    made = spans(read_records(EXAMPLES[0]))
    assert {(len(one.trace_id), len(one.span_id)) for one in made} == {(32, 16)}
    assert span_id("a", 1, "x") != span_id("a", 2, "x") != span_id("b", 2, "x")


@given(journal=st.sampled_from([*JOURNALS, *EXAMPLES]), data=st.data())
def test_what_has_ended_is_the_same_whatever_follows(journal: Path, data: st.DataObject) -> None:
    records = read_records(journal)
    n = data.draw(st.integers(1, len(records)))
    beginning, whole = spans(records[:n]), spans(records)
    check_tree(beginning)
    assert [one for one in beginning if one.end is not None] == list(
        whole[: sum(one.end is not None for one in beginning)]
    )
    began = {one.span_id: one for one in whole}
    for one in beginning:  # what goes on there ends later, and is the same span
        if one.end is None:
            then = began[one.span_id]
            assert (then.name, then.parent_id, then.start) == (one.name, one.parent_id, one.start)


def test_random_sessions_that_are_killed_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power fails here
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)
    met: Counter[str] = Counter()
    for seed in range(rounds(60)):
        story = Story(seed, tmp_path / str(seed))
        _, records = asyncio.run(live(story))
        made = check(records)
        met.update(one.error for one in made)
        met["lives"] += story.lives
        met["below the root's child"] += any(
            str(one.attributes["gen_ai.agent.id"]).count("/") > 2 for one in made
        )
        shutil.rmtree(story.data)
    assert min(met[one] for one in ("denied", "interrupted", "pause", "below the root's child")) > 0, met
    assert met["lives"] > rounds(60)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a session three agents wide."""

    async def main() -> Path:
        async with runtime(tmp_path_factory.mktemp("recorded"), replies(FULL), chunk=4096) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal.parent

    return asyncio.run(main())


@pytest.mark.parametrize("run", [False, True], ids=["drops", "runs"])
def test_a_fork_at_any_record_has_a_trace_of_its_own_and_a_link(
    recorded: Path, tmp_path: Path, run: bool
) -> None:
    records = read_journal(recorded).records
    source = spans(records)
    for at in range(1, len(records) + 1):
        made = take(tmp_path / str(at) / "sessions", recorded, at, run=run)
        after = go_on(tmp_path / str(at), made.session, World())
        forked = check(after)
        assert {one.trace_id for one in forked} == {trace_id(made.session)}
        root = forked[0]
        assert [link.trace_id for link in root.links] == [source[0].trace_id]
        began = {one.span_id for one in source}
        links = [link for one in forked for link in one.links]
        assert {link.span_id for link in links} <= began
        under_way = [one for one in spans(records[:at]) if one.end is None]
        assert len(links) == 1 + (len(under_way) if run else 0), at


def test_a_fork_of_a_fork_is_linked_to_the_first(recorded: Path, tmp_path: Path) -> None:
    first = take(tmp_path / "sessions", recorded, 5)
    second = take(tmp_path / "sessions", first.directory, None)
    made = spans(read_records(second.directory / "journal.md"))
    assert made[0].trace_id == trace_id(second.session)
    assert [link.trace_id for link in made[0].links] == [trace_id(first.session)]


def test_a_session_that_ends_in_the_middle_says_what_goes_on() -> None:
    records = read_records(ROOT / "examples" / "meeting" / "journal.md")
    call = next(one for one in records if one.kind == "call" and one.text("function") == "meetings.check")
    going_on = [one for one in spans(records[: call.n]) if one.end is None]
    assert [one.name for one in going_on] == [
        "invoke_agent root", "invoke_agent plan", "invoke_workflow reflect", "execute_tool meetings.check",
    ]  # fmt: skip
    assert [one.to_json()["end"] for one in going_on] == [None] * 4


def test_records_of_kinds_that_are_not_known_change_nothing() -> None:
    records = read_records(EXAMPLES[0])
    fold = SpanFold()
    told = [span for record in records for span in fold.take(record)]
    assert list(spans(records)) == told
    assert not list(fold.under_way())
    assert spans([]) == ()
