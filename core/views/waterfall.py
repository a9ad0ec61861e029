"""What each agent of a session did when, and which parts the session's answers waited for, from its records alone.

A span is a stretch of time in which an agent's model wrote, one of its tools ran, it waited for a child or for a
person, or it was paused. The critical path of an answer is found from its end: the span that ended last before it, the
span that ended last before that one began, and so on. Where an agent waited for a child, the path goes through the
child's work, from its reply back to the moment of the call. So the path names what would have had to be faster for an
earlier answer (J. E. Kelley and M. R. Walker, Critical-path planning and scheduling, 1959).

Records say when something ended, and for a model's text and most calls how long it took. A wait begins with the agent's
previous record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Result, Select
from iact.core.records.control import Pause, Resume
from iact.core.records.dialogue import Compress, Discard, Reply, Say, Spawn, Turn
from iact.core.records.plans import Ask, Fire
from iact.core.records.record import Record
from iact.core.records.session import Close

SpanKind = Literal["model", "tool", "wait", "approval", "paused"]

_SLACK: Final = 0.02
"""By how many seconds a span may seem to begin before the end of its predecessor, because milliseconds are rounded."""
_WAITS: Final = frozenset({"CALL", "PLAN"})
"""Actions after which an agent waits for its callee."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One span. `begin`, `end`: seconds since the first record; `end` is None while it goes on.

    `n`: the record that reports it; `label`: a function, a model, or the agent waited for.
    """

    agent: str
    kind: SpanKind
    begin: float
    end: float | None
    n: int
    label: str
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All spans, in the order in which they ended; unfinished ones come last. `agents`: in order of creation.

    `started`: the time of the first record; `seconds`: from the first to the last record.
    """

    started: str
    seconds: float
    agents: tuple[str, ...]
    spans: tuple[Stretch, ...]

    @property
    def critical(self) -> float:
        """Seconds of work on the critical path."""
        return sum((one.end or self.seconds) - one.begin for one in self.spans if one.critical)


def waterfall(records: Iterable[Record]) -> Waterfall:
    """What the agents did when. Spans that have ended don't change with later records."""
    read = _Read()
    for record in records:
        read.take(record)
    return read.told()


@dataclass(frozen=True, slots=True)
class _Reply:
    """A child's reply: when it was called, and when it replied."""

    called: float
    at: float


@dataclass(slots=True)
class _Wait:
    """A wait of an agent for its callee."""

    begin: float
    n: int
    to: str


