"""Public names: the exports of `core`, the names at the top of the repository, and the make targets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iact import core

ROOT = Path(__file__).resolve().parents[1]

EXPORTED = {"Agent", "Runtime", "Session"}

REQUIRED = {
    ".ci", ".gitignore", "Makefile", "README.md", "core", "docs", "ext_modules", "iact",
    "protos", "pyproject.toml", "requirements.lock", "sandbox", "tests", "web",
}  # fmt: skip
PERMITTED = REQUIRED | {
    "accounts", ".dockerignore", ".pre-commit-config.yaml", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "LICENSE",
    "MANIFEST.in", "SECURITY.md", "benchmarks", "cluster", "compose.yaml", "deploy", "examples", "faces", "hippocampus", "mkdocs.yml",
}  # fmt: skip

TARGETS = ("setup", "run", "test", "lint", "types", "bench", "docs", "release")


def test_core_exports_what_embedding_needs() -> None:
    exported = list(core.__all__)
    assert set(exported) >= EXPORTED
    assert len(exported) == len(set(exported))
    assert all(hasattr(core, name) for name in exported)


def in_a_clone(code: str) -> subprocess.CompletedProcess[str]:
    """Run a script at the top of the repository."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def test_what_is_exported_is_the_same_by_both_names() -> None:
    done = in_a_clone("import core, iact.core\nassert core.Runtime is iact.core.Runtime")
    assert done.returncode == 0, done.stderr


def test_the_rest_of_a_clones_folder_is_refused_by_a_second_name() -> None:
    done = in_a_clone("from core.ports import ModuleHost")
    assert done.returncode == 1
    assert "core.ports is iact.core.ports" in done.stderr


def top_level_names() -> set[str]:
    """The names at the top of the repository that are, or would be, under version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name.split("/")[0] for name in listed.split("\0") if name}


def test_the_repository_has_the_agreed_names_at_its_top() -> None:
    names = top_level_names()
    assert names <= PERMITTED
    assert names >= REQUIRED


@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target(target: str) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_ci_calls_make_test() -> None:
    assert "make --no-print-directory test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
