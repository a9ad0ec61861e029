"""What a front end sends with a run: where in which session the run continues, and the new messages.

A front end chooses the names of its threads and messages, and sends all messages each time. Messages from sessions
carry their place in their ids, so nothing is remembered here: the previous message shows where a message belongs. If
another message was sent since, the run continues in a fork from that place, because nothing is ever rewritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ag_ui.core import (
    AssistantMessage,
    DataSource,
    DeveloperMessage,
    Message,
    ReasoningMessage,
    ResumeEntry,
    RunAgentInput,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

from iact.core.errors import UsageError
from iact.core.records.dialogue import Say
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.faces.client_tools import ClientTool
from iact.faces.data_url import read_data_url
from iact.faces.message import MessageFile, MessagePart

_ASKED: Final = re.compile(r"(.{1,120})_(\d{1,9})_f0")
"""The id of a call to the front end's tool, which contains the record that asks for it."""
_OURS: Final = re.compile(r"(.{1,120})_(\d{1,9})_[a-z]\d{1,6}")


@dataclass(frozen=True, slots=True)
class ThreadPlace:
    """Where a run continues. `record`: the last record that the front end knows, or None for the newest."""

    session: str
    record: int | None


def name(session: str, record: int, kind: str, n: int) -> str:
    """The id of something that is reported to a front end. It contains the place in the session."""
    return f"{session}_{record}_{kind}{n}"


def place_of(given: RunAgentInput) -> tuple[ThreadPlace | None, int]:
    """Return where a run continues (None: in a new session), and how many of its messages are known already."""
    messages = given.messages
    for at in range(len(messages) - 1, -1, -1):
        one = messages[at]
        if isinstance(one, AssistantMessage | ToolMessage | ReasoningMessage) and (
            found := _OURS.fullmatch(one.id)
        ):
            return ThreadPlace(found[1], int(found[2])), at + 1
    session, record = told(given.state)
    users = [at for at, one in enumerate(messages) if isinstance(one, UserMessage)]
    return (ThreadPlace(session, record) if session else None), (users[-1] if users and session else 0)


def told(state: object) -> tuple[str, int | None]:
    """The session and record in the state of an earlier run."""
    ours = state.get("iact") if isinstance(state, dict) else None
    if not isinstance(ours, dict) or not isinstance(ours.get("session"), str):
        return "", None
    record = ours.get("record")
    return ours["session"], record if isinstance(record, int) and record >= 0 else None


async def opened(runtime: Runtime, place: ThreadPlace) -> Session:
    """Open the session at a place: the session itself, or a fork if another message was sent since.

    Raises:
        UsageError: there is no such session.
        JournalError: the session can't be opened.
    """
    if not runtime.store.holds(place.session):
        raise UsageError(f"There is no session {place.session[:100]!r}. Begin a new thread.")
    session = await runtime.open(place.session)
    if place.record is None:
        return session
    for one in session.records(place.record):
        if isinstance(one.content, Say) and one.agent == "/":
            return await runtime.open(await runtime.fork(session.id, one.n - 1))
    return session


def parts(given: RunAgentInput, known: int, *, new: bool) -> tuple[list[MessagePart], list[MessagePart]]:
    """An earlier chat that only the front end knows, and the new message.

    The new message consists of the user's messages that are not known yet, with the context from the front end.

    Raises:
        UsageError: there is no user message, or a file is not embedded in the message.
    """
    messages = given.messages[known:]
    said: list[MessagePart] = []
    if new:
        said += [one.content for one in messages if isinstance(one, SystemMessage | DeveloperMessage)]
    said += [f"{one.description}: {one.value}" for one in given.context or ()]
    spoken = [one for one in messages if isinstance(one, UserMessage | AssistantMessage)]
    users = [one for one in spoken if isinstance(one, UserMessage)]
    if not users:
        raise UsageError("There is no message: the last of messages is to be one of the user's.")
    if not new or len(users) == len(spoken):
        return [], [*said, *(part for one in users for part in _parts(one))]

    last = users[-1]
    earlier: list[MessagePart] = []
    for one in spoken[: spoken.index(last)]:
        earlier += [f"{one.role.capitalize()}:", *_parts(one)]
    return earlier, [*said, *_parts(last)]


def tools(given: RunAgentInput) -> list[ClientTool]:
    """The front end's tools."""
    return [ClientTool(one.name, one.description, one.parameters) for one in given.tools or ()]


def results(given: RunAgentInput) -> list[tuple[str, int, str]]:
    """The results of front end tools in the last messages: the session, the record of the question, and the text."""
    found = []
    for one in reversed(given.messages):
        if not isinstance(one, ToolMessage | UserMessage):
            break
        asked = _ASKED.fullmatch(one.tool_call_id) if isinstance(one, ToolMessage) else None
        if isinstance(one, ToolMessage) and asked is not None:
            content = one.content if isinstance(one.content, str) else json.dumps(one.content)
            found.append((asked[1], int(asked[2]), one.error or content))
    return found[::-1]


def answers(entries: Sequence[ResumeEntry]) -> list[tuple[str, str | None]]:
    """The answers to interrupts as answers to a session's questions, each with the interrupt's id. An abandoned one is a no."""
    found: list[tuple[str, str | None]] = []
    for one in entries:
        if one.status != "resolved":
            found.append((one.interrupt_id[:190], None))
            continue

        payload = one.payload
        if isinstance(payload, dict) and isinstance(payload.get("approved"), bool) and "allow" not in payload:
            payload = {**payload, "allow": payload["approved"]}
        word = payload if isinstance(payload, str) else json.dumps(payload)
        found.append((one.interrupt_id[:190], word[:100_000]))
    return found


def _parts(message: Message) -> list[MessagePart]:
    content = message.content
    if not isinstance(content, list):
        return [content] if isinstance(content, str) else []

    parts: list[MessagePart] = []
    for part in content:
        if isinstance(part, TextPart):
            parts.append(part.text)
        elif isinstance(part.source, DataSource):
            url = f"data:{part.source.mime_type};base64,{part.source.value}"
            parts.append(MessageFile(part.type, *read_data_url(url, part.type)))
        else:
            raise UsageError(
                "Files and pictures come in the message itself; this server fetches no addresses."
            )

    return parts
