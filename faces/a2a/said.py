"""What a client's message says: words and files for the root, or the answer to a question."""

from __future__ import annotations

import json
from collections.abc import Sequence

from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf.json_format import MessageToDict

from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.faces.responses import work
from iact.faces.responses.wire import QuestionAnswer


async def say(session: Session, message: Message) -> Record:
    """Hand over the files and say the text.

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
    for number, part in enumerate(message.parts, 1):
        if part.WhichOneof("content") == "raw":
            media = part.media_type or "application/octet-stream"
            await session.upload(part.filename or f"file-{number}", media, part.raw)
    return await session.say(text)


async def answer(session: Session, message: Message, waiting: Sequence[Record]) -> None:
    """Answer questions of a session: the one that waits, in a word, or any by their numbers, as data.

    Raises:
        UsageError: it is no answer, or leaves open to which question.
    """
    given: list[QuestionAnswer] = []
    for part in message.parts:
        if part.WhichOneof("content") == "data":
            told = MessageToDict(part.data)
            number = told.get("question") if isinstance(told, dict) else None
            if not isinstance(number, float) or all(one.n != number for one in waiting):
                raise UsageError('An answer as data is {"question": its number, "allow": true or false}.')
            given.append(_answer(session, int(number), json.dumps(told)))
        elif said := _words(part):
            if len(waiting) != 1:
                raise UsageError(
                    'Several questions wait: answer each as data, {"question": its number, "allow": true or false}.'
                )
            given.append(_answer(session, waiting[0].n, said))
    if not given:
        raise UsageError('The answer to a question is "allow" or "deny".')
    await work.answer(session, given)


def _answer(session: Session, question: int, output: str) -> QuestionAnswer:
    return QuestionAnswer(type="function_call_output", call_id=f"call_{session.id}_{question}", output=output)


def _words(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text.strip()
        case "data":
            return json.dumps(MessageToDict(part.data), ensure_ascii=False)
    return ""
