"""The terminal's view of a session at work: the root's answer as it is written, and each call as one line.

On a terminal, text is printed as it arrives; an action is not, because its call has a line of its own. When the answer
is there and its text is the last thing on the screen, it is not printed again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from iact.core.records.calls import Call, Result
from iact.core.records.dialogue import Discard, Reply, Turn
from iact.core.records.record import Record
from iact.core.views.events import Delta
from iact.core.views.text import ActionBlock, IsAction, looks_like_action, pieces

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(\S*)")
_MAY_BE_A_FENCE: Final = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:```|~~~).*)", re.S)
_COMMAND: Final = 100
"""The most characters of a call that its line shows."""


class TerminalText:
    """Prints what the root writes while it writes it, without its actions, to `out`."""

    def __init__(self, out: TextIO, is_action: IsAction = looks_like_action) -> None:
        self._out = out
        self._is_action = is_action
        self._line = ""
        """The line that is not complete."""
        self._shown = 0
        """How many of its characters are printed."""
        self._fence = ""
        """The mark that ends the fenced block that is being written."""
        self._hides = False
        """Whether that block is an action."""
        self._written = ""
        """All of the text so far, with what is not printed."""
        self._printed: list[str] = []
        """What of it is printed."""
        self._is_broken = False
        """Whether something else was printed in the middle of it."""
        self._last = ""
        """The text that is complete, if nothing was printed below it."""

    def take(self, delta: Delta) -> None:
        """Print a piece of text, if the root wrote it."""
        if delta.agent != "/" or delta.thought:
            return
        if delta.restart:
            self.end()

        self._written += delta.text
        for piece in delta.text.splitlines(keepends=True):
            self._line += piece
            if piece.endswith("\n"):
                self._complete()
            elif not self._hides and _MAY_BE_A_FENCE.fullmatch(self._line) is None:
                self._print(self._line[self._shown :])
                self._shown = len(self._line)

    def end(self, text: str = "") -> None:
        """The text is complete, or broken off: what follows begins on a new line. `text`: all of it, if it is known;
        its last pieces may not have come yet."""
        if self._written and text.startswith(self._written):
            self.take(Delta("/", text[len(self._written) :]))
        if self._line:
            self._complete()
        self._end_line()
        self._last = "" if self._is_broken else "".join(self._printed)
        self._printed = []
        self._is_broken = False
        self._written = ""
        self._fence = ""
        self._hides = False

    def interrupted(self) -> None:
        """Something else is about to be printed, below what is there of the text."""
        self._last = ""
        self._is_broken = bool(self._printed)
        self._end_line()

    def _end_line(self) -> None:
        if self._printed and not self._printed[-1].endswith("\n"):
            self._out.write("\n")
            self._out.flush()

    def shows(self, text: str) -> bool:
        """Whether the last thing that was printed is `text`."""
        return bool(self._last.strip()) and self._last.strip() == text.strip()

    def _complete(self) -> None:
        line = self._line
        hidden = self._hides
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and not fence[2] and fence[1].startswith(self._fence):
                self._fence, self._hides = "", False
        elif fence is not None:
            self._fence = fence[1]
            self._hides = hidden = self._is_action(fence[2])

        if not hidden:
            self._print(line[self._shown :])
        self._line, self._shown = "", 0

    def _print(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._printed.append(text)


def ends_a_text(record: Record) -> bool:
    """Whether a record ends what the root was writing."""
    return record.agent == "/" and isinstance(record.content, Turn | Reply | Discard)


def call_line(agent: str, call: Call, text: str, is_action: IsAction | None) -> str:
    """A call of an agent with what it was given, on one line. `text`: what the agent wrote; `is_action`: of that agent."""
    written = _action(text, call.action, is_action)
    given = "" if written is None else f"{written.arguments} {written.body}"
    words = " ".join(given.split())
    if len(words) > _COMMAND:
        words = f"{words[: _COMMAND - 1]}…"
    return f"{agent}: {call.function} {words}".rstrip()


def _action(text: str, index: int, is_action: IsAction | None) -> ActionBlock | None:
    blocks = [one for one in pieces(text, is_action or looks_like_action) if isinstance(one, ActionBlock)]
    return blocks[index] if index < len(blocks) else None


def pictures(records: Sequence[Record], folder: Path) -> list[str]:
    """The pictures that calls made, each with its name and where it is. `folder`: the session's."""
    made = [
        one for record in records if isinstance(record.content, Result) for one in record.content.artifacts
    ]
    shown = [one for one in made if one.media.startswith("image/")]
    return [f"{one.name}: {folder / 'blobs' / one.sha256}" for one in shown]
