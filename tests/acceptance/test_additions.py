"""What an agent that has read a stranger adds in a directory of the user's, and what the user's own tools do then."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_hosts import FETCH, leads, web
from tests.acceptance.test_live import ask, pending, session_path
from tests.acceptance.test_scenes import shell

RUNS = "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = touch RAN; false\\n"

WAYS = {
    "make": ("printf 'all:\\n\\ttouch RAN\\n' > GNUmakefile", ["make"], "GNUmakefile"),
    "pytest": (
        "printf 'open(\"RAN\", \"w\")\\n' > conftest.py",
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        "conftest.py",
    ),
    "git": (
        f"mkdir -p docs/objects docs/refs; printf 'ref: refs/heads/main\\n' > docs/HEAD; printf '{RUNS}' > docs/config",
        ["git", "-C", "docs", "status"],
        "docs/HEAD",
    ),
    "program": (
        "mkdir -p bin; printf '#!/bin/sh\\ntouch RAN\\n' > bin/tool; chmod +x bin/tool",
        ["sh", "-c", "PATH=./bin:$PATH tool"],
        "bin/tool",
    ),
    "archive": (
        "mkdir /tmp/a; printf 'all:\\n\\ttouch RAN\\n' > /tmp/a/GNUmakefile; tar -C /tmp/a -cf /tmp/a.tar .;"
        " tar -xf /tmp/a.tar",
        ["make"],
        "GNUmakefile",
    ),
    "renamed": ("printf 'all:\\n\\ttouch RAN\\n' > a; mv a makefile", ["make"], "makefile"),
    "python": (
        "python3 -c 'open(\"GNUmakefile\", \"w\").write(\"all:\\n\\ttouch RAN\\n\")'",
        ["make"],
        "GNUmakefile",
    ),
    "job": (
        "(sleep 0.2; printf 'all:\\n\\ttouch RAN\\n' > GNUmakefile) & wait",
        ["make"],
        "GNUmakefile",
    ),
}  # fmt: skip
"""A command of the agent, one of the user afterwards, and the file that is told of."""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory of the user's, with a Makefile and a test."""
    folder = tmp_path / "mine"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("# A\n")
    (folder / "Makefile").write_text("all:\n\t@echo mine\n")
    (folder / "test_mine.py").write_text("def test_mine(): pass\n")
    return folder


def ran(folder: Path, command: Sequence[str]) -> bool:
    """Whether the stranger's commands run when the user starts a tool of theirs."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=60)
    return bool(list(folder.rglob("RAN")))


def test_the_users_next_command_runs_nothing_of_a_stranger(stage: Stage, mine: Path) -> None:
    with web() as server:
        for way, (command, users, path) in WAYS.items():
            endpoint = stage.endpoint({"/": [FETCH, shell(command), "Done."]})
            product = leads(stage.product(endpoint), server, "docs.test:80")
            allowed = product.run("module", "allow", "web", "docs.test")
            assert allowed.status == 0, allowed
            session, waiting = ask(product, mine, "--intent", "1")

            assert path in waiting, way
            row = pending(product, session)[path]
            assert row["held"] == "provenance", way
            assert str(row["reason"]).startswith(f"{path}: "), way
            assert not ran(mine, users), way
            verified = product.run("replay", session_path(product, session), "--verify")
            assert verified.status == 0, verified


def test_an_agent_that_read_nothing_outside_adds_them_as_before(stage: Stage, mine: Path) -> None:
    commands = [command for command, _, _ in WAYS.values()]
    endpoint = stage.endpoint({"/": [shell("cat Makefile docs/a.md"), *map(shell, commands), "Done."]})
    product: Product = stage.product(endpoint)
    _, waiting = ask(product, mine, "--intent", "1")
    assert waiting == []
    assert ran(mine, ["make"])
