"""The counts of a commit's source, in a small repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.house import __main__ as house

SOURCE = """class One:
    def two(self) -> int:

        return 2


async def three() -> None: ...
"""


def test_a_commit_is_counted_without_what_nobody_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("core/a.py", "tests/test_a.py", "protos/iact/a_pb2.py", "core/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SOURCE)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@a.test", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    assert house.counted("HEAD", tests=False) == house.Source(files=[4], functions=[1, 2], classes=1)
    assert len(house.counted("HEAD", tests=True).files) == 1
