"""Why a call or a change waits for a person, in words for somebody in a hurry.

The gate records its reasons with numbers, which say exactly what was compared. A person who decides reads what would
happen, and what it has to do with.
"""

from __future__ import annotations

import re
from typing import Final

from iact.core.records.calls import Held

_NAMES: Final = r"[^\s,]+(?:, [^\s,]+)*(?: and \d+ more)?"
"""Labels as the gate lists them. Sentences that quote a path or an argument of an agent have other words behind it."""
_TOUCHED: Final = re.compile(
    r"The (call has|changes have) impact \S+ and (?:is|are) touched by (" + _NAMES + r")\."
)


def impact_words(impact: float) -> str:
    """What a call of this impact does, in words."""
    if impact >= 2:
        return "destroys or sends data out"
    return "changes files" if impact > 0 else "only reads"


def in_words(held: Held, impact: float, reason: str) -> str:
    """A reason of the gate without its numbers; other sentences as they are.

    `held`: what holds the call or the changes. `impact`: the call's, or the highest of the changes that wait together.
    """
    if held == "impact":
        if impact >= 2:
            return "Overwriting and deleting needs your OK."
        return "Changing files needs your OK."

    # Only a whole sentence: a path within another one can have any words.
    touched = _TOUCHED.fullmatch(reason) if held == "provenance" else None
    if touched is None:
        return reason

    names = touched[2]
    if touched[1] == "changes have":
        return f"The agents that made these changes have read {names}, so they need your OK."
    if impact >= 2:
        return f"It destroys or sends data out, and text from {names} may be behind it."
    return f"It changes something, and text from {names} may be behind it."
