"""An agent's text without its actions, while its model writes it and from its records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from iact.core.records.dialogue import Reply, Turn
from iact.core.session.events import Delta, Event, RecordAppended

_FENCE: Final = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


def prose(text: str) -> str:
    """The text of a turn before its first fence, which may begin an action or code."""
    fence = _FENCE.search(text)
    return text[: fence.start()].rstrip() if fence is not None else text


class TextStream:
    """Streams an agent's text while it is written; by default the root's.

    Text that could still become an action is held back until its turn has ended. Yields pieces of the current item's text;
    `None` ends the item.
    """

    def __init__(self, agent: str = "/") -> None:
        self._agent = agent
        self._written = ""
        self._sent = ""
        self.items: list[str] = []
        """The finished items."""

    def take(self, event: Event) -> Iterator[str | None]:
        """Process the next event of the session."""
        if isinstance(event, Delta) and event.agent == self._agent and not event.thought:
            if event.restart:
                yield from self._end(self._sent)
                self._written = ""
            self._written += event.text
            yield from self._send(_safe(self._written))
        elif isinstance(event, RecordAppended) and event.record.agent == self._agent:
            record = event.record
            if isinstance(record.content, Reply):
                yield from self._end(record.body.strip())
            elif isinstance(record.content, Turn):
                yield from self._end(prose(record.body).strip())

    def _send(self, text: str) -> Iterator[str | None]:
        if text.startswith(self._sent) and len(text) > len(self._sent):
            yield text[len(self._sent) :]
            self._sent = text

    def _end(self, text: str) -> Iterator[str | None]:
        if self._sent and not text.startswith(self._sent):
            self.items.append(self._sent)
            yield None
            self._sent = ""
        yield from self._send(text)
        if self._sent:
            self.items.append(self._sent)
            yield None
        self._written = self._sent = ""


def _safe(text: str) -> str:
    """The part of a text that can't become part of an action any more, stripped of surrounding white space."""
    shown = prose(text)
    if shown == text and text.rpartition("\n")[2].lstrip(" ")[:1] in ("`", "~", ""):
        shown = text.rpartition("\n")[0]
    return shown.strip()
