"""When the model on board should stop trying: after repeated failures, or in a circle. Pure.

A model of this size repeats what failed. So its person reads after seconds, not after minutes, that a larger model is
needed, and where to connect one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iact.core.ports import ChatMessage

MOST_FAILURES: Final = 3
"""Failed results of one task after which it gives up."""

MOST_REPLIES: Final = 8
"""Replies to one task after which it gives up."""

WORDS: Final = (
    "I am the small model on board, and I did not manage this: {why}. A larger model can: choose “Connect a model” in "
    "the settings, or set OPENAI_BASE_URL. You can also ask me for a smaller step."
)

_TASK: Final = re.compile(r"^(Message from (the user|your caller)|Intervention by the user)\b", re.MULTILINE)
_FAILURE: Final = re.compile(
    r"^(Error of `|Result of `[^`\n]*`[^\n]*, exit status [1-9])|did not complete\.|was not run\b",
    re.MULTILINE,
)


def surrender(messages: Sequence[ChatMessage], examples: int) -> str:
    """What to answer instead of asking the model again, or "". `examples`: how many messages the static prompt has."""
    own = messages[examples:]
    task = max((index for index, message in enumerate(own) if _is_task(message)), default=0)
    since = own[task + 1 :]
    replies = [message.content for message in since if message.role == "assistant"]
    failures = sum(1 for message in since if message.role == "user" and _FAILURE.search(message.content))

    if failures >= MOST_FAILURES:
        return WORDS.format(why=f"{failures} attempts failed")
    if len(replies) >= MOST_REPLIES:
        return WORDS.format(why="it takes too many steps")
    if len(replies) >= MOST_FAILURES and len(set(replies[-MOST_FAILURES:])) == 1:
        return WORDS.format(why="I repeat myself")
    return ""


def _is_task(message: ChatMessage) -> bool:
    return message.role == "user" and _TASK.search(message.content) is not None
