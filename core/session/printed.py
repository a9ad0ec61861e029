"""What a running call has printed so far, in bounded memory: its beginning and its end, and how much is between them."""

from __future__ import annotations

from typing import Final

_HEAD: Final = 1 << 17
_TAIL: Final = 1 << 16
"""How many characters are kept at the beginning and at the end, in case the call does not finish."""


class Printed:
    """Takes what a call prints, piece by piece."""

    def __init__(self) -> None:
        self._head = ""
        self._tail = ""
        self._between = 0

    def feed(self, text: str) -> None:
        """Take the next piece."""
        room = _HEAD - len(self._head)
        self._head += text[:room]
        self._tail += text[room:]

        # The end is cut when it is twice as long, so that many short pieces cost little.
        if len(self._tail) > 2 * _TAIL:
            self._between += len(self._tail) - _TAIL
            self._tail = self._tail[-_TAIL:]

    def text(self) -> str:
        """All of it, or its beginning and its end with a line between them about what was not kept."""
        if not self._between:
            return self._head + self._tail
        return f"{self._head}\n[{self._between:,} characters were not kept here.]\n{self._tail}"
