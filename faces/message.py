"""Messages that faces pass to a session, as texts and files in order, and the ids of questions for clients."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from iact.accounts.rights import Words
from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.views.consent import SHORTEST, question_digest

_QUESTION: Final = re.compile(r"call_(.{1,120})_(\d{1,9})_([0-9a-f]{16})")

_EARLIER: Final = "What was said before:"
_NOW: Final = "And now:"


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A picture or other file attached to a message. The root gets it as a variable."""

    name: str
    media: str
    content: bytes


MessagePart: TypeAlias = str | MessageFile


async def say(
    session: Session,
    parts: Sequence[MessagePart],
    *,
    before: str = "",
    tools: Sequence[str] | None = None,
    history: Sequence[MessagePart] = (),
    words: Words = "newest",
    traceparent: str = "",
) -> Record:
    """Upload the files and send the texts. `before`: instructions to put before the texts. `tools`, `traceparent`: as in
    `Session.say`.

    `history`: an earlier chat that the client tells of and that this program did not record. It comes first. As a rule it
    is not the user's words: it quotes what models wrote, and they what they had read. `words`: what is, by the client's
    token.

    Raises:
        UsageError: there is no text.
    """
    text = _text(parts)
    if not text:
        raise UsageError("The message is empty: say in words what is to be done.")

    for part in (*history, *parts):
        if isinstance(part, MessageFile):
            await session.upload(part.name, part.media, part.content)

    own = f"{before.strip()}\n\n{text}".strip()
    earlier = _text(history)
    told = f"{_EARLIER}\n\n{earlier}\n\n{_NOW}\n\n" if earlier else ""
    whole = f"{told}{own}"
    client = not_the_users(whole, len(told), words)
    return await session.say(whole, tools=tools, client=client, traceparent=traceparent)


def not_the_users(text: str, told: int, words: Words) -> int:
    """How many characters at the beginning of a message are not its user's words.

    `told`: those that tell of an earlier chat. `words`: what is the user's, by the client's token.
    """
    match words:
        case "all":
            return 0
        case "newest":
            return told
        case "none":
            return len(text)


def _text(parts: Sequence[MessagePart]) -> str:
    return "\n\n".join(part for part in parts if isinstance(part, str)).strip()


def question_id(session: str, question: Record) -> str:
    """The id of a question, which contains its session, its record, and the digest of what the client is shown."""
    return f"call_{session}_{question.n}_{question_digest(question)[:SHORTEST]}"


def question_of(session: str, identity: str) -> tuple[int, str]:
    """The record number in a question's id, and the digest of what the client was shown.

    Raises:
        UsageError: the id is not of a question in this session.
    """
    shown = shown_by(identity)
    if shown is None or shown.session != session:
        raise UsageError(f"There is no question {identity[:100]!r} in this session.")
    return shown.record, shown.digest


@dataclass(frozen=True, slots=True)
class NamedQuestion:
    """The content of a question's id."""

    session: str
    record: int
    """The record that asks."""
    digest: str
    """The beginning of the digest of what the client was shown."""


def shown_by(identity: str) -> NamedQuestion | None:
    """Parse the id of a question. None if it is not one."""
    found = _QUESTION.fullmatch(identity)
    return NamedQuestion(found[1], int(found[2]), found[3]) if found is not None else None
