"""`analyze`: an analyzer judges the whole plan when it has ended, and replans while the goal is not reached.

DAG-mode documentation. A round is a plan that ran to its end. Replanning continues while the goal is not achieved, the
confidence is below 0.8 and rounds remain. A person's message always replans and costs no round. An achieved goal is put
into words by one more, streamed call, unless the analysis wrote a short answer itself. If that fails and the goal was not
reached, the answer is all results one after another.
"""

from __future__ import annotations

from typing import Final, Self

from iact.core.plan.answers import Analysis, ReflectionAnswer
from iact.core.plan.modes.base import DueThought, Mode, ModeOrder, fresh_work
from iact.core.plan.state import PlanState
from iact.core.records.ways import OPTIONS

CONFIDENT: Final = 0.8
"""From this confidence on a judgement stands, whatever it says: replanning is unlikely to change it."""


class Analyze(Mode):
    """At most `rounds` analyses, and `rounds` - 1 replans of its own."""

    name = "analyze"
    judges = True
    reports = True
    replans = False
    on_interjection = "replan"

    def __init__(self, rounds: int = OPTIONS["rounds"].default, *, confident: float = CONFIDENT) -> None:
        self._confident = confident
        self._rounds = max(1, rounds)
        self.max_replans = self._rounds - 1
        self._done = 0
        self._free = 0
        self._seen: set[str] = set()
        self._achieved: str | None = None
        self._over = False

    @classmethod
    def make(cls, order: ModeOrder) -> Self:
        rounds = order.number("rounds", order.bounds.rounds)
        return cls(rounds, confident=order.bounds.confidence)

    def at_rest(self, state: PlanState) -> DueThought | None:
        fresh = fresh_work(state, self._seen)
        if self._achieved is not None and not fresh:
            reasoning, self._achieved = self._achieved, None
            return DueThought("synthesize", reason=reasoning, final=True)
        if self._over or not fresh:
            return None
        self._seen.update(fresh)
        return DueThought("analyze", fresh, final=True)

    def analyzed(self, analysis: Analysis) -> ReflectionAnswer:
        self._done += 1
        if analysis.achieved:
            # An answer that the analysis wrote itself needs no further call to be put into words.
            is_answered = bool(analysis.final_answer) and self.follows_1_3
            self._achieved = None if is_answered else analysis.reasoning
            return ReflectionAnswer("conclude", analysis.reasoning, answer=analysis.final_answer)
        if analysis.confidence >= self._confident or self._done - self._free >= self._rounds:
            self._over = True
            return ReflectionAnswer("continue", analysis.reasoning)
        return ReflectionAnswer("replan", analysis.reasoning)

    def interjected(self) -> None:
        """Void the judgements so far, because the task has changed. The round that follows is free."""
        self._free = self._done
        self._achieved = None
        self._over = False
