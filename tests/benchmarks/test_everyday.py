"""How what is asked of the model on board is judged: only right answers count, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.everyday.play import SETS, Ending, dialogues, files, holds, judge, refuses, requests
from iact.core.records.record import Record
from iact.models.prompt import STATIC
from tests.records import raw_record


def printed(text: str) -> list[Record]:
    """The records of one call of `shell.run` that printed a text."""
    return [raw_record(1, "2026-01-02T03:04:05Z", "result", "/", 1, text)]


@pytest.mark.parametrize(
    ("answer", "truth", "holding"),
    [
        ("The files have 2,855 lines.", "2855", True),
        ("Es sind 2.855 Zeilen.", "2855", True),
        ("They have 2286 lines.", "2855", False),
        ("They have 28550 lines.", "2855", False),
        ("Noch 7,4 GB sind frei.", "7.4", True),
        ("Kernel 6.1.0-28-amd64", "6.1.0", True),
        ("Kernel 16.1.0", "6.1.0", False),
        ("Python 3.11.2", "3.11", False),
        ("It has two lines.", "2", True),
        ("Es ist 9:05 Uhr.", "09:05", True),
        ("Heute ist Freitag.", "Freitag", True),
        ("anything", "", False),
    ],
)
def test_an_answer_holds_a_truth_however_it_is_written(answer: str, truth: str, holding: bool) -> None:
    assert holds(answer, truth) is holding


def test_numbers_that_nothing_printed_are_wrong(tmp_path: Path) -> None:
    ending = Ending(reply=(r"\d",), quotes=True)
    assert judge(ending, "/tmp takes 4.0 KB.", printed("4.0K\t/tmp"), tmp_path) == ""
    assert judge(ending, "/tmp takes 1.2 KB.", printed("4.0K\t/tmp"), tmp_path) == "no result holds 1.2"


def test_one_of_the_figures_that_were_printed_must_be_answered(tmp_path: Path) -> None:
    ending = Ending(reply=(r"\d",), printed=(r"Mem:\s+\d+\s+\d+\s+(\d+)",))
    free = printed("Mem:  24000  3000  9000 0")
    assert judge(ending, "Hay 9000 MB libres.", free, tmp_path) == ""
    assert "lacks 9000" in judge(ending, "Hay 24000 MB.", free, tmp_path)
    assert "should have been printed" in judge(ending, "Hay 9000 MB.", printed("?"), tmp_path)


def test_what_a_program_must_print_must_have_been_printed(tmp_path: Path) -> None:
    ending = Ending(reply=(".",), results=(r"49\s+64",), never=("sorry",))
    assert judge(ending, "Done.", printed("49\n64\n"), tmp_path) == ""
    assert judge(ending, "Done.", printed("1\n2\n"), tmp_path).startswith("nothing printed")
    assert judge(ending, "Sorry!", printed("49\n64\n"), tmp_path) == "the answer has sorry"


def test_some_file_must_hold_what_was_asked_for(tmp_path: Path) -> None:
    ending = Ending(reply=(".",), any_file="<h1")
    assert judge(ending, "Done.", [], tmp_path) == "no file holds <h1"
    (tmp_path / "index.html").write_text("<h1>Hello</h1>", encoding="utf-8")
    assert judge(ending, "Done.", [], tmp_path) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't assist with that.",
        "Lo siento, pero no puedo.",
        "Tut mir leid, aber das geht nicht.",
    ],
)
def test_a_refusal_is_never_right(answer: str) -> None:
    assert refuses(answer)
    assert not refuses("Here is a joke that can't fail.")


def test_what_is_asked_stands_in_the_prompt_nowhere() -> None:
    prompt = " ".join(message.content for message in STATIC.examples)
    asked = [request.text for name in SETS for request in requests(name)]
    asked += [saying.text for dialogue in dialogues() for saying in dialogue.says]
    assert [text for text in asked if f"\n{text}\n" in prompt] == []
    assert {len(requests("held-out")), len(requests())} == {15, 63}


def test_dialogues_have_three_messages_in_every_language() -> None:
    led = [dialogue.language for dialogue in dialogues()]
    assert all(len(dialogue.says) == 3 for dialogue in dialogues())
    assert len(led) >= 15
    assert set(led) == {"en", "de", "es"}
    assert all(text.endswith("\n") for text in files().values())
