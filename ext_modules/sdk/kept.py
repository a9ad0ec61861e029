"""Output that is streamed up to a cap, while its head and tail are kept."""

from __future__ import annotations

from collections import deque
from typing import Final

CAP: Final = 1_000_000
"""The most bytes of UTF-8 that are streamed, and the most that are kept."""


class Kept:
    """Takes text, returns the part of it to stream, and has the shortened whole at the end."""

    def __init__(self, cap: int = CAP) -> None:
        self._half = cap // 2
        self._cap = cap
        self.size = 0
        """Bytes of UTF-8 so far."""
        self._streamed = 0
        """Bytes of these that were streamed."""
        self.at_line_start = True

        # What is kept.
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0

    @property
    def complete(self) -> bool:
        """Whether everything was streamed."""
        return self._streamed == self.size

    @property
    def left_out(self) -> int:
        """Bytes of UTF-8 that are in neither head nor tail."""
        return self.size - self._head_size - self._tail_size

    def feed(self, text: str) -> str:
        """Take the next text. Return the beginning of it that may still be streamed."""
        room = self._cap - self._streamed if self.complete else 0
        size = _size(text)
        self.size += size
        if text:
            self.at_line_start = text.endswith("\n")
        self._keep(text, size)

        streamed = text if size <= room else _first(text, room)
        self._streamed += _size(streamed)
        return streamed

    def _keep(self, text: str, size: int) -> None:
        """Keep a text in the head, as far as that has room, and in the tail, which loses its oldest."""
        if not self._tail:
            room = self._half - self._head_size
            head = text if size <= room else _first(text, room)
            self._head.append(head)
            self._head_size += _size(head)
            text = text[len(head) :]
            size = _size(text)
        if not text:
            return

        self._tail.append(text)
        self._tail_size += size
        while (excess := self._head_size + self._tail_size - self._cap) > 0:
            self._shorten(excess)

    def _shorten(self, excess: int) -> None:
        """Remove the oldest text of the tail, or these bytes of it."""
        oldest = self._tail.popleft()
        size = _size(oldest)
        self._tail_size -= size
        if size > excess:
            rest = oldest.encode()[excess:].decode("utf-8", "ignore")
            self._tail.appendleft(rest)
            self._tail_size += _size(rest)

    def text(self) -> str:
        """Head and tail, with a sentence between them that says how much was left out."""
        head = "".join(self._head)
        tail = "".join(self._tail)
        if not self.left_out:
            return head + tail
        return f"{head}\n[{self.left_out:,} bytes of output were left out here.]\n{tail}"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _first(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")
