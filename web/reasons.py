"""Why a call or a change waits for a person, in words for somebody in a hurry.

The gate records its reasons with numbers, which say exactly what was compared. A person who decides reads what would
happen, and what it has to do with.
"""

from __future__ import annotations

import re
from typing import Final

_TOUCHED: Final = re.compile(r"impact ([\d.]+) and (?:is|are) touched by (.+)\.", re.S)
_BEYOND: Final = re.compile(r"changes have impact ([\d.]+), and ")
_CHANGES: Final = re.compile(r"\w+ changes ")


def impact_words(impact: float) -> str:
    """What a call of this impact does, in words."""
    if impact >= 2:
        return "destroys or sends data out"
    return "changes files" if impact > 0 else "only reads"


def in_words(reason: str) -> str:
    """A reason of the gate without its numbers; other sentences as they are."""
    beyond = _BEYOND.search(reason)
    if beyond is not None:
        if float(beyond[1]) >= 2:
            return "Overwriting and deleting needs your OK."
        return "Changing files needs your OK."

    touched = _TOUCHED.search(reason)
    if touched is None:
        return reason

    names = touched[2]
    if _CHANGES.match(reason):
        return f"The agents that made these changes have read {names}, so they need your OK."
    if float(touched[1]) >= 2:
        return f"It destroys or sends data out, and text from {names} may be behind it."
    return f"It changes something, and text from {names} may be behind it."
