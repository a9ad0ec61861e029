"""Files that act by themselves are told apart by name, place and mode. The tools are run elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate.additions import KINDS, acting_kind
from iact.core.gate.effects import rate
from iact.core.gate.policy import EffectRule, Policy
from iact.core.ports import FileChange, FileState
from tests.core.gate.acting_scenes import SAMPLES

FILE = FileState("file", 0o644, 5, "a" * 64)
PROGRAM = FileState("file", 0o755, 5, "a" * 64)

ORDINARY = (
    "README.md", "src/main.py", "docs/a.md", "data.json", "src/hooks/useThing.ts", "config", "refs/x", "objects/x",
    "Makefile.md", "notes.txt", "images/a.png", "src/lib.rs", "index.js", "package.json.md", "main.c",
    ".gitignore", ".editorconfig", "deep/er/report.csv", "contest.py", "my_json.py", "headline",
)  # fmt: skip


def sample_state(name: str) -> FileState:
    """What is at the sample's path: the mode is what makes a program one."""
    return PROGRAM if name == "executable" else FILE


def test_every_kind_has_a_sample() -> None:
    assert {kind.name for kind in KINDS} == SAMPLES.keys()
    assert len(KINDS) >= 40


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_of_its_kind_in_any_folder_and_case(name: str) -> None:
    path, state = SAMPLES[name], sample_state(name)
    for place in (path, f"deep/er/{path}", path.upper()):
        found = acting_kind(place, state)
        assert found is not None, place
        assert found.name == name, place


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_person_is_told_in_a_sentence(kind: object) -> None:
    reason = str(getattr(kind, "reason", ""))
    assert reason[:1] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert reason.endswith(".")
    assert len(reason) < 140


@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_file_is_of_no_kind(path: str) -> None:
    assert acting_kind(path, FILE) is None


def test_a_folder_alone_does_nothing_and_a_link_is_what_its_name_says() -> None:
    assert acting_kind(".git", FileState("folder", 0o755)) is None
    assert acting_kind("Makefile", FileState("folder", 0o755)) is None
    link = acting_kind("Makefile", FileState("link", 0o777, target="notes.txt"))
    assert link is not None
    assert link.name == "makefile"


@pytest.mark.parametrize("mode", [0o755, 0o744, 0o654, 0o645, 0o100])
def test_whatever_can_be_run_is_a_program(mode: int) -> None:
    found = acting_kind("anything.txt", FileState("file", mode))
    assert found is not None
    assert found.name == "executable"


@given(st.text(max_size=30), st.integers(0, 0o7777))
def test_no_path_is_too_strange_to_be_judged(path: str, mode: int) -> None:
    found = acting_kind(path, FileState("file", mode))
    assert found is None or found in KINDS
    if mode & 0o111:
        assert found is not None


@pytest.mark.parametrize("name", SAMPLES)
def test_no_rule_of_a_policy_hides_the_kind(name: str) -> None:
    policy = Policy(frozenset({"one"}), effects=frozenset({EffectRule("**", impact=1, scope="one")}))
    change = FileChange(SAMPLES[name], "add", None, sample_state(name))
    effect = rate(change, None, policy)
    assert effect.acts is not None
    assert effect.acts.name == name


def test_what_is_taken_away_does_not_act() -> None:
    assert rate(FileChange("Makefile", "delete", FILE, None), FILE, Policy()).acts is None


def test_the_table_of_attacks_has_every_kind() -> None:
    """If this fails, write the row in docs/measurements/attacks.md as the others are."""
    page = (Path(__file__).parents[3] / "docs" / "measurements" / "attacks.md").read_text(encoding="utf-8")
    for kind in KINDS:
        by = "the tool was run" if kind.shown else "its documentation"
        assert f"| {kind.name} | {kind.tool} | {by} | waits | – | – | – | {kind.reason} |" in page
