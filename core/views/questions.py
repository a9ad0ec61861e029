"""What a session asks a person: which questions wait for an answer, as a fold over its records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from iact.core.gate.nobody import unattended
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Result
from iact.core.records.content import Content
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk
from iact.core.records.record import Record
from iact.core.tree.ahead import MOST
from iact.core.tree.tree import Tree


def is_question(record: Record) -> bool:
    """Whether a record asks a person."""
    if isinstance(record.content, HostAsk | FormAsk):
        return True
    return isinstance(record.content, ClearanceAsk) and record.content.to == "person"


@dataclass(frozen=True, slots=True)
class Undecided:
    """A question that no person was available to answer, so that the policy did."""

    question: Record
    """Its content is a `ClearanceAsk`, a `HostAsk` or a `FormAsk`."""
    allowed: bool
    """What the policy said. Without a rule: no."""


def undecided_since(records: Sequence[Record], since: int) -> list[Undecided]:
    """Return what was decided without a person after record `since`, oldest first. `records`: all of the session's."""
    undecided: list[Undecided] = []
    for record in records[since:]:
        match record.content:
            case (
                ClearanceAnswer(by="policy", ask=ask, allow=allow)
                | HostAnswer(by="policy", ask=ask, allow=allow)
            ):
                undecided.append(Undecided(records[ask - 1], allow))
            case FormAnswer(by="policy", ask=ask):
                # No policy fills in a form.
                undecided.append(Undecided(records[ask - 1], False))
    return undecided


def held_for_a_person(tree: Tree, question: Record) -> bool:
    """Whether the policy lets the call of a question wait for a person, although nobody can be asked now."""
    asked = question.content
    if not isinstance(asked, ClearanceAsk):
        return False
    return unattended(tree.policy, asked.function, asked.params, tree.spent) == "hold"


def alike(one: Content, other: Content) -> bool:
    """Whether two questions about calls are the same to a person: same function, same reason, same origin.

    The origin consists of the labels of everything the agent had read, and of everything each argument was made of.
    """
    return (
        isinstance(one, ClearanceAsk)
        and isinstance(other, ClearanceAsk)
        and (one.to, one.function, one.rule, one.impact, one.user)
        == (other.to, other.function, other.rule, other.impact, other.user)
        and _origin(one) == _origin(other)
    )


def _origin(asked: ClearanceAsk) -> frozenset[str]:
    return frozenset(asked.read).union(*asked.provenance.values())


class OpenQuestions:
    """The open questions of a session, oldest first. It must be given every record, in order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._waiting: list[Record] = []
        for record in records:
            self.add(record)

    @property
    def waiting(self) -> tuple[Record, ...]:
        """Their records; the content of each is a `ClearanceAsk`, a `HostAsk` or a `FormAsk`."""
        return tuple(self._waiting)

    def together(self, besides: Container[int] = ()) -> tuple[Record, ...]:
        """The oldest open question, and those that can be answered with it. `besides`: records to leave out."""
        left = [one for one in self._waiting if one.n not in besides]
        return tuple(one for one in left if one is left[0] or alike(left[0].content, one.content))[:MOST]

    def add(self, record: Record) -> None:
        """Take the next record: it may ask (or ask again), answer, or end the call that a question was about."""
        place = _place(record)
        if place is not None:
            self._waiting = [one for one in self._waiting if _place(one) != place]
        if is_question(record):
            self._waiting.append(record)


def _place(record: Record) -> tuple[str, int, int] | None:
    """The action that a question, its answer or a result is about; for a host or a form, the question itself."""
    content = record.content
    if isinstance(content, HostAsk | FormAsk):
        return "", record.n, 0
    if isinstance(content, HostAnswer | FormAnswer):
        return "", content.ask, 0
    if isinstance(content, ClearanceAsk | ClearanceAnswer | Result):
        return record.agent, content.turn, content.action
    return None
