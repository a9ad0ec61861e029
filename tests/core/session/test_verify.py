"""Verification notices every way in which the core could have come to something else, and names the record."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.context import prompt
from iact.core.errors import ReplayMismatch
from iact.core.journal.record import encode
from iact.core.language import labels, scanner
from iact.core.ports import JSON
from iact.core.records.record import GENESIS, Record
from iact.core.stored.replay import replay
from iact.core.tree import roles
from tests.core.session.fakes import replies, runtime
from tests.records import with_fields

SCRIPT = {
    "/": ["```CALL a\nTask: $code_1\n```", "```WRITE\n````python\nx\n````\n```", "Done."],
    "/a": ["~~~READ text=$code_1\n~~~\n```VAR v\nx\n```", "From a."],
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    async def main() -> Path:
        async with runtime(tmp_path, replies(SCRIPT)) as opened:
            session = await opened.open()
            await session.ask("Do it with\n\n```python\nprint(1)\n```")
            return session.journal

    path = asyncio.run(main())
    replay(path, verify=True)
    return path


def rewrite(path: Path, change: Callable[[list[Record]], list[Record]]) -> None:
    """Write a changed journal whose numbers and digests are in order again: only the core can tell."""
    records = change(list(replay(path).records))
    data, prev = b"", GENESIS
    for n, record in enumerate(records, 1):
        encoded, prev = encode(dataclasses.replace(record, n=n, prev=prev))
        data += encoded
    path.write_bytes(data)


def first_of(records: list[Record], kind: str, agent: str = "/") -> int:
    return next(n for n, record in enumerate(records) if record.kind == kind and record.agent == agent)


def mismatch(path: Path) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        replay(path, verify=True)
    return caught.value


def test_a_changed_prompt_template_is_noticed(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = dataclasses.replace(prompt.STANDARD, system=prompt.STANDARD.system + " Be kind.")
    monkeypatch.setattr(roles, "STANDARD", changed)
    assert mismatch(journal).n == 1


def test_a_changed_label_is_noticed_at_the_first_turn_that_holds_it(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "message_label", lambda source, about: f"From {source}:")
    records = list(replay(journal).records)
    assert mismatch(journal).n == records[first_of(records, "turn")].n


def test_a_changed_scanner_rule_is_noticed(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tildes fence nothing any more.
    monkeypatch.setattr(scanner, "_FIRST", re.compile(r" {0,3}```"))
    monkeypatch.setattr(scanner, "_LATER", re.compile(r"\n {0,3}```"))
    records = list(replay(journal).records)
    assert mismatch(journal).n in range(first_of(records, "turn", "/a") + 1, len(records))


@pytest.mark.parametrize(
    ("kind", "agent", "field", "value"),
    [
        ("turn", "/", "context", "0" * 16),
        ("turn", "/a", "seen", {"now": "yesterday"}),
        ("turn", "/", "took", []),
        ("call", "/", "args", "0" * 16),
        ("call", "/", "budget", 1),
        ("call", "/a", "function", "t.write"),
        ("result", "/a", "action", 7),
        ("result", "/a", "status", "incomplete"),
        ("open", "/", "bounds", {"tokens": 5000}),
    ],
)
def test_a_changed_outcome_is_noticed(journal: Path, kind: str, agent: str, field: str, value: JSON) -> None:
    records = list(replay(journal).records)
    at = first_of(records, kind, agent)

    def change(all_records: list[Record]) -> list[Record]:
        one = all_records[at]
        all_records[at] = with_fields(one, {**one.fields, field: value})
        return all_records

    rewrite(journal, change)
    assert mismatch(journal).n >= at + 1


@pytest.mark.parametrize(
    ("kind", "agent"), [("say", "/"), ("turn", "/"), ("result", "/a"), ("reply", "/a"), ("spawn", "/a")]
)
def test_a_missing_record_is_noticed(journal: Path, kind: str, agent: str) -> None:
    at = first_of(list(replay(journal).records), kind, agent)
    rewrite(journal, lambda records: records[:at] + records[at + 1 :])
    assert mismatch(journal).n >= at + 1


def test_a_changed_body_is_noticed(journal: Path) -> None:
    at = first_of(list(replay(journal).records), "result", "/a")

    def change(records: list[Record]) -> list[Record]:
        records[at] = dataclasses.replace(records[at], body="something else")
        return records

    rewrite(journal, change)
    assert mismatch(journal).n > at + 1


def test_a_swapped_pair_is_noticed(journal: Path) -> None:
    at = first_of(list(replay(journal).records), "call", "/a")

    def change(records: list[Record]) -> list[Record]:
        records[at], records[at + 1] = records[at + 1], records[at]
        return records

    rewrite(journal, change)
    assert mismatch(journal).n in (at + 1, at + 2)
