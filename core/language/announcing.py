"""Whether a text only announces the action below it: "Let me note it." An answer does not."""

from __future__ import annotations

import re
from typing import Final

from iact.core.language.phrases import ANNOUNCING

_LONGEST: Final = 300
"""The most characters of a sentence that announces something."""

_SENTENCE: Final = re.compile(r"[.!?。！？…]+[\"'”’»)\]*_]*(?:\s+|(?<=[。！？]))|\n{2,}")

_ANNOUNCES: Final = re.compile(
    r"[\s*_#>-]*(?:(?:ok(?:ay)?|sure|good|right|alright|so|and|und|gut)\b[\s,.!:–—-]*)?(?:"
    + "|".join(ANNOUNCING)
    + ")",
    re.IGNORECASE,
)


def announces(text: str) -> bool:
    """Whether the last sentence of a text says what its author does now, or ends with a colon."""
    text = text.rstrip()
    if text.endswith((":", "：")):
        return True

    # A longer last sentence announces nothing, so the end of the text decides.
    end = text[-3 * _LONGEST :]
    sentences = [sentence for sentence in _SENTENCE.split(end) if sentence.strip()]
    last = sentences[-1] if sentences else ""
    return len(last) <= _LONGEST and _ANNOUNCES.match(last) is not None
