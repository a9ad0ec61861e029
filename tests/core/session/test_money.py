"""A session's budget of money: a fan-out ends at it without a call too many, and more money goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.ports import Price
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Bounds
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime

PRICE = Price(10.0, 1.0, 100.0)
"""Of a million tokens, in cents."""

FAN = "\n".join(f"```CALL_ASYNC w{number}\nCount.\n```" for number in range(50)) + "\n```WAIT\n```"


def _works(asked: Asked) -> str:
    if asked.path != "/":
        return f"Counted. {'word ' * 100}"
    return FAN if asked.turn == 0 else "All is counted."


async def test_a_fan_out_ends_at_the_money_without_a_call_too_many(tmp_path: Path) -> None:
    model = ScriptedModel(_works, price=PRICE)
    bounds = Bounds(money=0.8, reply_tokens=256)
    async with runtime(tmp_path, replies({}), model=model, bounds=bounds) as opened:
        session = await opened.open()
        reply = await session.ask("Count.")
        budget = session.view.budget
        records = list(session.records())
        assert budget is not None
        assert budget.money == 0.8
        assert 0.7 < budget.cost <= 0.8  # what is left would not pay for another call
        bounded = [one for one in records if isinstance(one.content, Reply) and one.content.bound == "money"]
        written = [one for one in records if isinstance(one.content, Reply) and one.content.generation]
        assert len(written) > 5
        assert bounded
        assert len(model.asked) < 52
        assert "could cost" in bounded[0].body
        assert isinstance(reply.content, Reply)
        assert reply.content.bound == "money"

        with pytest.raises(UsageError):
            await session.raise_budget(money=-1)
        raised = await session.raise_budget(money=50)
        assert (await session.answer(raised.n)).body
        journal = session.journal
    found = replay(journal, verify=True)
    assert found.tree.bounds.money == 50.8
    assert found.tree.cost == pytest.approx(sum(_cost(one) for one in found.records), abs=1e-9)

    async with runtime(tmp_path, replies({}), model=ScriptedModel(_works, price=PRICE)) as opened:
        again = await opened.open(journal.parent.name)
        assert again.view.budget is not None
        assert again.view.budget.cost == pytest.approx(found.tree.cost)


async def test_without_a_bound_nothing_is_held_and_nothing_can_be_added(tmp_path: Path) -> None:
    model = ScriptedModel(lambda asked: "Done.", price=PRICE)
    async with runtime(tmp_path, replies({}), model=model) as opened:
        session = await opened.open()
        await session.ask("Go.")
        assert session.view.budget is not None
        assert session.view.budget.money is None
        assert session.view.budget.cost > 0
        with pytest.raises(UsageError, match="no money budget"):
            await session.raise_budget(money=1)


def _cost(record: object) -> float:
    usage = getattr(getattr(record, "content", None), "generation", None)
    return PRICE.of(usage.usage.prompt, usage.usage.cached, usage.usage.completion) if usage else 0.0
