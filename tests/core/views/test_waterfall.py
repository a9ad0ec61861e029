"""The spans of a session are what its agents did, and its critical paths account for all of the time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.records.record import Record, timestamp
from iact.core.views.waterfall import Stretch, waterfall
from iact.examples import EXAMPLES, Example
from tests.records import raw_record

START = datetime(2026, 5, 4, 3, tzinfo=UTC)


@dataclass(frozen=True)
class Work:
    """What an agent does, one after the other: each a model's turn and then tools at once, or children.

    `items`: seconds of the turn; then seconds of each tool, or the work of each child; then whether it waits at once
    for a single child, as CALL does.
    """

    items: tuple[tuple[int, tuple[int, ...] | tuple[Work, ...]], ...]
    last: int


def works(depth: int) -> st.SearchStrategy[Work]:
    seconds = st.integers(1, 9)
    tools = st.lists(seconds, min_size=1, max_size=3).map(tuple)
    after: st.SearchStrategy[tuple[int, ...] | tuple[Work, ...]] = tools
    if depth:
        after = tools | st.lists(works(depth - 1), min_size=1, max_size=3).map(tuple)
    items = st.lists(st.tuples(seconds, after), max_size=3).map(tuple)
    return st.builds(Work, items, seconds)


@dataclass
class Stage:
    """Plays work, and writes down what records would tell of it, each with its moment."""

    told: list[tuple[float, int, str, str, dict[str, JSON]]] = field(default_factory=list)
    children: int = 0

    def tell(self, at: float, agent: str, kind: str, **fields: JSON) -> int:
        """Gives a key by which a later record can name this one."""
        self.told.append((at, len(self.told), agent, kind, fields))
        return len(self.told) - 1

    def play(self, work: Work, agent: str, to: str, at: float) -> tuple[float, int]:
        """When it has replied, and the key of the reply."""
        for seconds, after in work.items:
            at += seconds
            self.tell(at, agent, "turn", ms=seconds * 1000)
            if isinstance(after[0], Work):
                at = self._call([one for one in after if isinstance(one, Work)], agent, at)
            else:
                calls = [(self.tell(at, agent, "call", function="t.do"), one) for one in after]
                at += max(one for one in after if isinstance(one, int))
                for key, _ in calls:
                    self.tell(at, agent, "result", function="t.do", call=key)
        at += work.last
        return at, self.tell(at, agent, "reply", ms=work.last * 1000, to=to)

    def _call(self, called: list[Work], agent: str, at: float) -> float:
        replies = []
        for one in called:
            self.children += 1
            path = f"{agent.rstrip('/')}/c{self.children}"
            self.tell(at, path, "spawn", caller=agent)
            how = "CALL" if len(called) == 1 else "CALL_ASYNC"
            self.tell(at, agent, "call", function=how, to=path)
            replies.append(self.play(one, path, agent, at))
        at = max(moment for moment, _ in replies)
        if len(called) > 1:
            self.tell(at, agent, "select", function="WAIT", took=[key for _, key in replies])
        return at

    def records(self) -> list[Record]:
        # Of one moment: what was told first comes first.
        order = sorted(self.told)
        number = {key: n for n, (_, key, *_) in enumerate(order, 1)}

        def named(value: JSON) -> JSON:
            return (
                [number[one] for one in value if isinstance(one, int)] if isinstance(value, list) else value
            )

        found = []
        for n, (at, _, agent, kind, fields) in enumerate(order, 1):
            read = {key: named(value) for key, value in fields.items()}
            if isinstance(fields.get("call"), int):
                read["call"] = number[int(str(fields["call"]))]
            moment = timestamp(START + timedelta(seconds=at))
            found.append(raw_record(n, moment, kind, agent, n, fields={**LEAST.get(kind, {}), **read}))
        return found


LEAST: dict[str, dict[str, JSON]] = {
    "turn": {
        "model": "m", "role": "smart", "context": "", "took": [], "seen": {"now": ""}, "first_ms": 0, "finish": "stop",
        "usage": {"prompt": 1, "cached": 0, "completion": 1},
    },
    "call": {"turn": 1, "action": 0, "args": ""},
    "result": {"turn": 1, "action": 0, "status": "ok"},
    "select": {"turn": 1, "action": 0},
}  # fmt: skip
LEAST["reply"] = {**LEAST["turn"], "status": "ok"}


def played(work: Work) -> tuple[list[Record], float]:
    """The records of a session in which the root does `work`, and how long that takes."""
    stage = Stage()
    stage.tell(0, "/", "say")
    end, _ = stage.play(work, "/", "user", 0)
    return stage.records(), end


@given(works(2))
def test_the_critical_path_accounts_for_all_of_the_time(work: Work) -> None:
    records, seconds = played(work)
    told = waterfall(records)
    assert told.seconds == pytest.approx(seconds)
    critical = sorted((one.begin, one.end or 0.0) for one in told.spans if one.critical)
    assert told.critical == pytest.approx(seconds)
    assert critical[0][0] == pytest.approx(0)
    for (_, end), (begin, _) in itertools.pairwise(critical):
        assert begin == pytest.approx(end)


@given(works(2), st.data())
def test_what_has_ended_stays_as_it_is(work: Work, data: st.DataObject) -> None:
    records, _ = played(work)
    told, n = waterfall(records), data.draw(st.integers(0, len(records)))
    before = waterfall(records[:n])

    def ended(spans: Iterator[Stretch]) -> list[tuple[object, ...]]:
        return [(one.agent, one.kind, one.begin, one.end, one.n) for one in spans if one.end is not None]

    early = ended(iter(before.spans))
    assert ended(iter(told.spans))[: len(early)] == early
    assert all(0 <= one.begin <= (told.seconds if one.end is None else one.end) for one in told.spans)
    assert all(one.end is None or one.end <= told.seconds for one in told.spans)
    going = [one for one in before.spans if one.end is None]
    assert all(one.begin <= before.seconds for one in going)
    assert not [one for one in told.spans if one.end is None]


@given(works(1))
def test_every_turn_and_every_call_is_a_span_once(work: Work) -> None:
    records, _ = played(work)
    spans = waterfall(records).spans
    told = sorted(one.n for one in spans if one.kind in ("model", "tool"))
    wanted = sorted(one.n for one in records if one.kind in ("turn", "reply", "result"))
    assert told == wanted


def test_approvals_pauses_and_what_goes_on() -> None:
    def at(n: int, seconds: float, agent: str, kind: str, **fields: JSON) -> Record:
        moment = timestamp(START + timedelta(seconds=seconds))
        return raw_record(n, moment, kind, agent, n, fields={**LEAST.get(kind, {}), **fields})

    asked: dict[str, JSON] = {
        "turn": 2, "action": 0, "function": "t.do", "rule": "clearance", "impact": 2, "why": "", "reason": "",
        "user": "u", "params": {}, "provenance": {}, "read": [],
    }  # fmt: skip
    records = [
        at(1, 0, "/", "say"),
        at(2, 1, "/", "turn", ms=1000),
        at(3, 1, "/", "clearance", op="ask", to="person", **asked),
        at(4, 5, "/", "clearance", op="answer", turn=2, action=0, function="t.do", ask=3, allow=True, by="user", reason=""),
        at(5, 5, "/", "call", function="t.do"),
        at(6, 6, "/", "control", op="pause", by="user"),
        at(7, 7, "/", "result", function="t.do", call=5),
        at(8, 9, "/", "control", op="resume", by="user"),
        at(9, 10, "/", "reply", ms=1000, to="user"),
        at(10, 20, "/", "say"),
        at(11, 21, "/", "turn", ms=500),
        at(12, 21, "/a", "spawn", caller="/"),
        at(13, 21, "/", "call", function="CALL", to="/a"),
        at(14, 22, "/a", "control", op="pause", by="user"),
        at(15, 23, "/a", "call", function="t.do"),
    ]  # fmt: skip
    told = waterfall(records)
    assert [(one.agent, one.kind, one.begin, one.end, one.critical) for one in told.spans] == [
        ("/", "model", 0, 1, True),
        ("/", "approval", 1, 5, True),
        ("/", "tool", 5, 7, True),
        ("/", "paused", 6, 9, False),
        ("/", "model", 9, 10, True),
        ("/", "model", 20.5, 21, False),
        ("/a", "tool", 23, None, False),
        ("/", "wait", 21, None, False),
        ("/a", "paused", 22, None, False),
    ]
    assert told.agents == ("/", "/a")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_recorded_sessions_are_told_too(example: Example) -> None:
    told = waterfall(read_journal(example.folder).records)
    assert 0 < told.critical <= told.seconds
    assert not [one for one in told.spans if one.end is None and one.kind != "paused"]
