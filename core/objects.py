"""Finds JSON objects in a model's text, tolerating the mistakes that models make.

Prose and fences around an object, thoughts before it, trailing and missing-value commas, single, curly or no quotes
around keys and words, Python's constants, comments, raw line ends in strings: none of these change the meaning, so they
are accepted. Anything that does change it (an object that is cut off, two values without a comma) is not an object.

Never raises. Takes linear time: text that fails after its first key was meant as an object, so the search continues
where it failed (the text before that is part of the object, not an answer), and all failed attempts together read at
most `_EFFORT` times the text. This is done for texts of up to `LONGEST` characters; a longer one is read in no time
if its first object is strict JSON, and not at all otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from iact.core.characters import paired
from iact.core.ports import JSON

LONGEST: Final = 1 << 16
"""The most characters that are read with tolerance. It takes a microsecond for each, beside which nothing else happens."""
_EFFORT: Final = 8
_DEPTH: Final = 64
_THOUGHT: Final = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_BLANK: Final = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|#[^\n]*)*")
_SPACE: Final = re.compile(r"\s*")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD: Final = re.compile(r"[^\W\d][\w.-]*")
_WORDS: Final[dict[str, JSON]] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None,
}  # fmt: skip
_PLAIN: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*"), "”": re.compile(r"[^”\\]*")}
_CLOSING: Final = {'"': '"', "'": "'", "“": "”", "”": "”"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_LONGEST_NUMBER: Final = 400
_DECODER: Final = json.JSONDecoder()


class _Stuck(Exception):
    """The text at `at` is not JSON, even with tolerance."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def objects(text: str) -> Iterator[dict[str, JSON]]:
    """Iterate over the top-level objects in `text`, in order. Nested objects are not yielded on their own."""
    thought = _THOUGHT.match(text)
    position = thought.end() if thought else 0
    whole = _strict(text[position:])
    if whole is not None:
        yield whole
        return

    if len(text) - position > LONGEST:
        yield from _first_strict(text, position)
        return

    effort = _EFFORT * len(text)
    while (position := text.find("{", position)) >= 0 and effort > 0:
        reader = _Reader(text)
        found: dict[str, JSON] = {}
        try:
            position = reader.members(position + 1, found)
        except _Stuck as stuck:
            effort -= stuck.at - position + 1
            position = stuck.at if reader.keys else position + 1
        else:
            yield found


def object_at(text: str, start: int) -> tuple[dict[str, JSON], int] | None:
    """Read the object whose brace stands at `start`. Returns it and where it ends; None if it is none."""
    found: dict[str, JSON] = {}
    try:
        end = _Reader(text).members(start + 1, found)
    except _Stuck:
        return None
    return found, end


def _strict(text: str) -> dict[str, JSON] | None:
    """The whole text as one object of strict JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _first_strict(text: str, position: int) -> Iterator[dict[str, JSON]]:
    """The first object in `text` from `position`, if it is strict JSON."""
    begins = text.find("{", position)
    if begins < 0:
        return

    try:
        found, _ = _DECODER.raw_decode(text, begins)
    except (ValueError, RecursionError):
        return
    yield found


class _Reader:
    """Reads at a position. Methods return what they read and where it ended, or raise `_Stuck`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.keys = 0
        """How many keys were read with their colons, or begun when the text ended."""

    def members(self, at: int, found: dict[str, JSON], depth: int = 1) -> int:
        """Read members up to the closing brace into `found`. Returns where they ended."""
        at, _ = self._skip(at)
        while not self._text.startswith("}", at):
            key, at = self._key(at)
            at = self._blank(at)
            if not self._text.startswith(":", at):
                raise _Stuck(at)
            self.keys += 1
            found[key], at = self._value(self._blank(at + 1), depth)
            at = self._next(at, "}")
        return at + 1

    def _items(self, at: int, depth: int) -> tuple[list[JSON], int]:
        """Read items up to the closing bracket."""
        found: list[JSON] = []
        at, _ = self._skip(at)
        while not self._text.startswith("]", at):
            value, at = self._value(at, depth)
            found.append(value)
            at = self._next(at, "]")
        return found, at + 1

    def _next(self, at: int, closing: str) -> int:
        """Return the position after the comma that follows a value, or at the closing sign."""
        at, commas = self._skip(at)
        if not commas and not self._text.startswith(closing, at):
            raise _Stuck(at)
        return at

    def _skip(self, at: int) -> tuple[int, int]:
        """Skip blanks and any number of commas. Returns where they ended, and how many commas there were."""
        commas, at = 0, self._blank(at)
        while self._text.startswith(",", at):
            commas, at = commas + 1, self._blank(at + 1)
        return at, commas

    def _blank(self, at: int) -> int:
        """Skip white space and comments."""
        while True:
            match = _BLANK.match(self._text, at)
            at = match.end() if match else at
            if not self._text.startswith("/*", at):
                return at
            end = self._text.find("*/", at + 2)
            if end < 0:
                raise _Stuck(len(self._text))
            at = end + 2

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in _CLOSING:
            try:
                return self._string(at)
            except _Stuck:  # the text ends within it; a double quote here almost always begins a key
                self.keys += self._text[at] == '"'
                raise
        word = _WORD.match(self._text, at) or _NUMBER.match(self._text, at)
        if word is None:
            raise _Stuck(at)
        return word.group(), word.end()

    def _value(self, at: int, depth: int) -> tuple[JSON, int]:
        sign = self._text[at : at + 1]
        if sign in _CLOSING:
            return self._string(at)
        if sign and sign in "{[":
            if depth >= _DEPTH:
                raise _Stuck(at)
            if sign == "[":
                return self._items(at + 1, depth + 1)
            found: dict[str, JSON] = {}
            return found, self.members(at + 1, found, depth + 1)
        if number := _NUMBER.match(self._text, at):
            return _number(number.group(), at), number.end()
        if word := _WORD.match(self._text, at):
            return _WORDS.get(word.group(), word.group()), word.end()
        raise _Stuck(at)

    def _string(self, at: int) -> tuple[str, int]:
        """Read a quoted text. An apostrophe ends a single-quoted text only where a text can end."""
        closing = _CLOSING[self._text[at]]
        pieces: list[str] = []
        at += 1
        while True:
            plain = _PLAIN[closing].match(self._text, at)
            assert plain is not None
            pieces.append(plain.group())
            at = plain.end()
            if at >= len(self._text):
                raise _Stuck(at)
            if self._text[at] == "\\":
                piece, at = self._escape(at + 1)
                pieces.append(piece)
            elif closing == "'" and not self._may_end(at + 1):
                pieces.append("'")
                at += 1
            else:
                return paired("".join(pieces)), at + 1

    def _may_end(self, at: int) -> bool:
        match = _SPACE.match(self._text, at)
        sign = self._text[match.end() : match.end() + 1] if match else ""
        return sign == "" or sign in ",:]}"

    def _escape(self, at: int) -> tuple[str, int]:
        """Read what follows a backslash. A backslash without a meaning is literal."""
        sign = self._text[at : at + 1]
        if sign == "u" and (code := _HEX.match(self._text, at + 1)):
            return chr(int(code.group(), 16)), code.end()
        if sign in _ESCAPES:
            return _ESCAPES[sign], at + 1
        return (sign, at + 1) if sign and sign in "\"'\\/\n" else ("\\", at)


def _number(text: str, at: int) -> JSON:
    if len(text) > _LONGEST_NUMBER:
        raise _Stuck(at + len(text))
    return int(text) if text.lstrip("+-").isdecimal() else float(text)
