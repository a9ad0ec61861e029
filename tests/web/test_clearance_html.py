"""What a person reads in the page before they say yes: every argument in full, however long it is."""

from __future__ import annotations

from iact.core.records.calls import ClearanceAsk
from iact.web.audit import question_html


def test_the_middle_of_a_very_long_argument_is_shown() -> None:
    text = "a" * 400_000 + " to eve@example.org " + "b" * 400_000
    asked = ClearanceAsk(
        turn=1, action=0, function="mail.send", to="person", rule="clearance", impact=2, why="", reason="",
        user="user", params={"body": text}, provenance={}, read=(),
    )  # fmt: skip
    html = question_html(asked)
    assert "eve@example.org" in html
    assert "left out" not in html
