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
    """The task so far."""

    task: str = ""
    """The agent's name for it; empty until it is known."""
    context: str = ""
    """The agent's name for the conversation; empty until it is known."""
    state: int = TaskState.TASK_STATE_UNSPECIFIED
    replied: bool = False
    """Whether it sent only a message, and no task."""
    files: list[Value] = field(default_factory=list)
    _status: list[Part] = field(default_factory=list)
    """What it says about the state."""
    _artifacts: dict[str, list[Part]] = field(default_factory=dict)
    """The parts of each artifact."""

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
                status = event.status_update
                self._named(status.task_id, status.context_id)
                return self._take_status(status.status)
            case "artifact_update":
                artifact = event.artifact_update
                self._named(artifact.task_id, artifact.context_id)
                self._artifact(artifact)
        return ""

    def whole(self, task: Task) -> None:
        """Take the complete current state of a task."""
        self._named(task.id, task.context_id)
        self._take_status(task.status)
        self._artifacts = {}
        for artifact in task.artifacts:
            self._artifact(TaskArtifactUpdateEvent(artifact=artifact))

    def text(self) -> str:
        """The result in words; files are in `files`."""
        texts = [self._words(parts) for parts in self._artifacts.values()]

        # An agent may say in the end what its artifact says.
        status = self._words(self._status)
        if status and all(status not in text for text in texts):
            texts.append(status)
        return "\n\n".join(text for text in texts if text)

    def _message(self, message: Message) -> None:
        self._named(message.task_id or self.task, message.context_id)
        self._status = list(message.parts)
        self.replied = True

    def _take_status(self, status: TaskStatus) -> str:
        """Take a state. Returns what is said about it."""
        self.state = status.state
        self._status = list(status.message.parts)
        return " ".join(part.text for part in self._status if part.text)

    def _artifact(self, update: TaskArtifactUpdateEvent) -> None:
        name = update.artifact.artifact_id
        if name not in self._artifacts and len(self._artifacts) >= _MOST:
            raise AgentFailed(f"The agent makes more than {_MOST} artifacts.")
        if not update.append:
            self._artifacts[name] = []

        parts = self._artifacts.setdefault(name, [])
        for part in update.artifact.parts:
            # What was streamed stays in pieces, which are not paragraphs.
            continues_text = bool(parts) and _is_text(parts[-1]) and _is_text(part)
            if continues_text:
                parts[-1] = Part(text=parts[-1].text + part.text)
            else:
                parts.append(part)

    def _named(self, task: str, context: str) -> None:
        """Note the names of the task and the conversation; empty: unchanged. Raises AgentFailed."""
        if self.task and task != self.task:
            raise AgentFailed("The agent tells of another task than the one that it was given.")
        if any(name and not _NAME.fullmatch(name) for name in (task, context)):
            raise AgentFailed("The agent names its task in a way in which nothing can be named.")

        self.task = task or self.task
        self.context = context or self.context

    def _words(self, parts: Iterable[Part]) -> str:
        texts = [self._part(part) for part in parts]
        return "\n\n".join(text for text in texts if text)

    def _part(self, part: Part) -> str:
        """A part in words. A file is kept."""
        match part.WhichOneof("content"):
            case "text":
                return part.text.strip()
            case "data":
                return json.dumps(MessageToDict(part.data), ensure_ascii=False)
            case "raw":
                name = part.filename[:100]
                media_type = part.media_type or "application/octet-stream"
                self.files.append(Value(bytes(part.raw), media_type, name))
                return f"[a file: {name or part.media_type[:100] or 'without a name'}]"
            case "url":
                return f"[a file at {part.url[:500]}, which was not fetched]"
        return ""


def _is_text(part: Part) -> bool:
    return bool(part.WhichOneof("content") == "text")
