"""The fuzzer of the shell classifier, for a short while, and what it found before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iact.core.gate.shell.walk import Walk
from tests.core.gate.fuzz import Fuzzer, is_look, kept
from tests.core.gate.jail import folder_for_jail, need_bubblewrap
from tests.rounds import rounds


@pytest.fixture
def fuzzer() -> Iterator[Fuzzer]:
    need_bubblewrap()
    with folder_for_jail() as folder:
        yield Fuzzer(folder, seed=20)


def test_what_was_found_before_is_no_look() -> None:
    assert [script for script in kept() if is_look(script)] == []


def test_what_counts_as_a_look_changes_nothing(fuzzer: Fuzzer) -> None:
    for _ in range(rounds(2)):
        assert fuzzer.batch() == []


def test_it_finds_what_one_reader_alone_misses(fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second reader there are finds among few scripts; a find is still one when it is made smaller."""
    monkeypatch.setattr(Walk, "_compare", lambda walk, data: None)
    find = next(find for _ in range(30) for find in fuzzer.batch())
    small = fuzzer.shrink(find)
    assert len(small.script) <= len(find.script)
    monkeypatch.undo()
    assert is_look(find.script) is False
    assert is_look(small.script) is False
