"""The laws that are checked in all acceptance tests do detect violations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from iact.core.errors import ReplayMismatch
from iact.core.journal import encode, read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law, prefix_law
from tests.acceptance.product import NO_MODULES
from tests.records import raw_record


def _forged(journal: Path, records: list[Record], place: Path) -> Path:
    """A journal with these records, numbered and chained anew."""
    content, previous, steps = b"", "00000000", dict[str, int]()
    for n, record in enumerate(records, 1):
        steps[record.agent] = steps.get(record.agent, 0) + 1
        data, previous = encode(replace(record, n=n, step=steps[record.agent], prev=previous))
        content += data
    place.mkdir()
    made = place / journal.name
    made.write_bytes(content)
    return made


def test_laws_can_be_broken(stage: Stage, tmp_path: Path) -> None:
    endpoint = stage.endpoint(
        {"/": ["```CALL a\nHi.\n```", "```CALL a\nAgain.\n```", "Done."], "/a": ["One.", "Two."]}
    )
    answer = stage.product(endpoint, **NO_MODULES).ask("Go.")
    assert prefix_law(endpoint.requests) == 3

    one, two = endpoint.of("/")[:2]
    changed = replace(
        two, messages=(*two.messages[:1], ("user", two.messages[1][1] + "!"), *two.messages[2:])
    )
    with pytest.raises(AssertionError, match="an input changed once it was history"):
        prefix_law([one, changed])
    static = replace(two, messages=(("system", two.messages[0][1] + "!"), *two.messages[1:]))
    with pytest.raises(AssertionError, match="history changed"):
        prefix_law([one, static])
    with pytest.raises(AssertionError, match=r"history became shorter|history changed"):
        prefix_law([two, one])

    records = read_journal(answer.journal).records
    call = next(record for record in records if record.kind == "call")
    result = raw_record(0, call.at, "result", "/", 0, "", {**call.fields, "status": "cancelled"})
    twice = [*records[: call.n], result, result, *records[call.n :]]
    with pytest.raises((AssertionError, ReplayMismatch), match=r"two outcomes|differs"):
        journal_law(_forged(answer.journal, twice, tmp_path / "twice"))
    content = answer.journal.read_bytes()
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "journal.md").write_bytes(content[:-5])
    with pytest.raises(AssertionError, match=re.escape("that are no record")):
        journal_law(torn)
