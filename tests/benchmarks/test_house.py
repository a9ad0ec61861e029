"""The counts of a commit's source, in a small repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from textwrap import indent

import pytest

from benchmarks.house import __main__ as house
from benchmarks.house import functions

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


_LONG = "def long(x):\n    '''Says something.'''\n" + "    x += 1\n" * 12
_SHORT = "def short(x):\n" + "    x += 1\n" * 11


def test_functions_are_chosen_by_the_seed_alone_and_only_long_ones() -> None:
    before = {"b.py": _LONG + "\n" + _SHORT, "a.py": "class A:\n" + indent(_LONG, "    ")}

    both = functions.chosen(before, seed=1)
    assert both == [functions.Place("a.py", "A.long"), functions.Place("b.py", "long")]

    many = {f"{number}.py": _LONG for number in range(50)}
    assert functions.chosen(many, seed=1) == functions.chosen(dict(reversed(many.items())), seed=1)
    assert functions.chosen(many, seed=1) != functions.chosen(many, seed=2)
    assert len(functions.chosen(many, seed=1)) == functions.MOST


def test_a_function_is_shown_as_it_is_written_and_one_that_is_gone_is_not() -> None:
    files = {"a.py": "class A:\n" + indent(_LONG, "    ")}
    assert functions.source_of(files, functions.Place("a.py", "A.long")) == _LONG.rstrip("\n")
    assert functions.source_of(files, functions.Place("a.py", "long")) == ""
    assert functions.source_of(files, functions.Place("b.py", "long")) == ""
