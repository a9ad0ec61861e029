"""How far the model on board is: told from any thread, seen by whoever watches, and only of the model in use."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import pytest

from iact.core.clock import SystemClock
from iact.core.errors import ModelUnreachable
from iact.models import download
from iact.models.board import Board, BoardState
from iact.models.download import FetchProgress, Tell
from iact.models.embedded import EmbeddedModel
from iact.models.weights import LARGE, ChosenFile, ModelFile, OwnFile


def test_a_watcher_sees_what_is_and_what_comes_from_another_thread() -> None:
    async def test() -> list[BoardState | None]:
        board = Board()
        report = board.reporter()
        seen: list[BoardState | None] = []
        async with board.watch() as states:
            async for state in states:
                seen.append(state)
                if state is None:
                    threading.Thread(target=report, args=[BoardState("downloading", 1, 2)]).start()
                elif state.phase == "downloading":
                    report(BoardState("ready"))
                else:
                    break
        return seen

    assert asyncio.run(test()) == [None, BoardState("downloading", 1, 2), BoardState("ready")]


def test_what_is_no_longer_in_use_is_not_heard() -> None:
    board = Board()
    old = board.reporter()
    old(BoardState("loading"))
    new = board.reporter()
    old(BoardState("ready"))
    assert board.state == BoardState("ready"), "until the newer one has said something"
    new(BoardState("loading"))
    old(BoardState("failed", why="It is gone."))
    assert board.state == BoardState("loading")
    board.clear()
    new(BoardState("ready"))
    assert board.state is None


def test_a_watcher_that_is_gone_disturbs_nobody() -> None:
    board = Board()

    async def test() -> None:
        async with board.watch():
            pass

    asyncio.run(test())
    board.reporter()(BoardState("ready"))
    assert board.state == BoardState("ready")


@pytest.mark.parametrize(
    "selection",
    [ChosenFile(None, "It is turned off."), ChosenFile(OwnFile("mine", Path("/nowhere.gguf"), 9, "0"))],
)
def test_a_model_that_can_not_come_says_why(selection: ChosenFile) -> None:
    told: list[BoardState | None] = []
    model = EmbeddedModel(clock=SystemClock(), rng=random.Random(1), selection=selection, report=told.append)
    with pytest.raises(ModelUnreachable) as raised:
        asyncio.run(model.warm())
    assert told == [BoardState("failed", why=str(raised.value))]


def test_a_download_is_reported_until_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(weights: ModelFile, tell: Tell) -> None:
        tell(FetchProgress("waiting", 0, 9))
        tell(FetchProgress("index", 4, 9))
        tell(FetchProgress("checking", 9, 9))
        raise ModelUnreachable("The disk is full.")

    monkeypatch.setattr(download, "fetch", fetch)
    told: list[BoardState | None] = []
    model = EmbeddedModel(
        clock=SystemClock(), rng=random.Random(1), selection=ChosenFile(LARGE), report=told.append
    )
    with pytest.raises(ModelUnreachable):
        asyncio.run(model.warm())
    assert told == [
        BoardState("waiting", 0, 9), BoardState("downloading", 4, 9), BoardState("checking", 9, 9),
        BoardState("failed", why="The disk is full."),
    ]  # fmt: skip


def test_a_download_ends_when_its_model_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the program could not end before the last byte."""
    begun, closed = threading.Event(), threading.Event()
    ended: list[Exception] = []

    def fetch(weights: ModelFile, tell: Tell) -> None:
        tell(FetchProgress("hub", 1, 9))
        begun.set()
        closed.wait()
        try:
            tell(FetchProgress("hub", 2, 9))
        except ModelUnreachable as error:
            ended.append(error)
            raise

    async def test() -> None:
        model = EmbeddedModel(clock=SystemClock(), rng=random.Random(1), selection=ChosenFile(LARGE))
        warming = asyncio.create_task(model.warm())
        await asyncio.to_thread(begun.wait)
        warming.cancel()
        await asyncio.wait([warming])
        await model.close()
        closed.set()

    monkeypatch.setattr(download, "fetch", fetch)
    asyncio.run(test())
    assert len(ended) == 1
