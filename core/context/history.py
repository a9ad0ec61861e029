"""The part of a context that only grows: the static prompt, then an agent's history.

The prefix law: between two compressions of one agent, every context without its tail is a prefix of the next one. A
`History` therefore has only one way to change, `push`. It keeps a running digest, so that digesting a whole context
costs only as much as its new part.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

from iact.core.context.tokens import MESSAGE_OVERHEAD, weight
from iact.core.ports import ChatMessage, StaticPrompt


def _feed(hasher: hashlib._Hash, message: ChatMessage) -> None:
    content = message.content.encode("utf-8", "surrogatepass")
    hasher.update(f"{message.role} {len(content)}\n".encode())
    hasher.update(content)
    for part in message.parts:
        hasher.update(f"\npart {part.media} {part.sha256}\n".encode())


def prompt_digest(static: StaticPrompt) -> str:
    """Return the first sixteen hex digits of the SHA-256 of a static prompt."""
    return History(static).digest(())


@functools.lru_cache(maxsize=16)
def _begun(static: StaticPrompt) -> History:
    return History(static)


def begin(static: StaticPrompt) -> History:
    """Return the history of an agent that has heard nothing yet. A shared prompt is hashed only once."""
    return _begun(static).copy()


class History:
    """Messages from the static prompt on."""

    __slots__ = ("_hasher", "_messages", "_static", "static_tokens", "tokens")

    def __init__(self, static: StaticPrompt) -> None:
        self._static = static
        self._messages: list[ChatMessage] = []
        self._hasher = hashlib.sha256()
        """Of all messages so far."""
        self.tokens = 0
        """An estimate of the tokens of all messages."""

        self.push(ChatMessage("system", static.system))
        for message in static.examples:
            self.push(message)
        self.static_tokens = self.tokens
        """An estimate of the tokens of the static prompt."""

    @property
    def began(self) -> int:
        """How many messages the static prompt has. The messages after them are the agent's own."""
        return 1 + len(self._static.examples)

    def __len__(self) -> int:
        return len(self._messages)

    def push(self, message: ChatMessage) -> None:
        """Append one message. Existing messages never change."""
        self._messages.append(message)
        self.tokens += weight(message) + MESSAGE_OVERHEAD
        _feed(self._hasher, message)

    def copy(self) -> History:
        """Return an independent copy."""
        other = History.__new__(History)
        other._static = self._static
        other._messages = list(self._messages)
        other._hasher = self._hasher.copy()
        other.tokens = self.tokens
        other.static_tokens = self.static_tokens
        return other

    def under(self, static: StaticPrompt) -> History:
        """Return the same dialogue after another static prompt."""
        other = History(static)
        for message in self._messages[self.began :]:
            other.push(message)
        return other

    def cut(self, first: ChatMessage, keep: int) -> History | None:
        """Return the history after a compression: static prompt, `first`, and the last `keep` messages.

        `keep` must be odd, so that the roles keep alternating. None if nothing would be cut.
        """
        if len(self._messages) <= self.began + 1 + keep:
            return None
        return self.anew(first, self._messages[-keep:])

    def anew(self, first: ChatMessage, kept: Sequence[ChatMessage]) -> History:
        """Return a history of the same static prompt, `first`, and the messages `kept`, the first of them a reply."""
        other = History(self._static)
        other.push(first)
        for message in kept:
            other.push(message)
        return other

    def last(self, count: int) -> list[ChatMessage]:
        """The last messages, without the first one after the static prompt."""
        first = max(self.began + 1, len(self._messages) - count)
        return self._messages[first:]

    def messages(self) -> Sequence[ChatMessage]:
        """All messages so far. Must not be modified."""
        return self._messages

    def context(self, newest: ChatMessage) -> list[ChatMessage]:
        """Return the whole context for one model call: this history, then `newest` (input and tail)."""
        return [*self._messages, newest]

    def digest(self, newest: Sequence[ChatMessage]) -> str:
        """Return the first sixteen hex digits of the SHA-256 of this history and `newest`."""
        hasher = self._hasher.copy()
        for message in newest:
            _feed(hasher, message)
        return hasher.hexdigest()[:16]
