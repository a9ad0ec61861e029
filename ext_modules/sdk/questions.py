"""Questions that calls ask a person, from sending until the answer arrives by an RPC of its own.

An answer names the call and the question. If no call waits for it any more, it is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ext_modules.sdk.values import JSON

Action = Literal["accept", "decline", "cancel"]


class AskRefused(ValueError):
    """The core does not ask the question, because it does not have the form that the contract requires."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question."""

    id: str
    """The question, within its call."""
    message: str
    schema: Mapping[str, JSON] | None = None
    """The form to fill in, as JSON Schema; None: there is none."""
    url: str = ""
    """An address to open instead; empty: none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question."""

    action: Action
    values: Mapping[str, JSON] = field(default_factory=dict)
    """The form's values."""
    reason: str = ""
    """Why no one decided; only with "cancel"."""


class OpenAsks:
    """The questions that wait for an answer, by call and question. Belongs to one loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[Answer]] = {}

    @contextlib.contextmanager
    def asked(self, call: str, ask: str) -> Iterator[asyncio.Future[Answer]]:
        """Register a question for as long as the context lasts. Yields the future of its answer."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[call, ask] = answer
        try:
            yield answer
        finally:
            del self._waiting[call, ask]

    def answered(self, call: str, ask: str, answer: Answer | AskRefused) -> None:
        """Deliver an answer. Only the first one counts."""
        waiting = self._waiting.get((call, ask))
        if waiting is None or waiting.done():
            return
        if isinstance(answer, AskRefused):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)


OPEN: Final = OpenAsks()
"""The open questions of this process."""
