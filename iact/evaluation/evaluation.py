"""Runs an evaluation: each question in each way, one after another, until the budget is used up.

Each run is a separate session in the evaluation's data directory. A run that was interrupted continues where it stopped:
its model replies are in its journal, and are not requested again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from iact.core.errors import IactError, JournalError, UsageError
from iact.core.records.calls import Result
from iact.core.records.dialogue import Reply, Say
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.models import Models
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.evaluation.kept import EvalRun, Kept, RunKey
from iact.evaluation.questions import ASKED, EvalQuestion, answer_of, exact, f1
from iact.evaluation.ways import Arm
from iact.faces import conversation
from iact.settings import Settings
from iact.wiring import open_runtime


@dataclass(frozen=True, slots=True)
class Budget:
    """The total budget of an evaluation, including what was used before. None means unlimited."""

    money: float | None = None
    tokens: int | None = None

    def left(self, kept: Kept) -> Budget:
        """The remaining budget."""
        return Budget(
            None if self.money is None else self.money - kept.money,
            None if self.tokens is None else self.tokens - kept.tokens,
        )

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return (self.money is not None and self.money <= 0) or (self.tokens is not None and self.tokens <= 0)

    def of(self, bounds: Bounds) -> Bounds:
        """The bounds of the next session."""
        tokens = bounds.tokens if self.tokens is None else min(bounds.tokens, self.tokens)
        moneys = [one for one in (bounds.money, self.money) if one is not None]
        return replace(bounds, tokens=tokens, money=min(moneys, default=None))


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One question, to be asked in one way. `repetition`: from 1."""

    question: EvalQuestion
    arm: Arm
    repetition: int

    @property
    def key(self) -> RunKey:
        """What tells it from other runs."""
        return self.question.id, self.arm.name, self.repetition


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation. `models`: used by all runs, and not closed here. `tell`: receives a line about each run, for people.

    `repeat`: how often each question is asked in each way. `seed`: of the order of repeated runs.
    """

    settings: Settings
    models: Models
    kept: Kept
    questions: Sequence[EvalQuestion]
    arms: Sequence[Arm]
    budget: Budget
    tell: Callable[[str], None]
    repeat: int = 1
    seed: int = 42

    @property
    def planned(self) -> list[PlannedRun]:
        """All runs, grouped by question. If they are repeated, the ways of each group are in a random order, so that what
        changes with time (a busy machine, a warm cache) is no way's advantage."""
        runs: list[PlannedRun] = []
        for repetition in range(1, self.repeat + 1):
            for question in self.questions:
                group = [PlannedRun(question, arm, repetition) for arm in self.arms]
                if self.repeat > 1:
                    random.Random(f"{self.seed} {question.id} {repetition}").shuffle(group)
                runs += group
        return runs

    async def work(self) -> bool:
        """Do all runs that are not done yet. Returns False if the budget ended it.

        Raises:
            IactError: the models can't be reached. Finished runs are kept.
        """
        for run in self.planned:
            if run.key in self.kept.done:
                continue
            left = self.budget.left(self.kept)
            if left.over or not await self._run(run, left):
                return False
        return True

    async def _run(self, planned: PlannedRun, left: Budget) -> bool:
        """Do one run. Returns False if the budget cut it off."""
        question, arm, key = planned.question, planned.arm, planned.key

        def bounds(one: Bounds) -> Bounds:
            return left.of(arm.of(one))

        settings = self.settings.model_copy(
            update={"data": self.kept.folder / "data", "memory": "off", "store": None}
        )
        lent = self.models.lend()
        async with open_runtime(settings, opened=lent, policy=self.settings.data, bound=bounds) as runtime:
            before = self.kept.begun.get(key)
            session = await _again(runtime, before)
            resumed = session is not None
            if session is None:
                session = await runtime.open()
                self.kept.begin(key, session.id)
            began = time.monotonic()
            reply = await _answer(session, question, arm)
            run = _run_of(session, planned, reply, time.monotonic() - began, resumed=resumed)
        if run.status == "failed" and not run.completion_tokens:
            self.kept.cut(key, run.money, run.tokens)
            raise IactError(f"{reply.body.partition(chr(10))[0]} To continue, run the same command again.")
        if self._cut(run.bound, left):
            self.kept.cut(key, run.money, run.tokens)
            return False
        self.kept.end(run)
        done, of = len(self.kept.done), len(self.planned)
        said = {None: run.status, True: "right", False: "wrong"}[run.exact]
        self.tell(
            f"{done} of {of}: {question.id}, {arm.name}: {said}, {run.seconds:.1f} s, {run.tokens:,} tokens"
        )
        return True

    def _cut(self, bound: str, left: Budget) -> bool:
        """Whether the evaluation's budget ended a run, and not the session's own bound."""
        own = self.settings.bounds
        if bound == "money":
            return left.money is not None and (own.money is None or left.money <= own.money)
        return bound == "tokens" and left.tokens is not None and left.tokens <= own.tokens


async def _again(runtime: Runtime, session: str | None) -> Session | None:
    """Reopen the session of an interrupted run. Returns None if there is none that can continue."""
    with suppress(UsageError, JournalError):
        return None if session is None else await runtime.open(session)
    return None


def _text(question: EvalQuestion, arm: Arm) -> str:
    end = f"End your last message with a line `Answer: …` that has {ASKED[question.kind]}, and nothing else."
    return f"{arm.before}{question.text}\n\n{end}"


async def _answer(session: Session, question: EvalQuestion, arm: Arm) -> Record:
    """Send the question, unless it was sent before an interruption, and wait for the answer. No person can be asked."""
    said = next((one for one in session.records() if isinstance(one.content, Say)), None)
    if said is not None:
        exchange = conversation.Exchange(session, said)
    else:
        if question.program:
            await asyncio.to_thread(
                _plant, session.journal.parent / "workspace" / "tool.py", question.program
            )
        exchange = await conversation.say(session, _text(question, arm), mode=arm.mode)
    await conversation.unattended(exchange)
    return exchange.reply


def _plant(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _run_of(
    session: Session, planned: PlannedRun, reply: Record, seconds: float, *, resumed: bool
) -> EvalRun:
    question = planned.question
    plans = [view.figures for view in session.view.plans().values()]
    content, used, budget = reply.content, session.view.usage, session.view.budget
    assert isinstance(content, Reply)
    judged = question.kind != "open"
    return EvalRun(
        question=question.id, arm=planned.arm.name, repetition=planned.repetition, session=session.id, group=question.group,
        status="failed" if content.plan == "failed" else content.status, bound=content.bound,
        exact=exact(reply.body, question) if judged else None,
        f1=f1(reply.body, question) if judged else None,
        seconds=round(seconds, 3), resumed=resumed,
        model_calls=session.view.model_calls, nodes=_calls(session.records()),
        prompt_tokens=used.prompt_tokens, cached_tokens=used.cached_tokens, completion_tokens=used.completion_tokens,
        money=0.0 if budget is None else budget.cost,
        bytes=len(reply.body.encode()), answer=answer_of(reply.body),
        retries=sum(one.retries for one in plans), versions=sum(one.versions for one in plans),
        contracts=sum(one.contracts for one in plans), held=sum(one.held for one in plans),
        width=max((one.width for one in plans), default=0),
    )  # fmt: skip


def _calls(records: Sequence[Record]) -> int:
    """The number of function calls, by agents and by plans."""
    return sum(isinstance(one.content, Result) and "." in one.content.function for one in records)
