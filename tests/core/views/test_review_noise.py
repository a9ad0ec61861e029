"""What a review folds: what the user's own `.gitignore` names, as git reads it, and nothing that could act."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import pytest

from iact.core.ports import FileChange, FileState
from iact.core.views.review_noise import Noise, NoiseOf

PATHS = (
    "a.log", "deep/a.log", "deep/er/a.log", "build/x", "deep/build/x", "out/keep.txt", "out/lose.txt", "docs/a/b/c.txt",
    "docs/c.txt", "data/one.csv", "data/two/one.csv", "keep.log", "deep/keep.log", "[x].txt", "ab1.tmp", "abz.tmp",
    "#file", "!bang", "with space ", "sub/only.txt", "sub/deep/only.txt", "only.txt", ".env", "node_modules/a/b.js",
)  # fmt: skip


@pytest.mark.parametrize(
    "patterns",
    [
        "*.log", "*.log\n!keep.log", "/a.log", "build/", "build", "out/*\n!out/keep.txt", "out/\n!out/keep.txt",
        "docs/**/c.txt", "**/one.csv", "data/**", "data/*", r"\#file" + "\n" + r"\!bang", "ab[0-9].tmp", "ab[!0-9].tmp",
        "a?z.tmp", "deep/er", "/deep/build/", "# a comment\n\n.env\nnode_modules", "*", "*\n!*/\n!*.txt", "[x].txt",
        r"\[x\].txt", "deep/**/a.log",
    ],
)  # fmt: skip
def test_it_reads_gitignore_as_git_does(tmp_path: Path, patterns: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{patterns}\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("only.txt\n", encoding="utf-8")
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    said = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(PATHS), capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    noise = NoiseOf(tmp_path)
    assert {path for path in PATHS if noise.of(change(path)) == "ignored"} == set(said.split("\0")) - {""}


def change(
    path: str,
    kind: Literal["add", "modify", "delete"] = "add",
    *,
    mode: int = 0o644,
    type: Literal["file", "link"] = "file",
    conflict: bool = False,
) -> FileChange:
    state = FileState(type, mode, 1, "0" * 64 if type == "file" else "", "x" if type == "link" else "")
    was, now = (None if kind == "add" else state), (None if kind == "delete" else state)
    return FileChange(path, kind, was, now, conflict)


OBJECT = f".git/objects/ab/{'c' * 38}"


@pytest.mark.parametrize(
    ("one", "noise"),
    [
        (change("run.log"), "ignored"),
        (change("run.log", "modify"), "ignored"),
        (change("run.log", "delete"), "ignored"),
        (change("run.log", conflict=True), None),
        (change("run.log", mode=0o755), None),
        (change("run.log", type="link"), None),
        (change(OBJECT), "git"),
        (change(f"vendored/{OBJECT}"), "git"),
        (change(OBJECT, "delete"), None),
        (change(".git/objects/info/alternates"), None),
        (change(".git/hooks/pre-commit"), None),
        (change(".git/config"), None),
        (change("pkg/__pycache__/a.pyc"), "cache"),
        (change("pkg/__pycache__/a.pyc", "modify"), None),
        (change("main.py"), None),
    ],
)
def test_what_is_folded(tmp_path: Path, one: FileChange, noise: Noise | None) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n.git/\n", encoding="utf-8")
    assert NoiseOf(tmp_path).of(one) == noise


def test_a_gitignore_that_is_a_link_or_hostile_is_read_as_none(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("*\n", encoding="utf-8")
    (tmp_path / ".gitignore").symlink_to("elsewhere")
    assert NoiseOf(tmp_path).of(change("a")) is None
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").write_text("*a" * 90 + "\n" + "x" * 500 + "\n[\n", encoding="utf-8")
    assert NoiseOf(tmp_path).of(change("a" * 4000 + "b")) is None
