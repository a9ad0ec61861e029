"""Writes a complete reply in our language: what means an action and is written otherwise becomes an action block.

This happens once, before a reply is recorded. So the journal, the history and everything that reads a reply know only
one language, and a model sees in its own earlier messages how an action is written. What is not understood, or names
nothing that exists, stays as it was written; `core.language.unread` finds it again.
"""

from __future__ import annotations

import re
from typing import Final

from iact.core.language.actions import ANSWER, Registry
from iact.core.language.writer import block

_ANSWER_ALONE: Final = re.compile(rf"[\s`*_~]*{ANSWER.name}[\s`*_~.!]*")


def in_our_language(text: str, registry: Registry) -> str:
    """Return a complete reply with its actions written as action blocks."""
    if ANSWER.name in registry and _ANSWER_ALONE.fullmatch(text):
        return block(ANSWER.name, None)
    return text
