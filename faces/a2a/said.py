"""The content of a client's message: text and files for the root, or the answer to a question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf.json_format import MessageToDict

from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.views.consent import question_digest
from iact.faces import conversation

_AS_DATA: Final = (
    'An answer as data is {"question": its number, "digest": its digest, "allow": true or false}.'
)


def words_of(message: Message) -> str:
    """The text of a message for the root.

    Raises:
        ContentTypeNotSupportedError: a part is an address, which is not fetched.
        UsageError: there is no text.
    """
    if any(one.WhichOneof("content") == "url" for one in message.parts):
        raise ContentTypeNotSupportedError(
            "Files come in the message itself (raw); this server fetches no addresses."
        )
    text = "\n\n".join(said for one in message.parts if (said := _words(one)))
    if not text:
        raise UsageError("The message is empty: say in words what is to be done.")
    return text


async def hand_over(session: Session, message: Message) -> None:
    """Upload the files of a message."""
    for number, part in enumerate(message.parts, 1):
        if part.WhichOneof("content") == "raw":
            media = part.media_type or "application/octet-stream"
            await session.upload(part.filename or f"file-{number}", media, part.raw)


async def answer(session: Session, message: Message, waiting: Sequence[Record]) -> None:
    """Answer questions of a session: the only waiting one with a word, or any of them by number, as data.

    A yes names the digest of what the client was shown, because another question may wait by now. Where words are an
    answer, any text is one that is no yes.

    Raises:
        UsageError: the message is not an answer, or it is unclear to which question.
    """
    given: list[conversation.ClientAnswer] = []
    for part in message.parts:
        if part.WhichOneof("content") == "data":
            told = MessageToDict(part.data)
            number = told.get("question") if isinstance(told, dict) else None
            digest = told.get("digest") if isinstance(told, dict) else None
            if not isinstance(number, float) or all(one.n != number for one in waiting):
                raise UsageError(_AS_DATA)
            seen = digest if isinstance(digest, str) else ""
            given.append(conversation.ClientAnswer(int(number), seen, _unless_no(json.dumps(told))))
        elif said := _words(part):
            if len(waiting) != 1:
                raise UsageError(f"Several questions wait. {_AS_DATA}")
            given.append(_in_text(waiting[0], said))
    if not given:
        raise UsageError('The answer to a question is "allow" with its digest, or "deny".')
    await conversation.answer(session, given)


def _in_text(question: Record, said: str) -> conversation.ClientAnswer:
    """The answer that a text is."""
    seen, word = _digest_and_word(said)
    fills = bool(conversation.field_for_words(question)) and not conversation.is_verdict(word)
    if fills or conversation.is_in_words(question):
        # Words let nothing through, so it matters little which question they were meant for.
        return conversation.ClientAnswer(question.n, question_digest(question), _unless_no(said))
    return conversation.ClientAnswer(question.n, seen, _unless_no(word))


def _digest_and_word(said: str) -> tuple[str, str]:
    """The digest and the answer in a text: `allow DIGEST`, or JSON that has it as `digest`."""
    if not said.startswith("{"):
        word, _, digest = said.partition(" ")
        return digest.strip(), word

    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        return "", said
    seen = told.get("digest") if isinstance(told, dict) else None
    return seen if isinstance(seen, str) else "", said


def _unless_no(said: str) -> str | None:
    """An answer as it was given; None if it is this protocol's no, which no question takes for its answer in words."""
    if said == "deny":
        return None

    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        return said
    refuses = isinstance(told, dict) and told.get("allow") is False
    return None if refuses else said


def _words(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text.strip()
        case "data":
            return json.dumps(MessageToDict(part.data), ensure_ascii=False)
    return ""
