"""An agent's reports on its task, assembled from the pieces in which they arrive. All of it is untrusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from a2a.types import (
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict

from ext_modules.sdk.values import Value

from .transport import AgentFailed

ASKS: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
ENDED: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
_NAME: Final = re.compile(r"[!-~]{1,200}")
_MOST: Final = 200
"""The most artifacts of a task."""


@dataclass(slots=True)
class TaskUpdates:
    """The task so far. `task`, `context`: the agent's names for them, once known. `replied`: it sent only a message."""

    task: str = ""
    context: str = ""
    state: int = TaskState.TASK_STATE_UNSPECIFIED
    replied: bool = False
    files: list[Value] = field(default_factory=list)
    _status: list[Part] = field(default_factory=list)
    _artifacts: dict[str, list[Part]] = field(default_factory=dict)

    @property
    def rests(self) -> bool:
        """Whether the agent does nothing more until it gets another message."""
        return self.replied or self.state in ENDED or self.state in ASKS

    def take(self, event: StreamResponse) -> str:
        """Take the next piece. Returns what it says about progress.

        Raises:
            AgentFailed: it is about another task, or contains an invalid name.
        """
        match event.WhichOneof("payload"):
            case "message":
                self._message(event.message)
            case "task":
                self.whole(event.task)
            case "status_update":
                self._named(event.status_update.task_id, event.status_update.context_id)
                return self._stands(event.status_update.status)
            case "artifact_update":
                self._named(event.artifact_update.task_id, event.artifact_update.context_id)
                self._artifact(event.artifact_update)
        return ""

    def whole(self, task: Task) -> None:
        """Take the complete current state of a task."""
        self._named(task.id, task.context_id)
        self._stands(task.status)
        self._artifacts = {}
        for one in task.artifacts:
            self._artifact(TaskArtifactUpdateEvent(artifact=one))

    def text(self) -> str:
        """The result in words; files are in `files`."""
        made = [self._words(parts) for parts in self._artifacts.values()]
        said = self._words(self._status)
        if said and all(said not in one for one in made):
            made.append(said)
        return "\n\n".join(one for one in made if one)

    def _message(self, message: Message) -> None:
        self._named(message.task_id or self.task, message.context_id)
        self._status, self.replied = list(message.parts), True

    def _stands(self, status: TaskStatus) -> str:
        self.state, self._status = status.state, list(status.message.parts)
        return " ".join(part.text for part in self._status if part.text)

    def _artifact(self, update: TaskArtifactUpdateEvent) -> None:
        name = update.artifact.artifact_id
        if name not in self._artifacts and len(self._artifacts) >= _MOST:
            raise AgentFailed(f"The agent makes more than {_MOST} artifacts.")
        if not update.append:
            self._artifacts[name] = []
        kept = self._artifacts.setdefault(name, [])
        for part in update.artifact.parts:  # what was streamed stays in pieces, which are not paragraphs
            if kept and kept[-1].WhichOneof("content") == part.WhichOneof("content") == "text":
                kept[-1] = Part(text=kept[-1].text + part.text)
            else:
                kept.append(part)

    def _named(self, task: str, context: str) -> None:
        if self.task and task != self.task:
            raise AgentFailed("The agent tells of another task than the one that it was given.")
        if any(one and not _NAME.fullmatch(one) for one in (task, context)):
            raise AgentFailed("The agent names its task in a way in which nothing can be named.")
        self.task, self.context = task or self.task, context or self.context

    def _words(self, parts: Iterable[Part]) -> str:
        return "\n\n".join(said for part in parts if (said := self._part(part)))

    def _part(self, part: Part) -> str:
        match part.WhichOneof("content"):
            case "text":
                return part.text.strip()
            case "data":
                return json.dumps(MessageToDict(part.data), ensure_ascii=False)
            case "raw":
                self.files.append(
                    Value(bytes(part.raw), part.media_type or "application/octet-stream", part.filename[:100])
                )
                return f"[a file: {part.filename[:100] or part.media_type[:100] or 'without a name'}]"
            case "url":
                return f"[a file at {part.url[:500]}, which was not fetched]"
        return ""
