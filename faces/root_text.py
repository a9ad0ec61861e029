"""An agent's text without its actions, while its model writes it and from its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from iact.core.records.dialogue import Reply, Turn
from iact.core.records.record import Record
from iact.core.views.events import Delta, Event, RecordAppended
from iact.core.views.text import DELIVERS, call_begins_in
from iact.faces.failure import failure_of

_FENCE: Final = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_LISTED: Final = r"[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*"
_OPENS: Final = re.compile(rf"{_LISTED}(?:`{{3,}}|~{{3,}})")
_COULD_OPEN: Final = re.compile(rf"{_LISTED}(?:[-+*]|\d{{1,9}}[.)]?)?(?:`{{0,2}}|~{{0,2}})")
"""What may become a line that opens a block, also one in a list item."""
_OURS: Final = re.compile(r"(?:`{3,}|~{3,})[ \t]*([^\s`]+)")
_MAY_BE_CALL: Final = re.compile(
    r"<(?!\s)|^[ \t]*[\[{]|\[[A-Z_]*\Z|\b(?:commentary|analysis)\s*\Z|\bto(?:=[a-z]*)?\Z"
    r"|^[ \t]*\**A(?:c(?:t(?:i(?:o(?:n:?)?)?)?)?)?\**[ \t]*\Z"
)
"""Where in an unfinished line a call in another form may begin (`core.language.foreign`)."""


def prose(text: str) -> str:
    """The text of a turn before its first fence, which may begin an action or code."""
    fence = _FENCE.search(text)
    return text[: fence.start()].rstrip() if fence is not None else text


class SaidOnce:
    """What an agent says with each of its records, for clients that were given the records before.

    An answer that it wrote in an earlier turn, and that became its reply later, is said with that turn. A failure is no
    answer: each protocol has another place for it.
    """

    def __init__(self) -> None:
        self._said: dict[int, str] = {}

    def text(self, record: Record) -> str:
        """What a turn or a reply adds, without white space around it; empty if that is nothing."""
        if isinstance(record.content, Turn):
            said = prose(record.body).strip()
            self._said[record.n] = said
            return said

        if failure_of(record) is not None:
            self._said.clear()
            return ""

        text = record.body.strip()
        if isinstance(record.content, Reply):
            text = text.removeprefix(self._said.get(record.content.of, "")).strip()
            self._said.clear()
        return text


class CertainText:
    """The beginning of a text that is being written, as far as its record is sure to begin with it, too.

    What means an action and is written in another form is recorded in our language (`core.language.rewriting`), and a
    client can't take back what it has shown. So everything from where such a form may begin waits for the record.

    `is_action`: which words begin an action block of ours, which goes on; without it, every block waits.
    """

    def __init__(self, is_action: Callable[[str], bool] = lambda name: False) -> None:
        self._is_action = is_action
        self._waiting = ""
        """What is not certain yet: white space, and an unfinished line."""
        self._held = False
        self._begun = False

    def feed(self, text: str) -> str:
        """Take the next piece. Returns what is certain now, without white space at its end."""
        if self._held:
            return ""
        waiting = self._waiting + text
        certain = 0
        line_start = 0
        while not self._held and (end := waiting.find("\n", line_start)) >= 0:
            certain = line_start + self._certain_of_line(waiting[line_start:end])
            line_start = end + 1
        if not self._held:
            certain = line_start + self._certain_of_rest(waiting[line_start:])

        shown = waiting[:certain].rstrip()
        if not self._begun and self._may_be_answer_alone(shown):
            shown = ""
        self._begun = self._begun or bool(shown)
        self._waiting = waiting[len(shown) :]
        return shown

    def _certain_of_line(self, line: str) -> int:
        """How much of a whole line is certain. Nothing behind a line of which some is not is certain either."""
        if _OPENS.match(line):
            ours = _OURS.match(line)
            self._held = ours is None or not self._is_action(ours[1])
            return 0 if self._held else len(line)
        at = call_begins_in(line)
        self._held = at is not None
        return len(line) if at is None else at

    def _certain_of_rest(self, line: str) -> int:
        if _OPENS.match(line) or _COULD_OPEN.fullmatch(line):
            return 0
        may_be = _MAY_BE_CALL.search(line)
        starts = [call_begins_in(line), may_be.start() if may_be is not None else None]
        return min((start for start in starts if start is not None), default=len(line))

    def _may_be_answer_alone(self, text: str) -> bool:
        return DELIVERS.startswith(text.strip(" \t\n`*_~.!"))


class TextStream:
    """Streams an agent's text while it is written; by default the root's.

    Text that could still become an action is held back until its turn has ended. Yields pieces of the current item's text;
    `None` ends the item. `longest`: the most characters of all items; None: no limit.
    """

    def __init__(self, agent: str = "/", *, longest: int | None = None) -> None:
        self._agent = agent
        self._left = longest
        self._certain = CertainText()
        self._written = ""
        self._sent = ""
        self._once = SaidOnce()
        self.items: list[str] = []
        """The finished items."""

    def take(self, event: Event) -> Iterator[str | None]:
        """Process the next event of the session."""
        if isinstance(event, Delta) and event.agent == self._agent and not event.thought:
            if event.restart:
                yield from self._end(self._sent)
            self._written += self._certain.feed(event.text)
            yield from self._send(self._written.strip())
        elif isinstance(event, RecordAppended) and event.record.agent == self._agent:
            record = event.record
            if isinstance(record.content, Turn | Reply):
                yield from self._end(self._once.text(record))

    def _send(self, text: str) -> Iterator[str | None]:
        if self._left is not None and len(text) > self._left:
            text = text[: self._left]
        if text.startswith(self._sent) and len(text) > len(self._sent):
            yield text[len(self._sent) :]
            self._sent = text

    def _end(self, text: str) -> Iterator[str | None]:
        if self._sent and not text.startswith(self._sent):
            self._close_item()
            yield None
            self._sent = ""
        yield from self._send(text)
        if self._sent:
            self._close_item()
            yield None
        self._written = self._sent = ""
        self._certain = CertainText()

    def _close_item(self) -> None:
        self.items.append(self._sent)
        if self._left is not None:
            self._left -= len(self._sent)
