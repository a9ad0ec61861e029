"""How the tasks of the model on board are judged and compared. `make test-slow` plays them on the real model."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.board import __main__ as board
from benchmarks.board.__main__ import BoardFigures, figures, is_broken, last_figures, report
from benchmarks.board.play import Played, Task, tasks
from benchmarks.board.play import files as planted
from benchmarks.everyday.play import requests
from iact.core.errors import ModelUnreachable
from iact.models.embedded import EmbeddedModel
from iact.models.prompt import STATIC
from tests.acceptance.product import ROOT

LAST = BoardFigures(may_fail=1, solved=2, turns=5, misread=0, seconds=9.0, load=1.5, unsolved=("three",))


def played(name: str, *, wrong: str = "") -> Played:
    task = Task(kind="files", says=(name,), reply=(".",))
    return Played(task=task, wrong=wrong, answer="x", turns=2, seconds=3.0, misread=1)


def test_there_are_twenty_of_each_kind_that_a_person_meets() -> None:
    every = tasks()
    assert len(every) == 20
    assert {task.kind for task in every} == {
        "dialogue", "files", "program", "machine", "child", "plan", "correction", "denied", "memory",
    }  # fmt: skip


def test_none_of_them_stands_in_the_prompt_or_among_the_requests() -> None:
    prompt = " ".join(message.content for message in STATIC.examples)
    asked = {request.text for request in requests()}
    for task in tasks():
        for text in task.says:
            assert text not in prompt
            assert text not in asked


def test_no_request_of_the_measurement_stands_in_the_prompt() -> None:
    prompt = " ".join(message.content for message in STATIC.examples)
    for request in requests():
        assert f"\n{request.text}\n" not in prompt


def test_files_of_the_workspace_hold_what_is_asked_for() -> None:
    assert planted()["story.txt"].count("\n") == 3
    hours = [int(line.partition(",")[2]) for line in planted()["hours.csv"].splitlines()[1:]]
    assert sum(hours) == 26


def test_figures_are_added_up_and_compared() -> None:
    now = figures([played("one"), played("two", wrong="no file"), played("three")], may_fail=1, load=0.5)
    assert (now.solved, now.turns, now.misread, now.seconds) == (2, 6, 3, 9.0)
    said = report(now, LAST, count=4, skipped=1)
    assert "| solved, of 4 | 2 | 2 |" in said
    assert "| turns | 6 | 5 |" in said
    assert "| load of the machine | 0.5 | 1.5 |" in said
    assert "- two" in said
    assert "1 were not begun" in said
    assert "ended wrong" not in said


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file of figures in place of the repository's."""
    file = tmp_path / "kept.json"
    file.write_text(LAST.model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(board, "KEPT", file)
    return file


@pytest.mark.parametrize(("wrong", "status"), [("", 0), ("the answer lacks x", 1)])
def test_where_more_end_wrong_than_may_it_fails(
    wrong: str, status: int, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    async def play_all(chosen: list[Task], folder: Path) -> list[Played]:
        return [played("one", wrong="no file"), played("two", wrong=wrong)]

    monkeypatch.setattr(board, "_play_all", play_all)
    monkeypatch.setattr(board, "tasks", lambda: [played(name).task for name in ("one", "two")])
    assert board.main([]) == status
    assert board.last_figures() == LAST
    board.main(["--keep"])
    assert board.last_figures().solved == 1 - status


def test_where_nothing_is_solved_it_fails_however_few_were_played() -> None:
    now = figures([played("one", wrong="it took more than 120 seconds")], may_fail=10, load=30)
    assert is_broken(now)
    assert "1 ended wrong, and 10 may" in report(now, LAST, count=20, skipped=19)


def test_on_a_slow_machine_what_was_not_begun_is_no_failure_and_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def play_all(chosen: list[Task], folder: Path) -> list[Played]:
        return [played("one")]

    monkeypatch.setattr(board, "_play_all", play_all)
    assert board.main(["--keep"]) == 0
    assert "19 were not begun" in capsys.readouterr().out
    assert board.last_figures() == LAST


def test_without_the_model_it_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def warm(model: EmbeddedModel) -> None:
        raise ModelUnreachable("The index did not answer.")

    monkeypatch.setattr(EmbeddedModel, "warm", warm)
    assert board.main([]) == 1
    assert "The index did not answer." in capsys.readouterr().err


def test_the_kept_figures_are_those_of_these_tasks() -> None:
    last = last_figures()
    names = {task.name for task in tasks()}
    assert set(last.unsolved) <= names
    assert last.solved == len(names) - len(last.unsolved)
    assert len(last.unsolved) < last.may_fail


def test_make_test_slow_plays_them() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest-slow:")[2].partition("\n\n")[0]
    assert "-m benchmarks.board" in recipe
