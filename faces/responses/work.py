"""Requests in terms of sessions: finding a response, continuing or forking its session, and reading messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from iact.core.errors import UsageError
from iact.core.records.calls import ClearanceAnswer
from iact.core.records.dialogue import Say
from iact.core.records.forms import FormAnswer
from iact.core.records.hosts import HostAnswer
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.questions import OpenQuestions, is_question
from iact.faces.data_url import read_data_url
from iact.faces.message import MessageFile, MessagePart
from iact.faces.responses.given import ClientFields, kept
from iact.faces.responses.output import ResponsePlace, reply_of
from iact.faces.responses.wire import (
    InputFile,
    InputImage,
    InputMessage,
    InputText,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A response as far as it exists now. `records`: its records, from its start to its end."""

    session: Session
    start: Record
    records: tuple[Record, ...]
    last: bool
    """Whether no message was sent since."""
    waiting: tuple[Record, ...]
    """The questions that it ended with."""
    kept: ClientFields
    """What its client gave beside the message."""

    @property
    def reply(self) -> Record | None:
        """The answer, once it is final."""
        busy = self.last and self.session.state.root.active
        return None if busy or self.waiting else reply_of(self.records)

    @property
    def at_work(self) -> bool:
        """Whether more of it comes without anybody's doing."""
        return self.last and self.session.state.root.active and not self.waiting


async def stored(runtime: Runtime, place: ResponsePlace) -> Stored:
    """Find an earlier response. Its session continues if it was interrupted at work.

    Raises:
        UsageError: there is no such response.
        JournalError: its session can't be opened.
    """
    if runtime.store.holds(place.session):
        session = await runtime.open(place.session)
        start = next(iter(session.records(place.record - 1)), None)
        if start is not None and start.n == place.record and _begins(start):
            fields = await asyncio.to_thread(kept, session.journal.parent, place.record)
            behind = session.records(place.record)
            # The message that asks for the answer once more belongs to the same response.
            end = next((at for at, one in enumerate(behind) if _says(one) and one.n != fields.again), None)
            records, waiting = _until_asked(session.records()[: start.n], behind[:end])
            return Stored(session, start, records, end is None, waiting, fields)
    raise UsageError(f"There is no response {place.id[:150]!r}.")


def _until_asked(
    before: Sequence[Record], records: Sequence[Record]
) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The records after its start that belong to a response, and the questions that it ended with.

    A response that ended with questions does not change when they are answered: what follows belongs to the next response.
    """
    open_ones = OpenQuestions(before)
    if open_ones.waiting:
        return (), open_ones.waiting
    for at, record in enumerate(records):
        content = record.content
        by_policy = isinstance(content, ClearanceAnswer) and content.by == "policy"
        if (
            isinstance(content, ClearanceAnswer | HostAnswer | FormAnswer)
            and not by_policy
            and open_ones.waiting
        ):
            return tuple(records[:at]), open_ones.waiting
        open_ones.add(record)
    return tuple(records), open_ones.waiting


@dataclass(frozen=True, slots=True)
class Continued:
    """A session that a request goes on in."""

    session: Session
    shown: tuple[Record, ...]
    """The questions that the response before it ended with."""
    kept: ClientFields
    """What its client gave with the response before it."""


async def continued(runtime: Runtime, place: ResponsePlace) -> Continued:
    """Open the session to continue a response: its own session, or a fork if another message was sent since.

    Raises:
        UsageError, JournalError: as `stored`.
    """
    found = await stored(runtime, place)
    if found.last:
        return Continued(found.session, found.waiting, found.kept)
    at = found.records[-1].n if found.records else found.start.n
    forked = await runtime.open(await runtime.fork(found.session.id, at))
    return Continued(forked, found.waiting, found.kept)


def parts_of(message: InputMessage) -> list[MessagePart]:
    """The parts of a message.

    Raises:
        UsageError: a file is not embedded in the message.
    """
    if isinstance(message.content, str):
        return [message.content]
    return [one.text if isinstance(one, InputText) else _file(one) for one in message.content]


def _begins(record: Record) -> bool:
    return (
        _says(record)
        or is_question(record)
        or isinstance(record.content, ClearanceAnswer | HostAnswer | FormAnswer)
    )


def _says(record: Record) -> bool:
    return isinstance(record.content, Say) and record.agent == "/"


def _file(part: InputFile | InputImage) -> MessageFile:
    url = part.file_data if isinstance(part, InputFile) else part.image_url
    name = part.filename if isinstance(part, InputFile) else "picture"
    return MessageFile(name, *read_data_url(url, name))
