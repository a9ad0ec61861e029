"""A store that fails, hangs or is full: turns go on within their time, and everything is made good for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iact.core.errors import MemoryUnavailable
from iact.core.ports import NewStatement, Recollection, StandingQuestion
from iact.hippocampus import Hippocampus, WordEmbedder, open_hippocampus
from tests.hippocampus.fakes import DictStore, StandingClock, ask, opener, say

FACT = say("s1", 2, "The office closes at six on weekdays.")
QUESTION = "When does the office close?"


@asynccontextmanager
async def opened(
    place: Path,
    store: DictStore,
    clock: StandingClock,
    *,
    journals: Sequence[NewStatement] = (),
    budget: float = 5.0,
) -> AsyncIterator[Hippocampus]:
    async with open_hippocampus(
        place,
        WordEmbedder(),
        clock=clock,
        budget=budget,
        journals=lambda: [("anna", one) for one in journals],
        open_store=opener(store),
    ) as hippocampus:
        yield hippocampus


async def recalled(hippocampus: Hippocampus) -> list[str]:
    return [row.text for row in (await hippocampus.of("anna").recall(ask(QUESTION))).rows]


async def test_a_slow_store_costs_a_turn_no_more_than_the_budget(tmp_path: Path) -> None:
    store = DictStore()
    async with opened(tmp_path, store, StandingClock(), budget=0.5) as hippocampus:
        memory = hippocampus.of("anna")
        memory.remember(FACT)
        await hippocampus.settled()
        store.gate.clear()
        # The store answers nothing before the gate opens: a turn that waits for it never ends,
        # and three hundred that wait their whole budget take too long.
        async with asyncio.timeout(300):
            first = await memory.recall(ask(QUESTION))
            second = [await memory.recall(ask(QUESTION)) for _ in range(300)]
        assert first.rows == ()
        assert "500 ms" in first.notice
        assert {one.notice for one in second} == {""}
        store.gate.set()
        await hippocampus.of("anna").search(QUESTION)
        assert await recalled(hippocampus) == [FACT.text]


async def test_a_store_that_fails_is_opened_again_and_caught_up(tmp_path: Path) -> None:
    store, clock = DictStore(), StandingClock()
    async with opened(tmp_path, store, clock, journals=[FACT]) as hippocampus:
        memory = hippocampus.of("anna")
        await hippocampus.settled()
        store.fail = RuntimeError("bad page")
        memory.remember(FACT)
        await hippocampus.settled()
        first = await memory.recall(ask(QUESTION))
        assert "bad page" in first.notice
        assert first.rows == ()
        assert (await memory.recall(ask(QUESTION))).notice == ""
        with pytest.raises(MemoryUnavailable, match="bad page"):
            await memory.search(QUESTION)
        with pytest.raises(MemoryUnavailable):
            await memory.forget(["s1/2"])
        store.fail = None
        assert await recalled(hippocampus) == [], "it is not tried again before its time"
        clock.passed += 31
        await recalled(hippocampus)
        await hippocampus.settled()
        assert hippocampus.trouble == ""
        assert await recalled(hippocampus) == [FACT.text]


async def test_a_recall_that_fails_is_a_notice(tmp_path: Path) -> None:
    store = DictStore()
    async with opened(tmp_path, store, StandingClock()) as hippocampus:
        hippocampus.of("anna").remember(FACT)
        await hippocampus.settled()
        store.fail = ValueError("index is torn")
        answer = await hippocampus.of("anna").recall(ask(QUESTION))
        assert (answer.rows, "index is torn" in answer.notice) == ((), True)


async def test_after_a_crash_memory_catches_up_from_the_journals(tmp_path: Path) -> None:
    store = DictStore()
    (tmp_path / "unclean").touch()
    async with opened(tmp_path, store, StandingClock(), journals=[FACT]) as hippocampus:
        await hippocampus.settled()
        assert await recalled(hippocampus) == [FACT.text]
    assert not (tmp_path / "unclean").exists()
    assert store.closed


async def test_memory_stays_off_when_what_was_forgotten_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "decisions.json").write_text("{", encoding="utf-8")
    async with opened(tmp_path, DictStore(), StandingClock(), journals=[FACT]) as hippocampus:
        with pytest.raises(MemoryUnavailable, match="no forgotten memory comes back"):
            await hippocampus.of("anna").search(QUESTION)


def test_the_first_turn_waits_longer_for_the_store_and_later_ones_do_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If that was too long, only the log says so, once."""
    caplog.set_level("INFO", logger="iact.hippocampus.memory")
    wish = say("s1", 2, "I prefer dark mode in the editor.")
    opening = threading.Event()

    def slow(place: Path | None, server: str) -> DictStore:
        opening.wait()
        return DictStore()

    async def turns(patience: float, budget: float, *, ready: bool) -> list[Recollection]:
        """Two turns of a memory that opens while the first one waits, or else after both."""
        opening.clear()
        async with open_hippocampus(
            tmp_path, WordEmbedder(), clock=StandingClock(), budget=budget, opening=patience, open_store=slow
        ) as hippocampus:
            memory = hippocampus.of("anna")
            memory.remember(wish)
            memory.remember(say("s1", 3, "The office closes at six."))
            if ready:
                asyncio.get_running_loop().call_later(0.2, opening.set)
            found = [await memory.recall(ask("Choose the mode of the editor.")) for _ in range(2)]
            opening.set()
            return found

    for early in asyncio.run(turns(0.01, 0.001, ready=False)):
        assert early == Recollection()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("Memory was not open after 10 ms, so a turn began without it.")

    caplog.clear()
    for whole in asyncio.run(turns(30.0, 5.0, ready=True)):
        assert whole.notice == ""
        assert [row.text for row in whole.rows] == [wish.text]
    assert not caplog.records


