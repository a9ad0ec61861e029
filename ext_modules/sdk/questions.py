"""Questions of calls to a person, from the moment they are sent until their answers come by an RPC of their own.

An answer names the call and the question, and may come when nobody waits any more: then it is dropped.
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
    """The core does not put a question to anybody, since it is not of the form that the contract wants."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question. `schema`: what is to be filled in, as JSON Schema; None: nothing. `url`: what is to be opened instead."""

    id: str
    message: str
    schema: Mapping[str, JSON] | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a question. `values`: what was filled in. `reason`: why nobody decided, with "cancel" alone."""

    action: Action
    values: Mapping[str, JSON] = field(default_factory=dict)
    reason: str = ""


class OpenAsks:
    """The questions that wait for an answer, by call and question. Of one loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[Answer]] = {}

    @contextlib.contextmanager
    def asked(self, call: str, ask: str) -> Iterator[asyncio.Future[Answer]]:
        """Where the answer to a question comes, as long as somebody waits."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[call, ask] = answer
        try:
            yield answer
        finally:
            del self._waiting[call, ask]

    def answered(self, call: str, ask: str, answer: Answer | AskRefused) -> None:
        """An answer came. The first counts."""
        waiting = self._waiting.get((call, ask))
        if waiting is not None and not waiting.done():
            if isinstance(answer, AskRefused):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)


OPEN: Final = OpenAsks()
"""Those of this process."""
