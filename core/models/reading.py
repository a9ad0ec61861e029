"""What an endpoint's text is made into before anything else sees it: storable, and without what the model only thought.

An endpoint may send half of a surrogate pair, which JSON can hold and a journal can't: halves are put together where
both arrive, also in pieces, and one alone becomes a replacement sign. And it may leave a model's reasoning in the text,
as `<think>…</think>` before the reply. That is a draft: nothing in it acts, and no other agent reads it.

Pure: pieces in, pieces out, whatever way they were cut.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from core.characters import paired

_HIGH: Final = re.compile("[\ud800-\udbff]\\Z")
_NAMES: Final = ("think", "thinking", "reasoning")
_OPENINGS: Final = tuple(f"<{name}>" for name in _NAMES)
_LONGEST: Final = max(map(len, _OPENINGS))


class Pairs:
    """Text in pieces, each of which can be stored."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Take the next piece; gives what is certain now."""
        if text.isascii() and not self._half:
            return text
        text = self._half + text
        found = _HIGH.search(text)
        self._half = found.group() if found else ""
        return paired(text[: len(text) - len(self._half)])

    def end(self) -> str:
        """There is no more: what was held back."""
        half, self._half = self._half, ""
        return paired(half)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply, or of what its model thought first."""

    text: str
    thought: bool


class Thoughts:
    """Tells a reply from reasoning that stands before it. Behind the first word of a reply everything is the reply."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._begun = False

    def feed(self, text: str) -> Iterator[Piece]:
        """Take the next piece; give what is certain now."""
        if self._begun:
            yield Piece(text, False)
            return
        self._held += text
        while self._held and not self._begun:
            goes_on = yield from (self._closed() if self._closing else self._opened())
            if not goes_on:
                return

    def end(self) -> Iterator[Piece]:
        """There is no more: what was held back. Reasoning that nothing ended is reasoning."""
        held, self._held = self._held, ""
        if held:
            yield Piece(held, bool(self._closing))

    def _opened(self) -> Generator[Piece, None, bool]:
        """Look for the beginning of reasoning, or of the reply; whether there is more to be looked at."""
        found = self._held.lstrip()
        lowered = found[:_LONGEST].lower()
        opening = next((one for one in _OPENINGS if lowered.startswith(one)), "")
        if opening:
            self._closing, self._held = f"</{opening[1:]}", found[len(opening) :]
            return True
        if not found or any(one.startswith(lowered) for one in _OPENINGS):
            return False
        self._begun, text, self._held = True, self._held, ""
        yield Piece(text, False)
        return False

    def _closed(self) -> Generator[Piece, None, bool]:
        """Look for the end of the reasoning; whether there is more to be looked at."""
        at = self._held.lower().find(self._closing)
        if at < 0:
            keep = _begun(self._held.lower(), self._closing)
            thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        else:
            thought, self._held = self._held[:at], self._held[at + len(self._closing) :]
            self._closing = ""
        if thought:
            yield Piece(thought, True)
        return at >= 0


def _begun(text: str, mark: str) -> int:
    """How many characters at the end of `text` are the beginning of `mark`."""
    most = min(len(text), len(mark) - 1)
    return next((size for size in range(most, 0, -1) if text.endswith(mark[:size])), 0)
