"""Without any endpoint: what the page suggests and what README shows is played on the model on board, and ends right.

The whole product takes part, with its real model and its containers. What else it can do is measured by
`python -m benchmarks.everyday`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import ROOT

ON_BOARD = {"IACT_EMBEDDED": "1.5b"}

SUGGESTED = {
    "Show me the disk usage of /tmp in your sandbox": r"/tmp.*\d|\d.*/tmp",
    "Write a Python script that prints the first ten square numbers, and run it": r"\b(81|100)\b|square",
    "Write a small file in your workspace and count its lines": r"\d|\bone\b",
}
"""The suggestions of the first page, and what their answers hold."""

_COMMANDS = {"How many lines do the files in /etc have?": r"\d{2,}"}
"""What README and the guides ask with `iact run`, where no files of the reader's are needed."""


def test_these_are_the_suggestions_of_the_page() -> None:
    script = (ROOT / "web/static/js/dialogue/welcome.js").read_text(encoding="utf-8")
    [listed] = re.findall(r"const SUGGESTIONS = \[(.*?)\];", script, re.DOTALL)
    assert re.findall(r't\("(.*?)"\)', listed) == list(SUGGESTED)


def test_these_are_the_commands_of_readme() -> None:
    asked = re.findall(
        r'^\S*iact run "(.*)"$', (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert asked == list(_COMMANDS)


@pytest.mark.parametrize("text", [*SUGGESTED, *_COMMANDS])
def test_what_a_newcomer_tries_first_ends_right(stage: Stage, text: str) -> None:
    answer = stage.product(**ON_BOARD).ask(text)
    assert re.search({**SUGGESTED, **_COMMANDS}[text], answer.reply), answer.reply
    records = journal_law(answer.journal)
    assert any(record.kind == "result" and record.text("status") == "ok" for record in records)
    assert answer.status == "done"


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
    assert "Connect a model" in ran.stderr
    assert not (tmp_path / "cache").exists()