async def test_the_whole_first_turn_waits_and_not_only_its_first_question(tmp_path: Path) -> None:
    """A turn asks twice: for what every agent is told, and for what helps with its input."""
    wish = say("s1", 2, "I prefer dark mode in the editor.")
    opening = threading.Event()

    def slow(place: Path | None, server: str) -> DictStore:
        opening.wait()
        return DictStore()

    async with open_hippocampus(
        tmp_path, WordEmbedder(), clock=StandingClock(), budget=0.0, opening=30.0, open_store=slow
    ) as hippocampus:
        memory = hippocampus.of("anna")
        memory.remember(wish)
        asyncio.get_running_loop().call_later(0.2, opening.set)
        stands = await memory.standing(StandingQuestion(StandingClock().now()))
        found = await memory.recall(ask("Choose the mode of the editor."))
    assert [row.text for row in stands.rows] == [wish.text]
    assert [row.text for row in found.rows] == [wish.text]


async def test_an_order_that_fails_stops_nothing(tmp_path: Path) -> None:
    """Neither what came with it, nor what comes after it; no turn hears of it."""

    async with opened(tmp_path, DictStore(), StandingClock()) as hippocampus:
        memory = hippocampus.of("anna")
        await hippocampus.settled()
        memory.remember(FACT)
        with pytest.raises(MemoryUnavailable, match="There is no memory 'nope'"):
            await memory.edit("nope", "x")
        assert (await memory.recall(ask(QUESTION))).notice == ""
        assert await recalled(hippocampus) == [FACT.text]
        (tmp_path / "missed.1").touch()
        memory.remember(say("s1", 3, "The canteen is on the second floor."))
        await hippocampus.settled()
        assert not (tmp_path / "missed.1").exists()


def test_an_embedder_that_fails_stops_nothing(tmp_path: Path) -> None:
    class Broken(WordEmbedder):
        down = False

        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            if self.down:
                raise MemoryUnavailable("The endpoint for embeddings is down.")
            return await super().embed(texts)

    async def scene() -> None:
        embedder, store, clock = Broken(), DictStore(), StandingClock()
        async with open_hippocampus(
            tmp_path,
            embedder,
            clock=clock,
            journals=lambda: [("anna", FACT)],
            budget=5.0,
            open_store=opener(store),
        ) as hippocampus:
            memory = hippocampus.of("anna")
            await hippocampus.settled()
            embedder.down = True
            memory.remember(FACT)
            await hippocampus.settled()
            assert "endpoint for embeddings is down" in (await memory.recall(ask(QUESTION))).notice
            embedder.down = False
            clock.passed += 31
            memory.remember(say("s1", 3, "The canteen is on the second floor."))
            await hippocampus.settled()
            assert await recalled(hippocampus) == [FACT.text]

    asyncio.run(scene())


async def test_an_error_of_the_caller_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with opened(tmp_path, DictStore(), StandingClock()):
            raise KeyError("mine")
    assert len(asyncio.all_tasks()) == 1


def test_closing_does_not_wait_for_a_store_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iact.hippocampus.memory._PATIENCE", 0.05)

    async def scene() -> None:
        store = DictStore()
        async with opened(tmp_path, store, StandingClock(), budget=0.01) as hippocampus:
            await hippocampus.settled()
            store.gate.clear()
            await hippocampus.of("anna").recall(ask(QUESTION))
        store.gate.set()

    asyncio.run(scene())


async def test_the_first_turn_has_one_deadline_for_all_of_its_questions(tmp_path: Path) -> None:
    """Its second question waits for what is left of that, which here is nothing."""
    store, clock = DictStore(), StandingClock()
    async with open_hippocampus(
        tmp_path, WordEmbedder(), clock=clock, budget=0.01, opening=600.0, open_store=opener(store)
    ) as hippocampus:
        memory = hippocampus.of("anna")
        await memory.standing(StandingQuestion(clock.now()))
        clock.advance(600.0)
        store.gate.clear()
        async with asyncio.timeout(60):
            found = await memory.recall(ask("Choose the mode of the editor."))
        store.gate.set()
    assert found.rows == ()
    assert found.notice.startswith("Memory is slow")
