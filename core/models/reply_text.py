"""Prepares an endpoint's text before anything else sees it: makes it storable, and separates the model's reasoning.

An endpoint may send half of a surrogate pair, which JSON can hold and a journal can't: halves are joined if both
arrive, even in separate pieces, and a single half becomes a replacement character. It may also leave a model's
reasoning in the text, as `<think>…</think>` before the reply. Reasoning is only a draft: nothing in it acts, and no
other agent reads it. Some models omit the opening mark, because it was in their prompt: then only `</think>` on its own
line shows that everything before it was reasoning.

Pure: pieces in, pieces out, no matter how they were cut.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from iact.core.characters import paired

_HIGH: Final = re.compile("[\ud800-\udbff]\\Z")
_NAMES: Final = ("think", "thinking", "reasoning")
_OPENINGS: Final = tuple(f"<{name}>" for name in _NAMES)
_LONGEST: Final = max(map(len, _OPENINGS))
_CLOSING: Final = re.compile(f"</(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
_CLOSING_HEAD: Final = re.compile("</?[a-z]{0,9}\\Z", re.IGNORECASE)
_FENCE: Final = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


class Pairs:
    """Joins surrogate pairs, so that each piece of text can be stored."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Take the next piece; returns the text that is now certain."""
        if text.isascii() and not self._half:
            return text
        text = self._half + text
        found = _HIGH.search(text)
        self._half = found.group() if found else ""
        return paired(text[: len(text) - len(self._half)])

    def end(self) -> str:
        """End the text; returns what was held back."""
        half, self._half = self._half, ""
        return paired(half)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply, or of the reasoning before it. `recast`: everything before is void, and is sent again."""

    text: str
    thought: bool
    recast: bool = False


class Thoughts:
    """Separates a reply from the reasoning before it. After the first word of a reply everything is the reply, unless
    the end of reasoning shows that its beginning was not marked.

    `unmarked`: unmarked reasoning is expected of this model, so everything counts as reasoning until it ends.
    `closed_alone`: the reply did contain unmarked reasoning.
    """

    def __init__(self, *, unmarked: bool = False) -> None:
        self.closed_alone = False
        self._held = ""
        self._closing = "</think>" if unmarked else ""
        self._begun = self._marked = False
        self._said: list[str] = []  # as text, or as reasoning whose beginning was not marked
        self._unmarked = unmarked

    def feed(self, text: str) -> Iterator[Piece]:
        """Take the next piece; yields what is now certain."""
        if self._begun and self._marked:
            text, self._held = self._held + text, ""
            yield Piece(text, False)
            return
        self._held += text
        if (
            self._begun and "<" not in self._held
        ):  # true for nearly every piece of a reply: it can't contain an end
            said, self._held = self._held, ""
            if said:
                self._said.append(said)
                yield Piece(said, False)
            return
        while self._held:
            if self._begun:
                goes_on = yield from self._going_on()
            else:
                goes_on = yield from (self._closed() if self._closing else self._opened())
            if not goes_on:
                return

    def end(self, *, whole: bool = True) -> Iterator[Piece]:
        """End the text; yields what was held back. Reasoning without an end stays reasoning.

        `whole`: the model finished on its own; then text that was only expected to be reasoning was the reply.
        """
        held, self._held = self._held, ""
        if self._unmarked and whole and (self._said or held):
            yield Piece("", False, recast=True)
            yield Piece("".join(self._said) + held, False)
        elif held:
            yield Piece(held, bool(self._closing))

    def marked(self) -> Iterator[Piece]:
        """Note that the endpoint marks reasoning itself, so the text is not searched for it."""
        if self._unmarked:
            text, self._held, self._closing = "".join(self._said) + self._held, "", ""
            if text:
                self._begun = True
                yield Piece("", False, recast=True)
                yield Piece(text, False)
        self._unmarked, self._marked = False, True

    def _opened(self) -> Generator[Piece, None, bool]:
        """Look for the beginning of reasoning, or of the reply. Returns whether there is more to search."""
        found = self._held.lstrip()
        lowered = found[:_LONGEST].lower()
        opening = next((one for one in _OPENINGS if lowered.startswith(one)), "")
        if opening:
            self._closing, self._held = f"</{opening[1:]}", found[len(opening) :]
            self._marked = True
            return True
        if not found or any(one.startswith(lowered) for one in _OPENINGS):
            return False
        self._begun = True
        if self._marked:
            text, self._held = self._held, ""
            yield Piece(text, False)
            return False
        return True

    def _closed(self) -> Generator[Piece, None, bool]:
        """Look for the end of the reasoning. Returns whether there is more to search."""
        if self._unmarked and not self._said:
            found = self._held.lstrip().lower()
            if found.startswith(_OPENINGS):
                self._closing, self._unmarked = "", False  # it is marked after all
                return True
            if any(one.startswith(found) for one in _OPENINGS):
                return False
        at = self._held.lower().find(self._closing)
        if at < 0:
            keep = _begun(self._held.lower(), self._closing)
            thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        else:
            thought, self._held = self._held[:at], self._held[at + len(self._closing) :]
            self.closed_alone = self.closed_alone or self._unmarked
            self._closing, self._marked, self._unmarked = "", True, False
        if thought:
            self._said.append(thought)
            yield Piece(thought, True)
        return at >= 0

    def _going_on(self) -> Generator[Piece, None, bool]:
        """Continue the reply, and look for the end of reasoning in it. Returns whether there is more to search."""
        found = next((one for one in _CLOSING.finditer(self._held) if self._stands_alone(one.start())), None)
        if found is not None:
            thought, self._held = "".join(self._said) + self._held[: found.start()], self._held[found.end() :]
            self.closed_alone, self._marked, self._begun = True, True, False
            yield Piece("", True, recast=True)
            if thought:
                yield Piece(thought, True)
            return True
        begins = _CLOSING_HEAD.search(self._held)
        upto = begins.start() if begins else len(self._held)
        text, self._held = self._held[:upto], self._held[upto:]
        self._said.append(text)
        if text:
            yield Piece(text, False)
        return False

    def _stands_alone(self, at: int) -> bool:
        """Whether the text at this position begins its line, outside of fenced blocks."""
        before = "".join(self._said) + self._held[:at]
        return not before.rpartition("\n")[2].strip() and len(_FENCE.findall(before)) % 2 == 0


def _begun(text: str, mark: str) -> int:
    """How many characters at the end of `text` are the beginning of `mark`."""
    most = min(len(text), len(mark) - 1)
    return next((size for size in range(most, 0, -1) if text.endswith(mark[:size])), 0)
