"""Exact replacements: parse them, and apply them to a text. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

_OPEN: Final = re.compile(r"<{7}( .*)?")
_MIDDLE: Final = "======="
_CLOSE: Final = re.compile(r">{7}( .*)?")


class EditProblem(Exception):
    """The replacement can't be made and nothing was changed. The message says what to correct."""


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement."""

    old: str
    new: str


def parse(body: str) -> list[Change]:
    """Parse `body`: blocks of old and new lines between `<<<<<<<`, `=======` and `>>>>>>>`.

    Raises:
        EditProblem: it does not consist of such blocks.
    """
    changes: list[Change] = []
    old: list[str] = []
    new: list[str] = []
    where: Literal["outside", "old", "new"] = "outside"
    for number, line in enumerate(body.splitlines(keepends=True), 1):
        bare = line.rstrip("\r\n")
        if where == "outside" and _OPEN.fullmatch(bare):
            old = []
            new = []
            where = "old"
        elif where == "old" and bare == _MIDDLE:
            where = "new"
        elif where == "new" and _CLOSE.fullmatch(bare):
            changes.append(Change("".join(old), "".join(new)))
            where = "outside"

        elif where == "old":
            old.append(line)
        elif where == "new":
            new.append(line)
        elif bare.strip():
            raise EditProblem(
                f"Line {number} of the changes stands outside of a block; write each change as the line "
                "<<<<<<<, the old lines, the line =======, the new lines, the line >>>>>>>."
            )

    if where != "outside":
        raise EditProblem("The last change has no line >>>>>>> at its end; add it.")
    return changes


def apply(text: str, changes: Sequence[Change]) -> str:
    """Apply all `changes` to `text`, one after another.

    Raises:
        EditProblem: an old text is empty, does not occur, or occurs more than once.
    """
    for number, change in enumerate(changes, 1):
        which = f"The old text of change {number}" if len(changes) > 1 else "The old text"
        if not change.old:
            raise EditProblem(f"{which} is empty; give the exact text to replace.")

        fitting = _fitting(text, change)
        lines = _lines(text, fitting.old)
        if not lines:
            raise _absent(text, fitting.old, which)
        if len(lines) > 1:
            listed = ", ".join(str(line) for line in lines[:10])
            raise EditProblem(
                f"{which} occurs {len(lines)} times (at lines {listed}); add lines around it until it is unique."
            )
        text = text.replace(fitting.old, fitting.new)
    return text


def _absent(text: str, old: str, which: str) -> EditProblem:
    """Why an old text does not occur. `which`: what it is called."""
    in_line = _ends_in_line(text, old)
    if in_line:
        return EditProblem(
            f"{which} occurs, but line {in_line} of the file goes on behind it; give that line to its end, or "
            "what is to be replaced within one line as old=... and new=...."
        )
    return EditProblem(
        f"{which} does not occur in the file{_nearest(text, old)}; read it again and copy the text exactly."
    )


def _fitting(text: str, change: Change) -> Change:
    """Adapt `change` to the file's line ends, and to a last line without one."""
    if "\r\n" in text and "\r\n" not in change.old:
        change = Change(change.old.replace("\n", "\r\n"), change.new.replace("\n", "\r\n"))
    end = "\r\n" if change.old.endswith("\r\n") else "\n"
    bare = change.old.removesuffix(end)
    if bare and change.old not in text and text.endswith(bare):
        return Change(bare, change.new.removesuffix(end))
    return change


def _lines(text: str, old: str) -> list[int]:
    """Numbers of the lines at which `old` begins, including overlapping occurrences."""
    lines: list[int] = []
    line = 1
    before = 0
    start = text.find(old)
    while start >= 0:
        line += text.count("\n", before, start)
        lines.append(line)
        before = start
        start = text.find(old, start + 1)
    return lines


def _ends_in_line(text: str, old: str) -> int:
    """The number of the line in the middle of which `old` ends without its last line end; 0 if it is not there."""
    bare = old.rstrip("\r\n")
    start = text.find(bare) if bare else -1
    if start < 0:
        return 0
    return text.count("\n", 0, start + len(bare)) + 1


def _nearest(text: str, old: str) -> str:
    """Describe where the first line of `old` occurs, if only white space or the following lines differ."""
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if not first:
        return ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == first:
            return f" (its first line is like line {number}, but spaces or the lines after it differ)"
    return ""
