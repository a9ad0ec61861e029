"""The lines by which people follow a session: the same on a terminal and for the programs that drive one."""

from __future__ import annotations

from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.records.calls import ClearanceAsk
from iact.core.records.content import Content
from iact.core.records.hosts import HostAsk, HostReach
from iact.core.records.kinds import FORMAT
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.views.progress import newest_line, progress_line

JOURNALS = Path(__file__).parents[2] / "journals" / FORMAT


def lines(journal: str) -> list[str]:
    """What people were told of a recorded session."""
    records = read_journal(JOURNALS / journal / "journal.md").records
    return [told for one in records if (told := progress_line(one))]


def record(content: Content, body: str = "") -> Record:
    return Record(n=7, at="2026-01-01T00:00:00Z", agent="/coder", step=1, content=content, body=body)


def asked(to: str) -> ClearanceAsk:
    assert to in ("person", "endpoint")
    return ClearanceAsk(
        turn=1, action=1, function="shell.run", to="person" if to == "person" else "endpoint",
        rule="clearance", impact=1.0, why="", reason="", user="ada", params={}, provenance={}, read=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "body", "line"),
    [
        (asked("person"), "", "/coder: shell.run waits for your approval (record 7)"),
        (asked("endpoint"), "", ""),
        (
            HostAsk(module="web", host="new.example", port=443, seconds=1.0), "",
            "/coder: web waits for your approval to reach new.example (record 7)",
        ),
        (
            HostReach(module="web", host="new.example", port=443, by="session"), "",
            "/coder: web reaches new.example (allowed by session)",
        ),
        (Notice(level="warning", code="x"), "Modules are off.", "Modules are off."),
    ],
)  # fmt: skip
def test_what_a_record_says(content: Content, body: str, line: str) -> None:
    assert progress_line(record(content, body)) == line


def test_a_recorded_plan_is_followed_step_by_step_and_its_last_line_is_the_newest() -> None:
    told = lines("plan-static")
    assert any(one.endswith(" is running") for one in told)
    assert any(one.endswith(" is executed") for one in told)
    assert not any(" is ready" in one for one in told), "a state that nobody has to know of"
    assert newest_line(read_journal(JOURNALS / "plan-static" / "journal.md").records) == told[-1]
    assert newest_line([]) == ""
