"""The list of tasks of all sessions of a user, the most recently changed first.

A session's row in the list of sessions has the time of its last change. So journals are read starting with the newest, and
only until the page is complete: the remaining ones can only contain older tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from a2a.types import Artifact, GetTaskRequest, ListTasksRequest, SendMessageConfiguration, Task
from a2a.utils.errors import InvalidParamsError
from google.protobuf.timestamp_pb2 import Timestamp

from iact.core.errors import JournalError, UsageError
from iact.core.records.dialogue import Say
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.listing import SessionInfo
from iact.core.stored.store import SessionStore
from iact.core.views.questions import OpenQuestions
from iact.faces.a2a.files import file_artifacts
from iact.faces.a2a.tasks import TaskWords
from iact.faces.conversation import SpokenTurn, reply_among

_LOG: Final = logging.getLogger(__name__)
_SECOND: Final = 1_000_000_000
_FILES: Final = 64 * 1024
"""The most bytes of the files of one task in a list."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of the list.

    `total`: the number of matching tasks if every session was read; otherwise the number found, plus one for each session
    that was not read. `next`: the token of the next page, or empty if there is none.
    """

    tasks: Sequence[Task]
    total: int
    next: str


def page_of(
    store: SessionStore, opened: Mapping[str, Session], params: ListTasksRequest, size: int
) -> TaskPage:
    """Return a page of at most `size` matching tasks. Blocks.

    Opens no session: sessions at rest are read, and open sessions are used as they are.

    Raises:
        InvalidParamsError: the token does not belong to this list.
    """
    behind = _place_of(params.page_token) if params.page_token else None
    found: list[Task] = []
    sessions = [one for one in store.sessions() if not one.foreign and params.context_id in ("", one.id)]
    at_rest = [one for one in sessions if one.id not in opened]
    for one in sessions:
        if one.id in opened:
            found += _wanted(_of_open(opened[one.id], params), params)
    unread = len(at_rest)
    for info in at_rest:
        if _newer(found, behind, info) > size or _too_old(info, params):
            break
        found += _wanted(_of_stored(store, info.id, params), params)
        unread -= 1
    found.sort(key=_place, reverse=True)
    left = [one for one in found if behind is None or _place(one) < behind]
    page = left[:size]
    more = len(left) > size
    return TaskPage(page, len(found) + unread, _token(page[-1]) if more and page else "")


def history(asked: GetTaskRequest | ListTasksRequest | SendMessageConfiguration) -> int | None:
    """How many messages of a task's history are wanted, or None for all."""
    return asked.history_length if asked.HasField("history_length") else None


def _of_open(session: Session, params: ListTasksRequest) -> Iterator[Task]:
    for said in session.records():
        if _begins(said):
            turn = SpokenTurn(session, said)
            reply = turn.reply
            waiting = turn.waiting if reply is None else ()
            words = TaskWords(session.id, said)
            records = session.records(said.n)
            files = _files(words, session.journal.parent, words.own(records, reply), params)
            yield words.task(records, reply, waiting, history(params), files)


def _of_stored(store: SessionStore, session: str, params: ListTasksRequest) -> Iterator[Task]:
    try:
        records = store.read(session).records
    except (JournalError, UsageError) as error:  # damaged, or on another host
        _LOG.info("the tasks of session %s are not listed: %s", session, error)
        return
    waiting = OpenQuestions(records).waiting
    for at, said in enumerate(records):
        if _begins(said):
            after = records[at + 1 :]
            reply = reply_among(after, rests=True)
            words = TaskWords(session, said)
            files = _files(words, store.folder / session, words.own(after, reply), params)
            yield words.task(after, reply, () if reply else waiting, history(params), files)


def _files(
    words: TaskWords, folder: Path, records: Sequence[Record], params: ListTasksRequest
) -> list[Artifact]:
    """The files of a task, if artifacts are wanted. A list has many tasks, so it has only what is small."""
    if not params.include_artifacts:
        return []
    return [*file_artifacts(words.id, folder, records, most=_FILES)]


def _wanted(tasks: Iterator[Task], params: ListTasksRequest) -> Iterator[Task]:
    after = _nanoseconds(params.status_timestamp_after) if params.HasField("status_timestamp_after") else None
    for task in tasks:
        if params.status and task.status.state != params.status:
            continue
        if after is not None and _nanoseconds(task.status.timestamp) < after:
            continue
        if not params.include_artifacts:
            task.ClearField("artifacts")
        yield task


def _newer(found: Sequence[Task], behind: tuple[int, str] | None, info: SessionInfo) -> int:
    """How many of the found tasks for the page are newer than everything in a session."""
    changed = _changed(info)
    places = (_place(one) for one in found)
    return sum(1 for place in places if place[0] > changed and (behind is None or place < behind))


def _too_old(info: SessionInfo, params: ListTasksRequest) -> bool:
    after = params.status_timestamp_after
    return params.HasField("status_timestamp_after") and _changed(info) < _nanoseconds(after)


def _changed(info: SessionInfo) -> int:
    """A time after which nothing happened in a session, rounded up because the list has whole seconds."""
    begun = datetime.fromisoformat(info.changed).astimezone(UTC)
    return (int(begun.timestamp()) + 1) * _SECOND


def _begins(record: Record) -> bool:
    return isinstance(record.content, Say) and record.agent == "/"


def _nanoseconds(time: Timestamp) -> int:
    return time.seconds * _SECOND + time.nanos


def _place(task: Task) -> tuple[int, str]:
    """A task's place in the list, by time and id. Changes between two pages move no other task."""
    return _nanoseconds(task.status.timestamp), task.id


def _token(task: Task) -> str:
    return f"{_nanoseconds(task.status.timestamp)} {task.id}"


def _place_of(token: str) -> tuple[int, str]:
    time, _, identity = token.partition(" ")
    if not time.isdecimal() or len(time) > 20 or not identity:
        raise InvalidParamsError("That is no token of this list; begin again without one.")
    return int(time), identity
