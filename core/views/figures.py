"""What sessions did since this process began, and their current state, as figures for the person who runs a server.

They contain no text, no names of people and no session ids. Sums follow the records as they become durable, so nothing
else has to count. The current state is read on request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from iact.core.records.calls import Result
from iact.core.records.dialogue import Choose, Compress, Distill, Generation, Reply, Turn
from iact.core.records.parts import Tokens
from iact.core.records.plans import Ask
from iact.core.records.record import Record
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

BUCKETS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Upper limits of the groups in which durations of model calls are counted, in seconds; longer ones have their own
group."""


@dataclass(slots=True)
class ModelFigures:
    """Figures of one model. Tokens: newly read, read from a cache, written. `within`: turns by how long they took, as
    `BUCKETS`."""

    turns: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    seconds: float = 0.0
    within: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def take(self, usage: Tokens) -> None:
        """Count the tokens of a reply."""
        self.read += usage.prompt - usage.cached
        self.cached += usage.cached
        self.written += usage.completion

    def add(self, other: ModelFigures) -> None:
        """Add the counts of others."""
        self.turns += other.turns
        self.read += other.read
        self.cached += other.cached
        self.written += other.written
        self.seconds += other.seconds
        self.within = [one + more for one, more in zip(self.within, other.within, strict=True)]


@dataclass(slots=True)
class Figures:
    """Sums over the records written here. `calls`: of modules, by how they ended."""

    records: int = 0
    models: dict[str, ModelFigures] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def take(self, record: Record) -> None:
        """Count a record that has become durable."""
        self.records += 1
        match record.content:
            case Turn(generation=Generation() as written) | Reply(generation=Generation() as written):
                model = self._model(written.model)
                model.take(written.usage)
                model.turns += 1
                model.seconds += written.ms / 1000
                model.within[bisect_left(BUCKETS, written.ms / 1000)] += 1
            case Choose(model=name, usage=usage) | Ask(model=name, usage=usage):
                self._model(name).take(usage)
            case Compress(model=name, usage=usage) | Distill(model=name, usage=usage):
                self._model(name).take(usage)
            case Result(function=function, status=status, call=call) if "." in function:
                self.calls[status if call else "refused"] += 1
            case _:
                pass

    def add(self, other: Figures) -> None:
        """Add the counts of others."""
        self.records += other.records
        self.calls.update(other.calls)
        for name, model in other.models.items():
            self._model(name).add(model)

    def _model(self, name: str) -> ModelFigures:
        return self.models.setdefault(name, ModelFigures())


@dataclass(frozen=True, slots=True)
class Workload:
    """What is going on now. `sessions`: open ones; `at_work`: those of them that work; `questions`: waiting for a
    person; `modules`: running."""

    sessions: int = 0
    at_work: int = 0
    questions: int = 0
    modules: int = 0

    def __add__(self, other: Workload) -> Workload:
        return Workload(
            self.sessions + other.sessions,
            self.at_work + other.at_work,
            self.questions + other.questions,
            self.modules + other.modules,
        )


def workload(trees: Iterable[Tree], modules: int) -> Workload:
    """What is going on in open sessions. `modules`: how many are running."""
    sessions = at_work = questions = 0
    for tree in trees:
        sessions += 1
        at_work += bool(tree.at_work)
        waiting = sum(_questions(agent) for agent in tree.at_work.values())
        questions += len(tree.hosts.open) + len(tree.forms) + waiting
    return Workload(sessions, at_work, questions, modules)


def _questions(agent: Agent) -> int:
    asked = sum(one.asked > 0 and one.answer is None and one.asked_of == "person" for one in agent.actions)
    run = agent.plan.running if agent.plan is not None else None
    return asked + (run is not None and run.awaited and run.still)
