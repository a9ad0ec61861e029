"""Whether a message to a caller is a question. The one place that decides; all that follows is derived from it."""

from __future__ import annotations

import re
from typing import Final

from iact.core.language.scanner import scan

_LONGEST: Final = 1200
"""The most characters of a question. A longer message has a result in it, whatever its last sentence asks."""

_LONGEST_BLOCK: Final = 12
"""The most lines of a code block that a question may quote."""

_MARKED: Final = re.compile(r"\W*questions?\W*:", re.IGNORECASE)
"""How a message begins that says itself that it is a question."""

_MARKS: Final = "?\uff1f\ufe56\u061f\u037e\u055e\u1367\u2e2e\u2047\u2048\u2049\u203d\ua60f\ua6f7\u2753\u2754"
"""Question marks of all scripts: two Latin ones, Arabic, Greek, and so on; doubled ones; ornaments."""

_HINT: Final = re.compile(f"[{_MARKS}]|question", re.IGNORECASE)
"""What no question is without. Most messages have nothing of it, and need not be scanned."""

_BEHIND: Final = "\"'\u201d\u2019\u00bb\u203a\u300d\u300f)\uff09]*_~` \t"
"""What may follow on a question mark: closing quotes, brackets and emphasis."""

_CHOICE: Final = re.compile(r"\s*(?:[-*+\u2022]|\w{1,2}[.)])\s")
"""How a line of a list begins. A list below a question says what there is to choose from."""


def asks(text: str) -> bool:
    """Whether a message asks its reader something, and is no result.

    Its last paragraph outside of code ends with a question mark, or it says itself that it is a question. A message with
    so much else in it that it may be a result is none: taking a result for a question would lose it.
    """
    if len(text) > _LONGEST or _HINT.search(text) is None:
        return False

    prose = []
    position = 0
    for block in scan(text, lambda name: False).blocks:
        if block.body.count("\n") >= _LONGEST_BLOCK:
            return False
        prose.append(text[position : block.start])
        position = block.end
    prose.append(text[position:])

    # A block or a list after the question belongs to it: "Is this the line?", "Which of these?"
    lines = [line for line in "".join(prose).splitlines() if line.strip()]
    above = lines.copy()
    while above and _CHOICE.match(above[-1]):
        above.pop()
    ends_asking = any(part[-1].rstrip(_BEHIND).endswith(tuple(_MARKS)) for part in (lines, above) if part)
    return ends_asking or (bool(lines) and _MARKED.match(lines[0]) is not None)
