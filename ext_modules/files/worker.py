"""Slow work in a separate process that can be killed: a regular expression search or a comparison.

`worker.py search FOLDER_FD FOLDER PATTERN GLOB HIDDEN CONTEXT MOST`, `worker.py search-text FD NAME PATTERN CONTEXT MOST` and
`worker.py diff FD FD NAME NAME`, with descriptors that the module opened. Python's regular expressions may run forever,
and block all other threads meanwhile.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence

LARGEST = 8 << 20
WIDEST = 400


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == "search":
        descriptor, folder, pattern, glob, hidden, context, most = arguments[1:]
        skipped = Skipped(hidden=bool(hidden))
        files = texts(int(descriptor), folder, glob, skipped)
        return search(files, re.compile(pattern), int(context), int(most), skipped)

    if arguments[0] == "search-text":
        text, name, pattern, context, most = arguments[1:]
        lines = opened_text(int(text)).splitlines()
        count = hits(name, lines, re.compile(pattern), int(context), int(most))
        if not count:
            noun = "line" if len(lines) == 1 else "lines"
            print(f"[Nothing matches in {len(lines):,} {noun}.]")
        return 3 if count > int(most) else 0

    before, after, old, new = arguments[1:]
    return diff(int(before), int(after), old, new)


class Skipped:
    """What a search leaves out, counted, so that nobody takes "nothing matches" for more than it is."""

    def __init__(self, *, hidden: bool) -> None:
        self.shows_hidden = hidden
        self.hidden = 0
        self.other_names = 0
        self.not_text = 0
        self.large: list[str] = []

    def skips(self, name: str) -> bool:
        """Whether a file or folder is left out for its name."""
        is_left_out = name.startswith(".") and not self.shows_hidden
        self.hidden += is_left_out
        return is_left_out

    def said(self, *, found: bool) -> str:
        """What was left out, for the end of a sentence. Of a search that found something, only large files."""
        parts: list[str] = []
        if self.large:
            parts.append(f"{len(self.large):,} over 8 MB ({', '.join(self.large[:5])})")
        if found:
            return ", ".join(parts)

        counts = (
            (self.hidden, "hidden (hidden=true)"),
            (self.not_text, "not text"),
            (self.other_names, "of other names"),
        )
        parts += [f"{count:,} {reason}" for count, reason in counts if count]
        return ", ".join(parts)


def search(
    texts: Iterable[tuple[str, str]], pattern: re.Pattern[str], context: int, most: int, skipped: Skipped
) -> int:
    """Print the lines that match, as PATH:LINE:TEXT. Return 3 if there are more than `most`.

    `texts`: path and content of each file.
    """
    left = most
    files = 0
    for path, text in texts:
        files += 1
        left -= hits(path, text.splitlines(), pattern, context, left)
        if left < 0:
            return 3

    any_hit = left < most
    left_out = skipped.said(found=any_hit)
    if not any_hit:
        noun = "file" if files == 1 else "files"
        rest = f"; left out: {left_out}" if left_out else ""
        print(f"[Nothing matches in {files:,} {noun}{rest}.]")
    elif left_out:
        print(f"[Left out: {left_out}.]")
    return 0


def hits(path: str, lines: Sequence[str], pattern: re.Pattern[str], context: int, most: int) -> int:
    """Print the lines of one text that match, behind `path`, if it has one. Return how many there are: at most one more
    than `most`, which is not printed."""
    count = 0
    shown = -1
    for index, line in enumerate(lines):
        if not pattern.search(line):
            continue

        count += 1
        if count > most:
            break

        # No line twice, where those around two hits overlap.
        for near in range(max(shown + 1, index - context), min(len(lines), index + context + 1)):
            match = pattern.search(lines[near])
            mark = ":" if match else "-"
            place = f"{path}{mark}{near + 1}" if path else f"{near + 1}"
            at = match.start() if match else 0
            print(f"{place}{mark}{cut(lines[near], at)}")
            shown = near
    return count


def opened_text(descriptor: int) -> str:
    """The text that an opened file holds."""
    with open(descriptor, encoding="utf-8", errors="replace", newline="", closefd=False) as stream:
        stream.seek(0)
        return stream.read()


def texts(descriptor: int, folder: str, glob: str, skipped: Skipped) -> Iterator[tuple[str, str]]:
    """Path and content of each text file below an opened folder, in order, without links and, mostly, hidden files.

    Paths begin with `folder`, so that they are relative to the workspace.
    """
    for parent, folders, names, opened in os.fwalk(".", dir_fd=descriptor, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if not skipped.skips(name))
        for name in sorted(names):
            if skipped.skips(name):
                continue

            inner = os.path.normpath(f"{parent}/{name}")
            path = os.path.join(folder, inner)
            if glob and not matches(path, name, glob) and not matches(inner, name, glob):
                skipped.other_names += 1
                continue

            text = content(opened, name, path, skipped)
            if text is not None:
                yield path, text


def matches(path: str, name: str, glob: str) -> bool:
    """Whether a file fits a pattern: with a slash in it, its path, else its name."""
    compared = path if "/" in glob else name
    return fnmatch.fnmatchcase(compared, glob)


def content(folder: int, name: str, path: str, skipped: Skipped) -> str | None:
    """The text of a file; None if it is a link, is not text, or is large."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None

    with open(file, "rb") as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > LARGEST:
            skipped.large.append(path)
            return None
        data = stream.read(LARGEST)

    if b"\0" in data[:8192]:
        skipped.not_text += 1
        return None
    return data.decode("utf-8", "replace")


def cut(line: str, at: int) -> str:
    """A line, or the part of a very long one around the character `at`."""
    if len(line) <= WIDEST:
        return line
    start = max(0, min(at - WIDEST // 2, len(line) - WIDEST))
    end = start + WIDEST
    before = f"[{start:,} characters] " if start else ""
    after = f" [{len(line) - end:,} characters]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def diff(before: int, after: int, old: str, new: str) -> int:
    """Print a unified diff of the contents of two descriptors."""
    texts = []
    for descriptor in (before, after):
        with open(descriptor, encoding="utf-8", newline="", closefd=False) as stream:
            stream.seek(0)
            texts.append(stream.read().splitlines(keepends=True))

    for line in difflib.unified_diff(texts[0], texts[1], f"a/{old}", f"b/{new}"):
        print(line, end="")
        if not line.endswith("\n"):
            print("\n\\ No newline at end of file")
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # it is a file here
    sys.exit(main(sys.argv[1:]))
