"""How what is asked of the model on board is judged: only right answers count, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.everyday.__main__ import Outcomes, Played
from benchmarks.everyday.play import SETS, Ending, Outcome, dialogues, files, holds, judge, requests
from iact.core.records.record import Record
from iact.models.giving_up import postscript
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


def test_giving_up_is_never_right(tmp_path: Path) -> None:
    gave_up = "Chapter 1" + postscript("Chapter 1", cut=True)
    assert judge(Ending(reply=(".",)), gave_up, [], tmp_path) == "it gave up"


def test_the_review_names_five_of_its_first_messages_and_the_others_are_in_print() -> None:
    printed = [request.printed_in for request in requests("review")]
    assert printed.count("the review") == 5
    assert "" not in printed


def test_a_later_run_goes_on_where_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    asked, other = requests("review")[0], dialogues()[0]
    ended = Outcome(
        request=asked, wrong="", turns=1, seconds=2.0, misread=0, answer="hi", prompt_tokens=9, cached_tokens=8,
        written_tokens=1,
    )  # fmt: skip
    Outcomes(path).add(Played(asked=asked, outcomes=(ended,)))
    Outcomes(path).add(Played(asked=other, outcomes=(ended, ended, ended)))

    known = Outcomes(path)
    assert known.of(asked) == Played(asked=asked, outcomes=(ended,))
    assert known.of(other) == Played(asked=other, outcomes=(ended, ended, ended))
    assert known.of(requests("review")[1]) is None
    stricter = asked.model_copy(update={"reply": ("hello",)})
    assert known.of(stricter) is None, "what is expected has changed, so it is played again"


def test_what_is_asked_stands_in_the_prompt_nowhere() -> None:
    prompt = " ".join(message.content for message in STATIC.examples)
    asked = [request.text for name in SETS for request in requests(name)]
    asked += [saying.text for dialogue in dialogues() for saying in dialogue.says]
    assert [text for text in asked if f"\n{text}\n" in prompt] == []
    assert {name: len(requests(name)) for name in SETS} == {
        "requests": 63,
        "held-out": 15,
        "review": 17,
        "made": 9,
    }


def test_dialogues_have_three_messages_in_every_language() -> None:
    led = [dialogue.language for dialogue in dialogues()]
    assert all(len(dialogue.says) == 3 for dialogue in dialogues())
    assert len(led) >= 15
    assert set(led) == {"en", "de", "es"}
    assert all(text.endswith("\n") for text in files().values())
