"""Regular expressions that a model may write: found in time linear in the text, whatever they say.

A contract's pattern comes from a plan, the text from a tool; with Python's backtracking `re`, either
could hang the trusted core for ever. This is Thompson's construction with a lazily built automaton:
alternation, groups, classes, repetition, `^`, `$` (of lines), `(?i)`. What needs backtracking
(back-references, look-around) is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MAX_LENGTH: Final = 1000
MAX_STATES: Final = 4000
MAX_TEXT: Final = 1 << 18
_CACHED: Final = 20_000

_CATEGORIES: Final = {"d": str.isdecimal, "w": lambda c: c.isalnum() or c == "_", "s": str.isspace}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


@dataclass(frozen=True, slots=True)
class _Chars:
    """A set of characters: ranges and categories, perhaps negated."""

    ranges: tuple[tuple[str, str], ...] = ()
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False

    def has(self, char: str, fold: bool) -> bool:
        forms = {char, char.lower(), char.upper()} if fold else {char}
        hit = any(
            any(low <= one <= high for low, high in self.ranges)
            or any(_CATEGORIES[name](one) == wanted for name, wanted in self.categories)
            for one in forms
        )
        return hit != self.negated


_ANY: Final = _Chars((("\n", "\n"),), negated=True)


@dataclass(slots=True)
class _State:
    chars: _Chars | None = None
    only: str = ""
    """An assertion: "^" or "$"; "" for none."""
    out: list[int] = field(default_factory=list)


class Pattern:
    """A compiled pattern.

    Raises:
        ValueError: it is not well-formed, too large, or needs backtracking; says what and where.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_LENGTH:
            raise ValueError(f"the pattern has {len(source)} characters, at most {MAX_LENGTH} are allowed")
        self._fold = source.startswith("(?i)")
        self._source = source
        self._at = 4 if self._fold else 0
        self._states: list[_State] = []
        self._depth = 0
        self._accept = self._new()
        start = self._alternatives(self._accept)
        if self._at < len(source):
            raise self._wrong("a closing parenthesis has no opening one")
        self._start = frozenset({start})
        self._closed: dict[tuple[frozenset[int], bool, bool], frozenset[int]] = {}
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def found_in(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the first 262,144 characters of `text`."""
        text = text[:MAX_TEXT]
        here, last = self._start, len(text)
        for at in range(last + 1):
            begin = at == 0 or text[at - 1] == "\n"
            end = at == last or text[at] == "\n"
            closed = self._closed.get((here, begin, end)) or self._close(here, begin, end)
            if self._accept in closed:
                return True
            if at < last:
                here = self._steps.get((closed, text[at])) or self._step(closed, text[at])
        return False

    # --- running ----------------------------------------------------------------------------------

    def _close(self, states: frozenset[int], begin: bool, end: bool) -> frozenset[int]:
        seen = set(states)
        todo = list(states)
        while todo:
            state = self._states[todo.pop()]
            if (
                state.chars is not None
                or (state.only == "^" and not begin)
                or (state.only == "$" and not end)
            ):
                continue
            fresh = [one for one in state.out if one not in seen]
            seen.update(fresh)
            todo.extend(fresh)
        if len(self._closed) > _CACHED:
            self._closed.clear()
        return self._closed.setdefault((states, begin, end), frozenset(seen))

    def _step(self, states: frozenset[int], char: str) -> frozenset[int]:
        after = set(self._start)
        for one in states:
            state = self._states[one]
            if state.chars is not None and state.chars.has(char, self._fold):
                after.update(state.out)
        if len(self._steps) > _CACHED:
            self._steps.clear()
        return self._steps.setdefault((states, char), frozenset(after))

    # --- reading: each function gives the entry of what it read, leading on to `then` ----------------

    def _new(self, chars: _Chars | None = None, only: str = "", out: tuple[int, ...] = ()) -> int:
        if len(self._states) >= MAX_STATES:
            raise ValueError("the pattern repeats too much; use smaller counts")
        self._states.append(_State(chars, only, list(out)))
        return len(self._states) - 1

    def _wrong(self, what: str) -> ValueError:
        return ValueError(
            f"the pattern {self._source[:60]!r} is not usable: {what} (at character {self._at + 1})"
        )

    def _peek(self) -> str:
        return self._source[self._at] if self._at < len(self._source) else ""

    def _alternatives(self, then: int) -> int:
        entries = [self._sequence(then)]
        while self._peek() == "|":
            self._at += 1
            entries.append(self._sequence(then))
        return entries[0] if len(entries) == 1 else self._new(out=tuple(entries))

    def _sequence(self, then: int) -> int:
        atoms: list[tuple[int, int, int | None]] = []
        while self._peek() not in ("", "|", ")"):
            atoms.append(self._measured())
        end = self._at
        entry = then
        for begin, least, most in reversed(atoms):
            entry = self._repeated(begin, least, most, entry)
        self._at = end
        return entry

    def _measured(self) -> tuple[int, int, int | None]:
        """Pass over one atom: where it begins, and how often it is to be found."""
        begin, keep = self._at, len(self._states)
        self._atom(self._accept)
        del self._states[keep:]
        return begin, *self._counts()

    def _repeated(self, begin: int, least: int, most: int | None, then: int) -> int:
        entry = then
        if most is None:
            entry = self._new(out=(then,))
            self._at = begin
            self._states[entry].out.append(self._atom(entry))
        else:
            for _ in range(most - least):
                self._at = begin
                entry = self._new(out=(self._atom(entry), then))
        for _ in range(least):
            self._at = begin
            entry = self._atom(entry)
        return entry

    def _counts(self) -> tuple[int, int | None]:
        char = self._peek()
        counts: tuple[int, int | None] = (1, 1)
        if char in ("*", "+", "?"):
            self._at += 1
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        elif char == "{":
            close = self._source.find("}", self._at)
            low, comma, high = self._source[self._at + 1 : max(close, self._at + 1)].partition(",")
            if close < 0 or not low.isdecimal() or (high and not high.isdecimal()):
                raise self._wrong("a count is written {2}, {2,} or {2,5}")
            counts = (int(low), (int(high) if high else None) if comma else int(low))
            if counts[0] > 500 or (counts[1] or 0) > 500 or (counts[1] is not None and counts[1] < counts[0]):
                raise self._wrong("a count is at most 500 and goes upwards")
            self._at = close + 1
        else:
            return counts
        if self._peek() == "?":
            self._at += 1  # lazy or greedy: what is found is the same
        if self._peek() and self._peek() in "*+{":
            raise self._wrong("a repetition is repeated; put it into a group")
        return counts

    def _atom(self, then: int) -> int:
        char = self._peek()
        if char == "(":
            return self._group(then)
        if char in "*+?{":
            raise self._wrong(f"{char!r} has nothing to repeat")
        self._at += 1
        if char in "^$":
            return self._new(only=char, out=(then,))
        if char == ".":
            return self._new(_ANY, out=(then,))
        if char == "[":
            return self._new(self._class(), out=(then,))
        if char == "\\":
            return self._new(self._escape(), out=(then,))
        return self._new(_Chars(((char, char),)), out=(then,))

    def _group(self, then: int) -> int:
        self._at += 1
        if self._source.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            raise self._wrong("look-around and named groups are not supported; use a plain group")
        self._depth += 1
        if self._depth > 8:
            raise self._wrong("groups are nested too deeply")
        entry = self._alternatives(then)
        self._depth -= 1
        if self._peek() != ")":
            raise self._wrong("a group is not closed")
        self._at += 1
        return entry

    def _escape(self) -> _Chars:
        char = self._peek()
        self._at += 1
        if char and char.lower() in _CATEGORIES:
            return _Chars(categories=((char.lower(), char.islower()),))
        if char in _ESCAPES:
            char = _ESCAPES[char]
        elif not char or char.isalnum():
            raise self._wrong(f"\\{char} is not supported")
        return _Chars(((char, char),))

    def _class(self) -> _Chars:
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[str, str]] = []
        categories: list[tuple[str, bool]] = []
        first = True
        while self._peek() != "]" or first:
            if not self._peek():
                raise self._wrong("a class is not closed")
            first = False
            low = self._member(categories)
            if low and self._peek() == "-" and self._source[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member(categories)
                if not high or high < low:
                    raise self._wrong("a range goes upwards, from one character to another")
                ranges.append((low, high))
            elif low:
                ranges.append((low, low))
        self._at += 1
        return _Chars(tuple(ranges), tuple(categories), negated)

    def _member(self, categories: list[tuple[str, bool]]) -> str:
        char = self._peek()
        self._at += 1
        if char != "\\":
            return char
        chars = self._escape()
        categories.extend(chars.categories)
        return chars.ranges[0][0] if chars.ranges else ""
