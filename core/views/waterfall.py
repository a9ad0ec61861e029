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
    """One span."""

    agent: str
    kind: SpanKind
    begin: float
    """Seconds since the first record."""
    end: float | None
    """Seconds since the first record; None while it goes on."""
    n: int
    """The record that reports it."""
    label: str
    """A function, a model, or the agent waited for."""
    critical: bool = False
    """Whether an answer waited for it."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """What the agents of a session did when."""

    started: str
    """The time of the first record."""
    seconds: float
    """From the first to the last record."""
    agents: tuple[str, ...]
    """In order of creation."""
    spans: tuple[Stretch, ...]
    """All, in the order in which they ended; unfinished ones come last."""

    @property
    def critical(self) -> float:
        """Seconds of work on the critical path."""
        return sum((span.end or self.seconds) - span.begin for span in self.spans if span.critical)


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
        """Take in the next record."""
        at = datetime.fromisoformat(record.at)
        if self.first is None:
            self.first = at
            self.started = record.at
        # A clock may have been set back: time never goes backwards here.
        self.now = max(self.now, (at - self.first).total_seconds())

        now = self.now
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

        # From here on the agent waits, for whatever ends next.
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
        """Take in an agent's reply. One to the user is an answer; another one ends the wait of its caller."""
        path = record.agent
        if reply.generation is not None:
            begin = self.now - reply.generation.ms / 1000
            self._ended(path, "model", begin, record.n, reply.generation.model)

        if reply.to == "user":
            if self.said is not None:
                self.answers.append((self.said, self.now))
            self.said = None
            return

        child_reply = (path, _Reply(self.called.get(path, 0.0), self.now))
        self.replies[record.n] = child_reply
        wait = self.waits.pop((reply.to, path), None)
        if wait is not None:
            self.followed[len(self.spans)] = child_reply
            self._ended(reply.to, "wait", wait.begin, wait.n, path)
            self.last[reply.to] = self.now

    def _selected(self, path: str, took: Sequence[int], n: int, function: str) -> None:
        """End a WAIT: it waited for the last of the replies that it takes."""
        replies = [self.replies[reply] for reply in took if reply in self.replies]
        if replies:
            self.followed[len(self.spans)] = max(replies, key=lambda child_reply: child_reply[1].at)

        label = ", ".join(child for child, _ in replies) or function
        self._ended(path, "wait", self.last.get(path, self.now), n, label)

    def _paused(self, path: str, begun: float, n: int) -> None:
        for agent in self._below(path):
            self._ended(agent, "paused", begun, n, "")

    def _below(self, path: str) -> Iterator[str]:
        """An agent, and all below it."""
        prefix = path.rstrip("/") + "/"
        yield from (agent for agent in self.agents if agent == path or agent.startswith(prefix))

    def told(self) -> Waterfall:
        """The complete waterfall, with the critical paths of the root's answers and of its current work."""
        spans = [*self.spans, *self._under_way()]
        critical = _Critical(spans, self.followed)
        for begin, end in self.answers:
            critical.walk("/", end, begin)

        marked = tuple(
            replace(span, critical=True) if place in critical.places else span
            for place, span in enumerate(spans)
        )
        return Waterfall(self.started, self.now, tuple(self.agents), marked)

    def _under_way(self) -> Iterator[Stretch]:
        """The spans that have not ended."""
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
    """Finds critical paths."""

    def __init__(self, spans: Sequence[Stretch], followed: dict[int, tuple[str, _Reply]]) -> None:
        self.places: set[int] = set()
        """Positions among the spans."""
        self._followed = followed
        self._spans = spans
        self._of: defaultdict[str, list[int]] = defaultdict(list)
        """By agent: the positions of its spans that have ended, in that order."""
        for place, span in enumerate(spans):
            if span.end is not None and span.end > span.begin and span.kind != "paused":
                self._of[span.agent].append(place)

    def walk(self, agent: str, end: float, begin: float) -> None:
        """Find what an agent's reply at `end` waited for, back to `begin`."""
        unread = [(agent, end, begin)]
        while unread:
            agent, end, begin = unread.pop()
            while (place := self._before(agent, end, begin)) is not None:
                end = self._spans[place].begin

                child_reply = self._followed.get(place)
                if child_reply is None:
                    self.places.add(place)
                    continue

                # The agent waited for a child: the path goes through the child, and on from before it was called.
                child, reply = child_reply
                unread.append((child, reply.at, reply.called))
                end = min(end, reply.called)

    def _before(self, agent: str, end: float, begin: float) -> int | None:
        """The agent's span that ended last before `end`, the longest of several; None if nothing happened since
        `begin`."""
        places = self._of[agent]
        best_place: int | None = None
        best: Stretch | None = None
        for index in range(_last(places, self._spans, end + _SLACK), -1, -1):
            span = self._spans[places[index]]
            span_end = span.end or 0.0

            # The spans are in the order of their ends, so none before this one can be better.
            ended_earlier = best is not None and span_end < (best.end or 0.0) - _SLACK
            if ended_earlier or span_end < begin:
                break

            fits = begin - _SLACK <= span.begin < end
            if fits and (best is None or span.begin < best.begin):
                best_place = places[index]
                best = span
        return best_place


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
