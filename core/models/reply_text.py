"""What an endpoint's text is made into before anything else sees it: storable, and without what the model only thought.

An endpoint may send half of a surrogate pair, which JSON can hold and a journal can't: halves are put together where
both arrive, also in pieces, and one alone becomes a replacement sign. And it may leave a model's reasoning in the text,
as `<think>…</think>` before the reply. That is a draft: nothing in it acts, and no other agent reads it. Some leave out
the opening, which stood in their prompt: then only `</think>` on a line of its own tells that all before it was thought.

Pure: pieces in, pieces out, whatever way they were cut.
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
    """A piece of a reply, or of what its model thought first. `recast`: all that came before is void, and comes again."""

    text: str
    thought: bool
    recast: bool = False


class Thoughts:
    """Tells a reply from reasoning that stands before it. Behind the first word of a reply everything is the reply,
    until the end of reasoning shows that its beginning was not marked.

    `unmarked`: that is expected of this model, so all is taken for reasoning until it ends. `closed_alone`: it was so.
    """

    def __init__(self, *, unmarked: bool = False) -> None:
        self.closed_alone = False
        self._held = ""
        self._closing = "</think>" if unmarked else ""
        self._begun = self._marked = False
        self._said: list[str] = []  # as text, or as reasoning of which the beginning was not marked
        self._unmarked = unmarked

    def feed(self, text: str) -> Iterator[Piece]:
        """Take the next piece; give what is certain now."""
        if self._begun and self._marked:
            text, self._held = self._held + text, ""
            yield Piece(text, False)
            return
        self._held += text
        if (
            self._begun and "<" not in self._held
        ):  # as nearly every piece of a reply: nothing in it can be an end
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
        """There is no more: what was held back. Reasoning that nothing ended is reasoning.

        `whole`: the model ended by itself; then what was only expected to be reasoning was the reply.
        """
        held, self._held = self._held, ""
        if self._unmarked and whole and (self._said or held):
            yield Piece("", False, recast=True)
            yield Piece("".join(self._said) + held, False)
        elif held:
            yield Piece(held, bool(self._closing))

    def marked(self) -> Iterator[Piece]:
        """The endpoint tells reasoning apart itself, so none is to be looked for in the text."""
        if self._unmarked:
            text, self._held, self._closing = "".join(self._said) + self._held, "", ""
            if text:
                self._begun = True
                yield Piece("", False, recast=True)
                yield Piece(text, False)
        self._unmarked, self._marked = False, True

    def _opened(self) -> Generator[Piece, None, bool]:
        """Look for the beginning of reasoning, or of the reply; whether there is more to be looked at."""
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
        """Look for the end of the reasoning; whether there is more to be looked at."""
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
        """The reply goes on; look for the end of reasoning in it."""
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
        """Whether what is at this place of what is held begins its line, in no fenced block."""
        before = "".join(self._said) + self._held[:at]
        return not before.rpartition("\n")[2].strip() and len(_FENCE.findall(before)) % 2 == 0


def _begun(text: str, mark: str) -> int:
    """How many characters at the end of `text` are the beginning of `mark`."""
    most = min(len(text), len(mark) - 1)
    return next((size for size in range(most, 0, -1) if text.endswith(mark[:size])), 0)
