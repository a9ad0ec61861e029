"""Everything that fuzzing found worth keeping (`fuzz.py`) is read without a failure, and alike in any chunks."""

from __future__ import annotations

import pytest

from tests.core.language.fuzz import CORPUS, LONGEST, check, decoded, seeds


def test_the_corpus_keeps_the_laws() -> None:
    found = seeds()
    assert len(found) >= 100
    for data in found:
        assert len(data) <= LONGEST
        check(decoded(data))


def test_a_text_that_breaks_a_law_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.core.language.fuzz.theirs", lambda text: [])
    with pytest.raises(AssertionError, match="other fences"):
        check("```\nx\n```")


def test_files_are_named_after_their_content() -> None:
    assert all(len(path.name) == 40 for path in CORPUS.iterdir()), "as libFuzzer names them"
