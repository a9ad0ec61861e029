"""Reads fixture files: cases of a title, an input and what is expected of it.

    # title
    .
    input
    .
    expected
    .

Characters that an editor would hide are written as signs: → tab, ␍ carriage return, ␀ NUL, ⍽ no-break
space, ␣ zero-width space, ⏎ line separator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("fixtures")
_SIGNS: Final = str.maketrans({"→": "\t", "␍": "\r", "␀": "\0", "⍽": "\xa0", "␣": "\u200b", "⏎": "\u2028"})
_CASE: Final = re.compile(
    r"^# (?P<title>.+)\n\.\n(?P<input>(?s:.*?))^\.\n(?P<expected>(?s:.*?))^\.\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Case:
    """One case; `input` without the newline before the closing dot, hidden characters put in."""

    title: str
    input: str
    expected: str

    def __str__(self) -> str:
        return self.title


def cases(name: str) -> list[Case]:
    """The cases of the fixture file `name`, in order; each title stands once."""
    text = (FOLDER / name).read_text("utf-8")
    found = [
        Case(match["title"], match["input"].removesuffix("\n").translate(_SIGNS), match["expected"])
        for match in _CASE.finditer(text)
    ]
    assert len(found) * 3 == len(re.findall(r"^\.$", text, re.MULTILINE)), (
        f"a case of {name} is not well formed"
    )
    assert len({case.title for case in found}) == len(found), f"{name} has a title twice"
    return found
