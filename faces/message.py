"""A message as faces hand it to a session: texts and files in their order; and by what name a client knows a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.session import Session

_QUESTION: Final = re.compile(r"call_(.{1,120})_(\d{1,9})")


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A picture or another file that a message brings; the root finds it as a variable."""

    name: str
    media: str
    content: bytes


MessagePart: TypeAlias = str | MessageFile


async def say(
    session: Session, parts: Sequence[MessagePart], *, before: str = "", tools: Sequence[str] | None = None
) -> Record:
    """Hand over the files and say the texts. `before`: instructions that stand above them. `tools`: as `Session.say`.

    Raises:
        UsageError: there is no text.
    """
    text = "\n\n".join(one for one in parts if isinstance(one, str)).strip()
    if not text:
        raise UsageError("The message is empty: say in words what is to be done.")
    for one in parts:
        if isinstance(one, MessageFile):
            await session.upload(one.name, one.media, one.content)
    return await session.say(f"{before.strip()}\n\n{text}".strip(), tools=tools)


def question_id(session: str, question: Record) -> str:
    """The name of a question, which says where it is."""
    return f"call_{session}_{question.n}"


def question_of(session: str, identity: str) -> int:
    """The record of the question that a name is of.

    Raises:
        UsageError: it is no question of this session.
    """
    found = _QUESTION.fullmatch(identity)
    if found is None or found[1] != session:
        raise UsageError(f"There is no question {identity[:100]!r} in this session.")
    return int(found[2])
