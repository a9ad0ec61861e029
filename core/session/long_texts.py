"""Does in a thread what the fold of a long text needs, so that nothing else waits for it.

What was read or made is found by the fold, which asks for the same thing next (`core.recent`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from iact.core.context.excerpt import READ_AT_ONCE, is_read_here, readable
from iact.core.language.variables import Value
from iact.core.plan import answers, forms
from iact.core.plan.model import PlanError
from iact.core.session.live import StoredText, stored


async def read_plan_beside(text: str) -> None:
    """Read the text of a plan, if it is long. What is wrong with it is said by who reads it next."""
    if len(text) > forms.READ_AT_ONCE:
        await asyncio.to_thread(_read_plan, text)


async def read_answer_beside(text: str) -> None:
    """Read a model's answer about a plan, if it is long."""
    if len(text) > forms.READ_AT_ONCE:
        await asyncio.to_thread(_read_answer, text)


def _read_plan(text: str) -> None:
    with contextlib.suppress(PlanError):
        forms.read_form(text)


def _read_answer(text: str) -> None:
    answers.extract(text)
    _read_plan(answers.plan_text(text))


async def stored_beside(text: str) -> StoredText:
    """How a text is stored in the journal, found in a thread if the text is long."""
    if len(text) <= READ_AT_ONCE:
        return stored(text)
    return await asyncio.to_thread(stored, text)


async def read_values_beside(values: Iterable[Value]) -> None:
    """Read the long texts among some values as models read them."""
    for value in values:
        if value.is_text and not is_read_here(value):
            await asyncio.to_thread(readable, value)