@dataclass(slots=True)
class _Read:
    """What was found in the records so far."""

    first: datetime | None = None
    started: str = ""
    now: float = 0.0
    agents: dict[str, None] = field(default_factory=dict)
    spans: list[Stretch] = field(default_factory=list)
    followed: dict[int, tuple[str, _Reply]] = field(default_factory=dict)
    """By the position of a wait among the spans: the reply that ended it."""
    calls: dict[int, tuple[str, float, str]] = field(default_factory=dict)
    asked: dict[int, tuple[str, float, str]] = field(default_factory=dict)
    waits: dict[tuple[str, str], _Wait] = field(default_factory=dict)
    """By agent and child."""
    called: dict[str, float] = field(default_factory=dict)
    """When an agent was last called."""
    replies: dict[int, tuple[str, _Reply]] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    """When an agent wrote its last record."""
    pauses: dict[str, tuple[float, int]] = field(default_factory=dict)
    said: float | None = None
    """The time since which the root has something to answer."""
    answers: list[tuple[float, float]] = field(default_factory=list)
    """Times from the user's message to the root's reply."""

    def take(self, record: Record) -> None:
        at = datetime.fromisoformat(record.at)
        if self.first is None:
            self.first, self.started = at, record.at
        now = self.now = max(self.now, (at - self.first).total_seconds())
        path = record.agent
        self.agents.setdefault(path)
        match record.content:
            case Say():
                self.said = now if self.said is None else self.said
            case Turn(generation=generation):
                self._ended(path, "model", now - generation.ms / 1000, record.n, generation.model)
            case Reply() as reply:
                self._replied(record, reply)
            case Discard() | Compress() | Ask():
                label = record.text("model")
                self._ended(path, "model", self.last.get(path, now), record.n, label)
            case Call(to=to, function=function) as call:
                if to:
                    self._calls(path, to, function in _WAITS, record.n)
                elif call.impact is not None or "." in function:
                    self.calls[record.n] = (path, now, function)
            case Fire(to=to) if to:
                self._calls(path, to, True, record.n)
            case Result(call=call, function=function) if call in self.calls:
                _, begun, _ = self.calls.pop(call)
                self._ended(path, "tool", begun, record.n, function)
            case Select(took=took, function=function):
                self._selected(path, took, record.n, function)
            case ClearanceAsk(to="person", function=function):
                self.asked[record.n] = (path, now, function)
            case ClearanceAnswer(ask=ask, function=function) if ask in self.asked:
                _, begun, _ = self.asked.pop(ask)
                self._ended(path, "approval", begun, record.n, function)
            case Pause(node=""):
                self.pauses.setdefault(path, (now, record.n))
            case Resume(node="") if path in self.pauses:
                begun, n = self.pauses.pop(path)
                self._paused(path, begun, n)
            case Spawn():
                self.last[path] = now
            case Close():
                return
        if isinstance(record.content, Turn | Call | Result | Select | Fire | Ask | Compress | Discard):
            self.last[path] = now

    def _ended(self, path: str, kind: SpanKind, begin: float, n: int, label: str) -> None:
        self.spans.append(Stretch(path, kind, max(0.0, min(begin, self.now)), self.now, n, label))

    def _calls(self, path: str, to: str, waits: bool, n: int) -> None:
        self.called[to] = self.now
        self.agents.setdefault(to)
        if waits:
            self.waits[path, to] = _Wait(self.now, n, to)

    def _replied(self, record: Record, reply: Reply) -> None:
        path = record.agent
        if reply.generation is not None:
            begin = self.now - reply.generation.ms / 1000
            self._ended(path, "model", begin, record.n, reply.generation.model)
        if reply.to == "user":
            if self.said is not None:
                self.answers.append((self.said, self.now))
            self.said = None
            return
        told = path, _Reply(self.called.get(path, 0.0), self.now)
        self.replies[record.n] = told
        wait = self.waits.pop((reply.to, path), None)
        if wait is not None:
            self.followed[len(self.spans)] = told
            self._ended(reply.to, "wait", wait.begin, wait.n, path)
            self.last[reply.to] = self.now

    def _selected(self, path: str, took: Sequence[int], n: int, function: str) -> None:
        """End a WAIT: it waited for the last of the replies that it takes."""
        told = [self.replies[one] for one in took if one in self.replies]
        if told:
            self.followed[len(self.spans)] = max(told, key=lambda one: one[1].at)
        label = ", ".join(child for child, _ in told) or function
        self._ended(path, "wait", self.last.get(path, self.now), n, label)

    def _paused(self, path: str, begun: float, n: int) -> None:
        for agent in self._below(path):
            self._ended(agent, "paused", begun, n, "")

    def _below(self, path: str) -> Iterator[str]:
        prefix = path.rstrip("/") + "/"
        yield from (one for one in self.agents if one == path or one.startswith(prefix))

    def told(self) -> Waterfall:
        """The complete waterfall, with the critical paths of the root's answers and of its current work."""
        spans = [*self.spans, *self._under_way()]
        critical = _Critical(spans, self.followed)
        for begin, end in self.answers:
            critical.walk("/", end, begin)
        marked = tuple(
            replace(one, critical=True) if place in critical.found else one for place, one in enumerate(spans)
        )
        return Waterfall(self.started, self.now, tuple(self.agents), marked)

    def _under_way(self) -> Iterator[Stretch]:
        for n, (path, begun, function) in self.calls.items():
            yield Stretch(path, "tool", begun, None, n, function)
        for n, (path, begun, function) in self.asked.items():
            yield Stretch(path, "approval", begun, None, n, function)
        for (path, _), wait in self.waits.items():
            yield Stretch(path, "wait", wait.begin, None, wait.n, wait.to)
        for path, (begun, n) in self.pauses.items():
            for agent in self._below(path):
                yield Stretch(agent, "paused", begun, None, n, "")


class _Critical:
    """Finds critical paths. `found`: positions among the spans."""

    def __init__(self, spans: Sequence[Stretch], followed: dict[int, tuple[str, _Reply]]) -> None:
        self.found: set[int] = set()
        self._followed = followed
        self._spans = spans
        self._of: defaultdict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(spans):
            if one.end is not None and one.end > one.begin and one.kind != "paused":
                self._of[one.agent].append(place)

    def walk(self, agent: str, end: float, begin: float) -> None:
        """Find what an agent's reply at `end` waited for, back to `begin`."""
        left = [(agent, end, begin)]
        while left:
            agent, end, begin = left.pop()
            while (place := self._before(agent, end, begin)) is not None:
                span = self._spans[place]
                end = span.begin
                told = self._followed.get(place)
                if told is None:
                    self.found.add(place)
                else:
                    child, reply = told
                    left.append((child, reply.at, reply.called))
                    end = min(end, reply.called)

    def _before(self, agent: str, end: float, begin: float) -> int | None:
        """The agent's span that ended last before `end`, the longest of several; None if nothing happened since
        `begin`."""
        own = self._of[agent]
        best: int | None = None
        for at in range(_last(own, self._spans, end + _SLACK), -1, -1):
            place = own[at]
            span, found = self._spans[place], None if best is None else self._spans[best]
            if found is not None and (span.end or 0.0) < (found.end or 0.0) - _SLACK:
                break
            if (span.end or 0.0) < begin:
                break
            fits = begin - _SLACK <= span.begin < end
            if fits and (found is None or span.begin < found.begin):
                best = place
        return best


def _last(places: Sequence[int], spans: Sequence[Stretch], until: float) -> int:
    """The last of the ordered `places` whose span had ended by `until`; -1 if none had."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if (spans[places[middle]].end or 0.0) <= until:
            low = middle + 1
        else:
            high = middle
    return low - 1
