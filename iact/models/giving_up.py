"""When the model on board can't do what is asked, and what its person reads then. Pure.

A model of this size repeats what failed, refuses what it does not understand, and does not come to an end with what is
long. So its person reads after seconds, not after minutes, that a larger model is needed, and where to connect one.
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

_SHORT: Final = 240
"""The most characters of a reply that is a refusal and nothing else."""

_TASK: Final = re.compile(r"^(Message from (the user|your caller)|Intervention by the user)\b", re.MULTILINE)
_FAILURE: Final = re.compile(
    r"^(Error of `|Result of `[^`\n]*`[^\n]*, exit status [1-9])|did not complete\.|was not run\b",
    re.MULTILINE,
)
_REFUSAL: Final = re.compile(
    # Wherever it stands: that it can't help.
    r"(can(no|['’])t|\bunable to) (assist|help|fulfill)|no puedo (ayudar|asistir|cumplir)|"
    r"kann (dir|ihnen) (dabei |damit |leider )*nicht (helfen|weiterhelfen)|"
    # A letter may hold these words, too, but does not begin with them.
    r"\A(i['’]m sorry, but|sorry, but|i (can(no|['’])t|am unable to|['’]m unable to) (create|draw|generate|make|provide)|"
    r"lo siento, pero|(es )?tut mir leid, aber|ich kann (keine?n?|leider) )",
    re.IGNORECASE,
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


def postscript(reply: str, *, cut: bool) -> str:
    """What is added to a reply that is plainly no answer, or "". `cut`: its limit ended it.

    A reply that acts gets nothing: what comes of it is seen in the next one.
    """
    if "```" in reply:
        return ""
    if cut:
        return "\n\n" + WORDS.format(why="it is longer than what I can write")
    if refuses(reply):
        return "\n\n" + WORDS.format(why="I do not know how")
    return ""


def refuses(reply: str) -> bool:
    """Whether a reply declines what was asked, in one of the three languages that were tried."""
    text = reply.strip()
    return len(text) <= _SHORT and _REFUSAL.search(text) is not None


def _is_task(message: ChatMessage) -> bool:
    return message.role == "user" and _TASK.search(message.content) is not None
