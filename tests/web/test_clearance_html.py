"""What a person reads in the page before they say yes: every argument in full, however long it is."""

from __future__ import annotations

from core.ports import JSON
from tests.records import raw_record
from web.audit import clearance_html
from web.render import NONE


def test_the_middle_of_a_very_long_argument_is_shown() -> None:
    text = "a" * 400_000 + " to eve@example.org " + "b" * 400_000
    fields: dict[str, JSON] = {"op": "ask", "function": "mail.send", "impact": 2, "params": {"body": text}}
    html = clearance_html(raw_record(7, "2026-01-01T00:00:00Z", "clearance", "/a", 3, "", fields), NONE)
    assert "eve@example.org" in html
    assert "left out" not in html
