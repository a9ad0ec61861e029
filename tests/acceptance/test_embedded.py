"""Without any endpoint: what the page suggests and what README shows is played on the model on board, and ends right.

The whole product takes part, with its real model and its containers. What else it can do is measured by
`python -m benchmarks.everyday`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import ROOT

ON_BOARD = {"IACT_EMBEDDED": "1.5b"}

_PATIENCE = 540.0
"""Seconds for one answer. Alone on the machine, the model takes ten; beside other tests, it gets a tenth of a processor."""

_SQUARES = "Write a Python script that prints the first ten square numbers, and run it"

SUGGESTED = {
    "en": {
        "Show me the disk usage of /tmp in your sandbox": r"/tmp.*\d|\d.*/tmp",
        _SQUARES: r"\b(81|100)\b|square",
        "Make a shopping list as shopping.md with milk, bread and six eggs": r"shopping",
    },
    "de": {
        "Zeige mir die Speicherbelegung von /tmp in deiner Sandbox": r"/tmp.*\d|\d.*/tmp",
        "Schreib ein Python-Skript, das die ersten zehn Quadratzahlen ausgibt, und führe es aus": r"\b(81|100)\b|[Qq]uadrat",
        "Lege eine Einkaufsliste shopping.md mit Milch, Brot und sechs Eiern an": r"shopping|Einkauf",
    },
}
"""The suggestions of the first page in each of its languages, and what their answers hold."""

_LISTED = {"en": r"(?i)milk[\s\S]*bread[\s\S]*egg", "de": r"(?i)Milch[\s\S]*Brot[\s\S]*Eier"}
"""What the shopping list holds, in the language in which it was asked for."""

_COMMANDS = {_SQUARES: "1\n4\n9\n16\n25\n36\n49\n64\n81\n100\n"}
"""What README and the guides ask with `iact run`, where no files of the reader's are needed, and what is printed for it."""

_LATER = {
    "Now write one that prints the first ten cubes, and run it": "1\n8\n27\n64\n125\n216\n343\n512\n729\n1000\n"
}
"""What README asks then, in the same session, and what is printed for it."""

_LOOKS = {"What is in this directory?": r"tea\.txt"}
"""What the guide asks an agent that may only read."""

_PIPED = {"Summarise the README.": r"kettle|tea"}
"""What the guide pipes into `iact run` in a directory of the reader's."""


def test_these_are_the_suggestions_of_the_page_in_its_languages() -> None:
    script = (ROOT / "web/static/js/dialogue/welcome.js").read_text(encoding="utf-8")
    [listed] = re.findall(r"const SUGGESTIONS = \[(.*?)\];", script, re.DOTALL)
    english = re.findall(r't\("(.*?)"\)', listed)
    assert english == list(SUGGESTED["en"])

    tables = [path for path in (ROOT / "web/static/languages").glob("*.json") if "." not in path.stem]
    assert {path.stem for path in tables} | {"en"} == set(SUGGESTED)
    for path in tables:
        lines = json.loads(path.read_text(encoding="utf-8"))
        assert [lines[text] for text in english] == list(SUGGESTED[path.stem])


def test_readme_and_the_tutorial_begin_with_suggestions_of_the_page() -> None:
    """What they tell a newcomer to write before another model is connected."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = readme.partition("## Two commands")[2].partition("\n## ")[0]
    assert re.findall(r"^> (.*)$", first, re.MULTILINE) == ["Show me the disk usage of /tmp in your sandbox"]

    tutorial = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    before = tutorial.partition("## 3. Connect a model")[0]
    assert re.findall(r"^Press \*\*(.*?)\*\*", before, re.MULTILINE) == [_SQUARES]
    assert re.findall(r"^> ", before, re.MULTILINE) == []


def test_these_are_the_commands_of_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r'^\S*iact run "(.*)"$', text, re.MULTILINE) == list(_COMMANDS)
    assert re.findall(r'^\S*iact run .*--session \S+ "(.*)"$', text, re.MULTILINE) == list(_LATER)


def test_these_are_the_commands_of_the_guide() -> None:
    text = (ROOT / "docs/how-to/headless.md").read_text(encoding="utf-8")
    block = text.partition("```console\n")[2].partition("```")[0]
    assert re.findall(r'"(.*)"', block) == [*_COMMANDS, *_LOOKS, *_PIPED]


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language, texts in SUGGESTED.items() for text in texts]
)
def test_what_a_newcomer_tries_first_ends_right(stage: Stage, language: str, text: str) -> None:
    answer = stage.product(**ON_BOARD).ask(text, seconds=_PATIENCE)
    assert re.search(SUGGESTED[language][text], answer.reply), answer.reply
    assert "small model on board" not in answer.reply, answer.reply
    records = journal_law(answer.journal)
    assert any(record.kind == "result" and record.text("status") == "ok" for record in records)
    assert answer.status == "done"
    if "shopping.md" in text:
        written = (answer.journal.parent / "workspace" / "shopping.md").read_text(encoding="utf-8")
        assert re.search(_LISTED[language], written), written


def test_a_session_goes_on_as_in_readme(stage: Stage) -> None:
    product = stage.product(**ON_BOARD)
    session = None
    for text, printed in {**_COMMANDS, **_LATER}.items():
        answer = product.ask(text, session=session, seconds=_PATIENCE)
        session = answer.session
        assert answer.status == "done"
        results = [record.body for record in journal_law(answer.journal) if record.kind == "result"]
        assert results[-1] == printed, answer.reply


def test_the_guide_s_commands_end_right(stage: Stage, tmp_path: Path) -> None:
    """In a directory of the reader's: one only looks, the other is read from standard input."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "README.md").write_text(
        "# Kettle\n\nA program that tells when the tea is ready.\n", encoding="utf-8"
    )
    (mine / "tea.txt").write_text("Assam\n", encoding="utf-8")
    product = stage.product(**ON_BOARD)

    [(looks, pattern)] = _LOOKS.items()
    answer = product.ask(looks, "--intent", "0", "--workspace", str(mine))
    assert re.search(pattern, answer.reply), answer.reply

    [(piped, pattern)] = _PIPED.items()
    ran = product.run("run", "--workspace", str(mine), "--intent", "1", "-", stdin=piped)
    assert ran.status == 0, ran
    assert re.search(pattern, ran.stdout, re.IGNORECASE), ran


def test_hello_is_answered_at_once(stage: Stage) -> None:
    answer = stage.product(**ON_BOARD).ask("hi")
    assert re.search(r"\b(hi|hello|help)\b", answer.reply, re.IGNORECASE), answer.reply
    assert answer.usage["model_calls"] == 1
    assert not [record for record in journal_law(answer.journal) if record.kind == "result"]


def test_its_answers_are_marked_on_the_terminal(stage: Stage) -> None:
    ran = stage.product(**ON_BOARD).run("run", "Good night")
    assert ran.status == 0, ran
    assert "the small model on board answered" in ran.stderr
    assert "small model" not in ran.stdout


def test_turned_off_it_says_what_to_do(stage: Stage, tmp_path: Path) -> None:
    ran = stage.product(IACT_EMBEDDED="off", IACT_CACHE=str(tmp_path / "cache")).run("run", "hi")
    assert ran.status != 0
    assert "iact model add" in ran.stderr
    assert not (tmp_path / "cache").exists()
