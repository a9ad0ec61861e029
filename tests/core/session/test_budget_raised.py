"""A session whose tokens end says so, repeats nothing, and goes on when a person adds some or has it compressed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Bounds
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime
from tests.core.session.test_control import until

SUMMARY = "Task: to count\nDecided: nothing\nDone: they counted\nOpen: nothing\nWhere: nowhere"


def _talks(asked: Asked) -> str:
    if "ummar" in asked.newest:
        return SUMMARY
    return f"Answer {asked.turn}. " + "word " * 600


def test_the_end_of_a_budget_repeats_nothing_and_more_goes_on(tmp_path: Path) -> None:
    async def main() -> Path:
        model = ScriptedModel(_talks)
        async with runtime(tmp_path, replies({}), model=model, bounds=Bounds(tokens=25_000)) as opened:
            session = await opened.open()
            with pytest.raises(UsageError, match="not enough history"):
                await session.compress()
            said = [await session.ask(f"Question {number}?") for number in range(20)]
            ended = [one for one in said if isinstance(one.content, Reply) and one.content.bound == "tokens"]
            over = [one for one in ended if isinstance(one.content, Reply) and one.content.generation is None]
            assert over
            assert not any("Answer" in one.body for one in over)
            assert "budget of 25,000 tokens is used up" in over[0].body
            budget = session.view.budget
            assert budget is not None
            assert budget.exhausted
            assert budget.used > 0.8 * budget.tokens == 20_000

            with pytest.raises(UsageError, match="can only be raised"):
                await session.raise_budget(0)
            raised = await session.raise_budget(100_000)
            answer = await session.answer(raised.n)
            assert answer.body.startswith("Answer")  # what waited is answered, without being said again
            now = session.view.budget
            assert now is not None
            assert (now.tokens, now.exhausted) == (125_000, False)

            cut = await session.compress()
            assert cut.body == SUMMARY
            assert await session.summary() == SUMMARY  # it is not asked for twice
            assert (await session.ask("And?")).body.startswith("Answer")
            return session.journal

    journal = asyncio.run(main())
    found = replay(journal, verify=True)
    assert found.tree.bounds.tokens == 125_000
    assert found.tree.root.account.allowance == 125_000


def test_who_speaks_while_the_history_is_compressed_is_answered(tmp_path: Path) -> None:
    """The summary is written as the root's reply is: the message ends it, and only then the root begins."""

    async def main() -> tuple[Path, list[str]]:
        holds = {"/held later": asyncio.Event()}
        model = ScriptedModel(_talks, holds=holds)
        async with runtime(tmp_path, replies({}), model=model) as opened:
            session = await opened.open()
            for number in range(12):
                await session.ask(f"Question {number}?")
            holds["/"] = asyncio.Event()
            compressing = asyncio.ensure_future(session.compress())
            await until(lambda: len(model.asked) == 13)
            with pytest.raises(UsageError, match="compressed already"):
                await session.compress()
            asked = asyncio.ensure_future(session.ask("And now?"))
            with pytest.raises(UsageError, match="changed in the meantime"):
                await compressing
            holds.pop("/").set()
            answer = await asked
            return session.journal, [answer.body, *(one.kind for one in session.records(answer.n - 4))]

    journal, told = asyncio.run(main())
    assert told[0].startswith("Answer 12.")
    assert "discard" in told
    replay(journal, verify=True)


def test_what_a_child_holds_is_not_used(tmp_path: Path) -> None:
    """The root that lends nearly all to a child it waits for has nearly all left, of which most is lent."""
    seen: list[tuple[int, int, int]] = []

    async def main() -> None:
        script = replies({"/": ["```CALL a\nx\n```", "Done."], "/a": ["a"]})

        def told(asked: Asked) -> str:
            if asked.path == "/a":
                root = session.view.nodes()[0]
                seen.append((root.allowance, root.left, root.lent))
            return script(asked)

        async with runtime(tmp_path, replies({}), model=ScriptedModel(told), bounds=Bounds()) as opened:
            session = await opened.open()
            await session.ask("Go")

    asyncio.run(main())
    ((allowance, left, lent),) = seen
    assert left > 0.98 * allowance
    assert lent > 0.85 * allowance
