"""Messages that are sent again because the line lost the answer to them: they are said once, and answered again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Given = TypeVar("Given")

MOST: Final = 1000
"""How many of the last messages are known. One that is sent again comes within minutes."""


@dataclass(slots=True)
class _Message(Generic[Given]):
    answer: Given | None = None
    carrying_out: asyncio.Lock = field(default_factory=asyncio.Lock)


class AnsweredMessages(Generic[Given]):
    """The answers to the last messages, by user and by what the client calls the message."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str], _Message[Given]] = {}

    async def answer(
        self, user: str, once: str, carry_out: Callable[[], Awaitable[Given]]
    ) -> tuple[Given, bool]:
        """Carry out a message, or return the answer that it had before, and whether it was carried out now.

        `once`: what the client calls it; empty if it has no name. Of a message that failed nothing is known.
        """
        if not once:
            return await carry_out(), True

        message = self._messages.setdefault((user, once), _Message())
        while len(self._messages) > MOST:
            del self._messages[next(iter(self._messages))]

        # The line may be lost while it is carried out, which goes on.
        async with message.carrying_out:
            if message.answer is not None:
                return message.answer, False
            message.answer = await carry_out()
            return message.answer, True
