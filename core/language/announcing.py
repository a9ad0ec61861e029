"""Whether a text only announces the action below it: "Let me note it." An answer does not."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 300
"""The most characters of a sentence that announces something."""

_SENTENCE: Final = re.compile(r"[.!?。！？…]+[\"'”’»)\]*_]*(?:\s+|(?<=[。！？]))|\n{2,}")

_OPENINGS: Final = (
    # English
    r"(?:let me|let['’]?s|let us|i['’]?ll|i will|i['’]?m going to|i am going to|i should|i need to|i want to)\b",
    r"(?:first|now|next|then|before (?:that|i)|to begin|for later|for now)\b",
    r"(?:i )?(?:now |first |also )?(?:note|notes|noting|keep|keeping|save|saving|store|storing|record|recording)\b",
    # German
    r"(?:ich (?:werde|merke|notiere|speichere|halte|lege|sichere|behalte)|lass(?:t)? (?:mich|uns)|zuerst|zunächst|erst|jetzt|nun|als nächstes)\b",
    # French
    r"(?:je vais|je (?:note|garde|conserve|mémorise)|laisse[zr]?-moi|d['’]abord|maintenant|ensuite)\b",
    # Spanish
    r"(?:voy a|déjame|déjeme|primero|ahora|guardo|guardaré|anoto)\b",
    # Italian
    r"(?:(?:ora |adesso )?(?:salvo|annoto|memorizzo)|lasciami|prima|adesso|ora)\b",
    # Portuguese
    r"(?:vou|deixe-me|primeiro|agora|guardo|anoto)\b",
    # Polish, Russian
    r"(?:najpierw|teraz|zapisuję|zapiszę|zapamiętam)\b",
    r"(?:сначала|теперь|сейчас|я (?:сохраню|запишу|запомню)|сохраню|запишу|запомню)\b",
    # Chinese, Japanese
    r"(?:让我|我先|我来|我将|我会|首先|先|接下来|现在)",
    r"(?:まず|次に|それでは|では)",
)
_ANNOUNCES: Final = re.compile(
    r"[\s*_#>-]*(?:(?:ok(?:ay)?|sure|good|right|alright|so|and|und|gut)\b[\s,.!:–—-]*)?(?:"
    + "|".join(_OPENINGS)
    + ")",
    re.IGNORECASE,
)


def announces(text: str) -> bool:
    """Whether the last sentence of a text says what its author does now, or ends with a colon."""
    text = text.rstrip()
    if text.endswith((":", "：")):
        return True
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    last = sentences[-1] if sentences else ""
    return len(last) <= _LONGEST and _ANNOUNCES.match(last) is not None
