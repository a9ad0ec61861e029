"""Which files a text names."""

from __future__ import annotations

import pytest

from iact.core import path_names
from iact.core.tree.named_files import NamedFiles

NAMED = [
    ("Improve out.txt.", "out.txt"),
    ("Improve `out.txt`, please.", "docs/out.txt"),
    ("Improve **out.txt**!", "out.txt"),
    ("Is out.txt's end right?", "out.txt"),
    ("Run the tool with --file=out.txt", "out.txt"),
    ("Look at out.txt:12", "out.txt"),
    ("Improve /workspace/docs/out.txt", "docs/out.txt"),
    ("Improve ./docs/out.txt", "docs/out.txt"),
    ("Improve docs/out.txt", "site/docs/out.txt"),
    ("Improve /home/me/project/docs/out.txt", "docs/out.txt"),
    ("Go through docs/ and correct it", "docs/deep/out.txt"),
    ("Go through /home/me/project/docs/", "docs/out.txt"),
    ("Go through src/app", "src/app/main.py"),
    ("Sort the imports of all *.py files", "src/app/main.py"),
    ("Sort the imports in src/*.py", "src/main.py"),
    ("Sort the imports in src/**/*.py", "src/app/main.py"),
    ("Add a line to the changelog", "CHANGELOG.md"),
    ("Correct 'my notes.txt'", "my notes.txt"),
    ("Schreib Änderungen.md um", "Änderungen.md"),
    ("Schreib A\u0308nderungen.md um", "Änderungen.md"),
    ("Исправь отчёт.md", "отчёт.md"),
    ("把out.txt改好", "out.txt"),
    ("请改进报告.md并检查", "报告.md"),
    ("请改进docs/报告.md并检查", "docs/报告.md"),
    ("報告.mdとout.txtを直して", "out.txt"),
    ("out.txt를 고쳐", "out.txt"),
    ("Correct 100%.txt", "100%.txt"),
    ("Correct app/[id].tsx", "app/[id].tsx"),
]
NOT_NAMED = [
    ("Improve out.txt.bak", "out.txt"),
    ("Improve out.txt-old", "out.txt"),
    ("Improve about.txt", "out.txt"),
    ("Improve my.out.txt", "out.txt"),
    ("Improve docs/out.txt", "out.txt"),
    ("Improve docs/out.txt", "src/out.txt"),
    ("Improve the docs", "docs/out.txt"),
    ("Go through docs/", "mydocs/out.txt"),
    ("This is *important* and **bold**.", "out.txt"),
    ("Write a read me", "README.md"),
    ("Take note of it", "note.md"),
    ("my notes and the rest.txt", "my notes.txt"),
    ("请改进报告.md", "告诉.md"),
    ("Work in /workspace/", "out.txt"),
    ("", "out.txt"),
]


@pytest.mark.parametrize(("text", "path"), NAMED)
def test_a_text_names_a_file(text: str, path: str) -> None:
    assert NamedFiles(["Another message.", text]).names(path_names.encode(path))


@pytest.mark.parametrize(("text", "path"), NOT_NAMED)
def test_a_text_does_not_name_a_file(text: str, path: str) -> None:
    assert not NamedFiles(["Another message.", text]).names(path_names.encode(path))


def test_each_of_many_files_is_looked_up_and_not_searched_for() -> None:
    """No file has the whole text looked through for it: that would be ten thousand times a megabyte."""
    files = [f"src/part{number // 100}/my file {number}.py" for number in range(10_000)]
    texts = [f"Message {number}: look/see what my file {number} says, py." for number in range(20_000)]
    looked_through = 0

    class Counting(str):
        def find(self, *arguments: object) -> int:
            nonlocal looked_through
            looked_through += 1
            return -1

    named = NamedFiles([*texts, *files[::1000]])
    named._text = Counting(named._text)
    assert not any(map(named.names, files))
    assert looked_through == 10, "only where all pairs of its words stand behind one another"
