"""A message to a session as a task, made only from records: a context is a session, a task is one message and its answer.

A task that waits for a person is `INPUT_REQUIRED`. Its status has each question as text, and again as data with the whole
call. A task that has ended, for whatever reason, no longer changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from iact.core.ports import JSON
from iact.core.records.dialogue import Reply, Turn
from iact.core.records.forms import FormAsk
from iact.core.records.record import Record
from iact.core.views.consent import SHORTEST, question_digest
from iact.core.views.ending import outcome_of, verdict_json, verdict_on
from iact.core.views.question_text import about, told
from iact.faces.conversation import field_for_words, is_in_words
from iact.faces.failure import failure_of
from iact.faces.root_text import prose
from iact.faces.usage import used

ANSWER: Final = "answer"
"""The name of the artifact with the root's answer."""
ENDED: Final = frozenset(
    {TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED}
)


class TaskWords:
    """Describes one task in A2A's terms. `session`, `said`: the session and record of the message."""

    def __init__(self, session: str, said: Record) -> None:
        self._session = session
        self._said = said
        self.id = f"{session}.{said.n}"

    def task(
        self,
        records: Sequence[Record],
        reply: Record | None,
        waiting: Sequence[Record],
        history: int | None = None,
        files: Sequence[Artifact] = (),
    ) -> Task:
        """The task as of `records`, which follow its message. `history`: how many of the newest messages to include.

        `files`: what its calls produced (`faces.a2a.files`).
        """
        own = self.own(records, reply)
        # What failed is in the status, and is no message.
        spoken = [one for one in own if failure_of(one) is None]
        messages = [self._user(), *(made for one in spoken if (made := self.message(one)) is not None)]
        if history is not None:
            messages = messages[-history:] if history > 0 else []
        answers = [self.artifact(reply)] if reply is not None and reply.text("status") == "ok" else []
        return Task(
            id=self.id,
            context_id=self._session,
            status=self.status(own[-1] if own else self._said, reply, waiting),
            metadata=_end(reply, own) if reply is not None else None,
            artifacts=[*files, *answers],
            history=messages,
        )

    def own(self, records: Sequence[Record], reply: Record | None) -> list[Record]:
        """Those of the records after its message that belong to the task."""
        return [one for one in records if reply is None or one.n <= reply.n]

    def status(self, last: Record, reply: Record | None, waiting: Sequence[Record]) -> TaskStatus:
        """The task's status after record `last`."""
        if reply is not None:
            return TaskStatus(state=_ending(reply), message=self.message(reply), timestamp=_time(reply))
        if waiting:
            asked = self._agent(
                f"{self.id}.{waiting[-1].n}", [part for one in waiting for part in _question(one)]
            )
            return TaskStatus(
                state=TaskState.TASK_STATE_INPUT_REQUIRED, message=asked, timestamp=_time(waiting[-1])
            )
        return TaskStatus(
            state=TaskState.TASK_STATE_WORKING, message=self.message(last), timestamp=_time(last)
        )

    def status_update(
        self,
        last: Record,
        reply: Record | None,
        waiting: Sequence[Record],
        records: Sequence[Record] = (),
    ) -> TaskStatusUpdateEvent:
        """The task's current status, for a stream. `records`: at its end, those of the task."""
        return TaskStatusUpdateEvent(
            task_id=self.id,
            context_id=self._session,
            status=self.status(last, reply, waiting),
            metadata=_end(reply, records) if reply is not None else None,
        )

    def artifact_update(self, artifact: Artifact) -> TaskArtifactUpdateEvent:
        """A file or the answer, for a stream."""
        return TaskArtifactUpdateEvent(
            task_id=self.id, context_id=self._session, artifact=artifact, last_chunk=True
        )

    def artifact(self, reply: Record) -> Artifact:
        """The answer as an artifact of the task."""
        return Artifact(artifact_id=f"{self.id}.{ANSWER}", name=ANSWER, parts=[_text(reply.body)])

    def message(self, record: Record) -> Message | None:
        """The root's message in a record, if it has one. Actions are none: what came of them is told."""
        if record.agent != "/" or not isinstance(record.content, Turn | Reply):
            return None
        text = record.body if isinstance(record.content, Reply) else prose(record.body)
        if not text.strip():
            return None
        return self._agent(f"{self.id}.{record.n}", [_text(text)])

    def _user(self) -> Message:
        return Message(
            message_id=self.id, context_id=self._session, task_id=self.id, role=Role.ROLE_USER,
            parts=[_text(self._said.body)],
        )  # fmt: skip

    def _agent(self, identity: str, parts: Iterable[Part]) -> Message:
        return Message(
            message_id=identity, context_id=self._session, task_id=self.id, role=Role.ROLE_AGENT, parts=parts
        )


def _question(record: Record) -> list[Part]:
    form = isinstance(record.content, FormAsk) and bool(record.content.fields)
    digest = question_digest(record)
    answer = f'text "allow {digest[:SHORTEST]}" or "deny"'
    if is_in_words(record):
        answer = 'text with the answer, or "deny"'
    elif field_for_words(record):
        answer = f"{answer}, or any other text"
    elif form:
        answer = 'data {"question", "digest", "allow", "values"}'
    place: dict[str, JSON] = {"question": record.n, "digest": digest, "agent": record.agent}
    fields = {**about(record), **place, "answer": answer}
    return [_text(told(record)), Part(data=ParseDict(fields, Value()), media_type="application/json")]


def _ending(reply: Record) -> TaskState:
    """The state of a task that has ended: only one whose goal counts as reached is completed."""
    assert isinstance(reply.content, Reply)
    match outcome_of(reply.content):
        case "reached":
            return TaskState.TASK_STATE_COMPLETED
        case "stopped" if verdict_on(reply.content).by == "person":
            return TaskState.TASK_STATE_CANCELED
        case _:
            return TaskState.TASK_STATE_FAILED


def _end(reply: Record, records: Sequence[Record]) -> Struct:
    """About a task that has ended, as metadata: whether its goal is reached, the kind of its failure, and its tokens."""
    assert isinstance(reply.content, Reply)
    tokens = used(records)
    told: dict[str, JSON] = {
        "verdict": verdict_json(verdict_on(reply.content)),
        "usage": {
            "input_tokens": tokens.prompt_tokens,
            "cached_tokens": tokens.cached_tokens,
            "output_tokens": tokens.completion_tokens,
        },
    }
    failure = failure_of(reply)
    if failure is not None:
        told["error"] = {"code": failure.kind.code, "retry": failure.kind.again}
    return ParseDict(told, Struct())


def _text(text: str) -> Part:
    return Part(text=text, media_type="text/plain")


def _time(record: Record) -> Timestamp:
    found = Timestamp()
    found.FromJsonString(record.at)
    return found
