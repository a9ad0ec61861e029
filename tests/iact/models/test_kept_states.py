"""What is kept of static prompts between starts: two installations never delete each other's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iact.models.kept_states import KeptState, kept_state, state_folder

MODEL = "ab" * 32
MONTHS_AGO = 40 * 86_400


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))


def saved(state: KeptState, content: bytes = b"computed") -> None:
    (state_folder() / ".new").write_bytes(content)
    state.put(".new")


def listed() -> set[str]:
    return {path.name for path in state_folder().iterdir()}


def test_two_checkouts_with_other_prompts_both_keep_theirs(tmp_path: Path) -> None:
    mine = kept_state(MODEL, b"my prompt", tmp_path / "mine")
    yours = kept_state(MODEL, b"your prompt", tmp_path / "yours")
    for _ in range(2):
        saved(mine)
        saved(yours)
    assert listed() == {mine.name, yours.name}
    assert mine.find()
    assert yours.find()


def test_a_checkout_replaces_its_own_of_the_same_model(tmp_path: Path) -> None:
    first = kept_state(MODEL, b"first prompt", tmp_path)
    another_model = kept_state("cd" * 32, b"first prompt", tmp_path)
    second = kept_state(MODEL, b"second prompt", tmp_path)
    for state in (first, another_model, second):
        saved(state)
    assert listed() == {second.name, another_model.name}
    assert not first.find()


def test_the_same_content_is_shared_and_outlives_its_first_owner(tmp_path: Path) -> None:
    first = kept_state(MODEL, b"prompt", tmp_path / "first")
    second = kept_state(MODEL, b"prompt", tmp_path / "second")
    saved(first, b"long work")
    assert second.find()
    assert (state_folder() / second.name).samefile(state_folder() / first.name)

    saved(kept_state(MODEL, b"newer prompt", tmp_path / "first"))
    assert (state_folder() / second.name).read_bytes() == b"long work"


def test_what_nobody_used_for_a_month_goes_and_use_keeps_it(tmp_path: Path) -> None:
    unused = kept_state(MODEL, b"one", tmp_path / "one")
    used = kept_state(MODEL, b"two", tmp_path / "two")
    for state in (unused, used):
        saved(state)
        path = state_folder() / state.name
        os.utime(path, (path.stat().st_mtime - MONTHS_AGO,) * 2)

    assert used.find()
    newest = kept_state(MODEL, b"three", tmp_path / "three")
    saved(newest)
    assert listed() == {used.name, newest.name}


def test_a_state_that_is_not_there_is_not_found() -> None:
    assert not kept_state(MODEL, b"prompt").find()
    assert kept_state(MODEL, b"prompt").name == kept_state(MODEL, b"prompt").name
