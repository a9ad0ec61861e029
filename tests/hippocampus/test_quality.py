"""The benchmark's promises, on the half of its conversations that the weights were not chosen on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.memory import quality, quiet
from benchmarks.memory.__main__ import compare
from benchmarks.memory.locomo import read
from iact.core.errors import UsageError

_FILE = Path(quality.__file__).parent / "conversations.json"


def test_an_agent_s_search_finds_more_than_the_nearest_ten_and_finds_it_earlier() -> None:
    conversations = read(_FILE)
    plain, ours = asyncio.run(compare([conversations], conversations[2:]))
    assert plain["all"].count == 40
    assert ours["all"].recall10 >= 1.10 * plain["all"].recall10
    assert ours["temporal"].recall10 > plain["temporal"].recall10
    assert ours["all"].recall5 >= 1.10 * plain["all"].recall5
    assert ours["all"].mrr >= 1.10 * plain["all"].mrr


def test_quiet_where_nothing_is_needed() -> None:
    conversations = read(_FILE)
    found = asyncio.run(quiet.measure(conversations, conversations[2:]))
    assert found.needless <= 0.2
    assert found.found >= 0.6
    assert found.tokens <= 200


def test_every_evidence_is_a_turn() -> None:
    for one in read(_FILE):
        ids = {turn.id for turn in one.turns}
        assert all(question.evidence <= ids for question in one.questions)
        assert {question.type for question in one.questions} == {"single-hop", "multi-hop", "temporal"}


def test_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('[{"turns": []}]')
    with pytest.raises(UsageError, match="not in LoCoMo's format"):
        read(file)
