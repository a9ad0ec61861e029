"""Slow work in a separate process that can be killed: a regular expression search or a comparison.

`worker.py search FOLDER_FD PATTERN GLOB CONTEXT MOST`, `worker.py search-text FD PATTERN CONTEXT MOST` and
`worker.py diff FD FD NAME NAME`, with descriptors that the module opened. Python's regular expressions may run forever, and block all other threads meanwhile.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence

LARGEST = 8 << 20
WIDEST = 400


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == "search":
        folder, pattern, glob, context, most = arguments[1:]
        return search(int(folder), re.compile(pattern), glob, int(context), int(most))
    if arguments[0] == "search-text":
        text, pattern, context, most = arguments[1:]
        lines = opened_text(int(text)).splitlines()
        shown = hits("", lines, re.compile(pattern), int(context), int(most))
        return 3 if shown > int(most) else 0
    before, after, old, new = arguments[1:]
    return diff(int(before), int(after), old, new)


def search(folder: int, pattern: re.Pattern[str], glob: str, context: int, most: int) -> int:
    """Print the lines that match, as PATH:LINE:TEXT. Return 3 if there are more than `most`."""
    left = most
    for path, text in texts(folder, glob):
        left -= hits(path, text.splitlines(), pattern, context, left)
        if left < 0:
            return 3
    return 0


def hits(path: str, lines: Sequence[str], pattern: re.Pattern[str], context: int, most: int) -> int:
    """Print the lines of one text that match, behind `path`, if it has one. Return how many there are: at most one more
    than `most`, which is not printed."""
    found = 0
    shown = -1
    for index, line in enumerate(lines):
        if not pattern.search(line):
            continue

        found += 1
        if found > most:
            break

        for near in range(max(shown + 1, index - context), min(len(lines), index + context + 1)):
            mark = ":" if pattern.search(lines[near]) else "-"
            place = f"{path}{mark}{near + 1}" if path else f"{near + 1}"
            print(f"{place}{mark}{cut(lines[near])}")
            shown = near
    return found


def opened_text(descriptor: int) -> str:
    """The text that an opened file holds."""
    with open(descriptor, encoding="utf-8", errors="replace", newline="", closefd=False) as stream:
        stream.seek(0)
        return stream.read()


def texts(folder: int, glob: str) -> Iterator[tuple[str, str]]:
    """Path and content of each text file below `folder`, in order, without links and hidden files."""
    for parent, folders, names, opened in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.normpath(f"{parent}/{name}")
            if not name.startswith(".") and (not glob or matches(path, name, glob)):
                text = content(opened, name)
                if text is not None:
                    yield path, text


def matches(path: str, name: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(path if "/" in glob else name, glob)


def content(folder: int, name: str) -> str | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with open(file, "rb") as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        data = stream.read(LARGEST)
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def cut(line: str) -> str:
    return line if len(line) <= WIDEST else line[:WIDEST] + " [...]"


def diff(before: int, after: int, old: str, new: str) -> int:
    """Print a unified diff of the contents of two descriptors."""
    texts = []
    for descriptor in (before, after):
        with open(descriptor, encoding="utf-8", newline="", closefd=False) as stream:
            stream.seek(0)
            texts.append(stream.read().splitlines(keepends=True))
    for line in difflib.unified_diff(texts[0], texts[1], f"a/{old}", f"b/{new}"):
        print(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", end="")
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # it is a file here
    sys.exit(main(sys.argv[1:]))
