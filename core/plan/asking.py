"""Asks a question about a plan. What is much too long for it is put into fewer words first, by the fast model.

Each long result is put into fewer words once in a plan. A mode that counts its model calls (`profile`) does without: its
questions are only shortened.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from typing import Final

from pydantic import BaseModel

from iact.core.context.tokens import estimate
from iact.core.plan import answers, questions
from iact.core.plan.execution import Execution
from iact.core.plan.prompt import Item, QuestionPart, overlong, replaced, room_in
from iact.core.plan.protocol import PlanQuestion, QuestionKind

_CALLS: Final = 3
"""The most calls that put something into fewer words before one question."""

_RESERVE: Final = 6
"""How many of a plan's model calls are left for the questions themselves."""

_FORM: Final = 500
"""The tokens of such a call besides the texts."""

_LEAST_WORDS: Final = 40
_TOKENS_OF_A_WORD: Final = 2

Asking = Generator[PlanQuestion, str | None, str | None]


def asked(
    run: Execution,
    kind: QuestionKind,
    parts: Sequence[QuestionPart],
    node: str = "",
    shape: type[BaseModel] | None = None,
) -> Asking:
    """Ask a question; returns the text of the answer, None if there is none."""
    fitting = yield from _compacted(run, kind, tuple(parts))
    return (yield PlanQuestion(kind, node=node, shape=shape, parts=fitting))


def _compacted(
    run: Execution, kind: QuestionKind, parts: tuple[QuestionPart, ...]
) -> Generator[PlanQuestion, str | None, tuple[QuestionPart, ...]]:
    """Return the parts, with those in fewer words that would lose most of themselves."""
    left = _CALLS
    for part, tokens in overlong(parts, run.window(run.role_of(kind))):
        words = max(_LEAST_WORDS, tokens // (_TOKENS_OF_A_WORD * len(part.items)))
        long = [item for item in part.items if _is_long(item, words) and item.id not in run.shorter]
        for batch in _batches(long, room_in(run.window(run.role_of("compact"))) - _FORM):
            if not left or not _affordable(run):
                break
            left -= 1
            text = yield PlanQuestion("compact", parts=questions.compact(batch, run.goal, words))
            found = answers.compacted(text or "")
            run.shorter.update((item.id, found[item.id]) for item in batch if _is_shorter(item, found))
        parts = tuple(replaced(one, run.shorter) if one is part else one for one in parts)
    return parts


def _is_long(item: Item, words: int) -> bool:
    return bool(item.id) and estimate(item.text) > words * _TOKENS_OF_A_WORD


def _is_shorter(item: Item, found: dict[str, str]) -> bool:
    return item.id in found and len(found[item.id]) < len(item.text)


def _batches(items: Sequence[Item], room: int) -> Iterator[Sequence[Item]]:
    """The items in so few batches that all of them are reached. What is too long for one is shortened there."""
    if not items:
        return
    count = min(_CALLS, math.ceil(sum(estimate(item.text) for item in items) / max(room, 1)))
    size = math.ceil(len(items) / count)
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def _affordable(run: Execution) -> bool:
    counted = run.mode.max_calls is not None
    return run.affordable and not counted and run.limits.model_calls - run.calls > _RESERVE
