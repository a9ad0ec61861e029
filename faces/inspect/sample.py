"""The task and the limits of an Inspect sample, in terms of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    Content,
    ContentDocument,
    ContentImage,
    ContentText,
)
from inspect_ai.util import Limit, LimitExceededError, SampleLimits

from iact.core.errors import UsageError
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Bounds
from iact.faces.data_url import read_data_url
from iact.faces.message import MessageFile


@dataclass(frozen=True, slots=True)
class SampleTask:
    """The message for the root, and its files."""

    text: str
    files: tuple[MessageFile, ...]


def task_of(messages: Sequence[ChatMessage]) -> SampleTask:
    """The messages of a sample as one message from a person.

    If the messages include answers, they are given as a conversation, each with its author. Instructions come first.

    Raises:
        UsageError: there is nothing to do, or content is not embedded in the message.
    """
    instructions = [message.text for message in messages if isinstance(message, ChatMessageSystem)]
    spoken = [message for message in messages if not isinstance(message, ChatMessageSystem)]

    has_answers = any(isinstance(message, ChatMessageAssistant) for message in spoken)
    texts = [_with_author(message) if has_answers else message.text for message in spoken]
    text = "\n\n".join(part.strip() for part in (*instructions, *texts) if part.strip())
    if not text:
        raise UsageError("The sample's input has no text, so there is nothing to do.")

    lists = (message.content for message in spoken if not isinstance(message.content, str))
    parts = [part for content in lists for part in content]
    files = [_file(part, number) for number, part in enumerate(parts, 1) if not isinstance(part, ContentText)]
    return SampleTask(text, tuple(files))


def _with_author(message: ChatMessage) -> str:
    author = "You answered" if isinstance(message, ChatMessageAssistant) else "User"
    return f"{author}:\n\n{message.text}"


def _file(part: Content, number: int) -> MessageFile:
    match part:
        case ContentImage(image=source):
            name = f"picture-{number}"
        case ContentDocument(document=source):
            name = part.filename or f"document-{number}"
        case _:
            raise UsageError(
                f"The sample's input has content of type {part.type!r}, which a session can't take."
            )
    return MessageFile(name, *read_data_url(source, name))


@dataclass(frozen=True, slots=True)
class SampleBounds:
    """The rest of the sample's limits, as bounds of a session. None means that the settings apply.

    `turns` are the root's turns. Each adds two messages: its own, and one with the results of its calls.
    """

    tokens: int | None = None
    seconds: float | None = None
    turns: int | None = None
    money: float | None = None

    def of(self, bounds: Bounds) -> Bounds:
        """The bounds, reduced to the sample's limits."""
        # A session may be without a bound on money; all others have one.
        amounts = (amount for amount in (bounds.money, self.money) if amount is not None)
        return replace(
            bounds,
            tokens=bounds.tokens if self.tokens is None else min(bounds.tokens, self.tokens),
            activation=bounds.activation if self.seconds is None else min(bounds.activation, self.seconds),
            turns=bounds.turns if self.turns is None else min(bounds.turns, self.turns),
            money=min(amounts, default=None),
        )


def bounds_of(limits: SampleLimits, messages: int) -> SampleBounds:
    """The bounds for a session. `messages`: how many messages the sample has already."""
    counts_all = getattr(limits.token, "type", "all") == "all"
    tokens = limits.token.remaining if counts_all else None

    times = [seconds for seconds in (limits.time.remaining, limits.working.remaining) if seconds is not None]

    turns: list[int] = []
    if limits.turn.remaining is not None:
        turns.append(int(limits.turn.remaining))
    if limits.message.limit is not None:
        # A turn adds two messages, the last one only its own.
        turns.append((int(limits.message.limit) - messages + 1) // 2)

    return SampleBounds(
        tokens=None if tokens is None else max(1, int(tokens)),
        seconds=max(0.1, min(times)) if times else None,
        turns=max(1, min(turns)) if turns else None,
        money=limits.cost.remaining,
    )


def exceeded(reply: Reply, limits: SampleLimits, bounds: SampleBounds) -> LimitExceededError | None:
    """The sample's limit that ended the work, if any."""
    # The bound counts only if the sample set it: otherwise, it is one of the settings.
    match reply.bound:
        case "tokens" if bounds.tokens is not None:
            return _exceeded("token", limits.token)
        case "turns" if bounds.turns is not None and limits.turn.limit is not None:
            return _exceeded("turn", limits.turn)
        case "turns" if bounds.turns is not None:
            return _exceeded("message", limits.message)
        case "time" if bounds.seconds is not None and limits.time.limit is not None:
            return _exceeded("time", limits.time)
        case "time" if bounds.seconds is not None:
            return _exceeded("working", limits.working)
        case "money" if bounds.money is not None:
            return _exceeded("cost", limits.cost)
    return None


def _exceeded(
    kind: Literal["token", "message", "turn", "time", "working", "cost"], limit: Limit
) -> LimitExceededError:
    most = limit.limit or 0
    return LimitExceededError(
        kind, value=most, limit=most, message=f"The session used up what the sample's {kind} limit left it."
    )
