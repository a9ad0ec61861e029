"""Parses server-sent events: bytes in, the data of whole events out. Pure.

Implements only what a stream of chunks needs of the standard
(https://html.spec.whatwg.org/multipage/server-sent-events.html, 9.2.6): `data` counts; names, ids and retry times are
ignored, and an event without data is skipped. Data stays bytes, so that an event that is not text fails at its place in
the order of events, no matter how the stream was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LONGEST: Final = 16 * 1024 * 1024
"""The largest event, in bytes: far more than any chunk of a reply needs, and small enough to hold."""

_ENDS: Final = (b"\n", b"\r")


class EventReader:
    """Reads the bytes of one stream. `longest`: the limit on an event, and on a line, in bytes."""

    def __init__(self, longest: int = LONGEST) -> None:
        self.overlong = False
        """Whether an event exceeded the limit; nothing more is read then."""
        self._longest = longest
        self._line = bytearray()
        """The newest line, as far as it has arrived."""
        self._data: list[bytes] = []
        """The data of the current event, by line."""
        self._size = 0
        """The bytes of its lines with data."""
        self._returned = False
        """Whether the last piece ended in CR, so that a LF that follows ends the same line."""

    def feed(self, piece: bytes) -> Sequence[bytes]:
        """Take the next bytes; returns the data of the events that they complete."""
        if self._returned and piece:
            self._returned = False
            piece = piece.removeprefix(b"\n")
        if self.overlong or not piece:
            return ()

        if b"\n" not in piece and b"\r" not in piece:
            self._line += piece
            self.overlong = self._size + len(self._line) > self._longest
            return ()

        self._returned = piece.endswith(b"\r")
        if self._line:
            piece = bytes(self._line) + piece
            self._line.clear()
        lines = piece.splitlines()  # for bytes, these are the standard's three line ends and no others
        if not piece.endswith(_ENDS):
            self._line += lines.pop()

        events = self._events(lines)
        self.overlong = self.overlong or self._size + len(self._line) > self._longest
        return events

    def _events(self, lines: Sequence[bytes]) -> list[bytes]:
        """The data of the events that these lines end. An empty line ends one."""
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data = []
                self._size = 0
                continue

            if self._size + len(line) > self._longest:
                self.overlong = True
                break

            name, _, value = line.partition(b":")
            if name == b"data":
                self._size += len(line)
                self._data.append(value.removeprefix(b" "))
        return events
