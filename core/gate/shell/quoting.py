"""The lower half of the second reader: where a word ends, with its quotes and substitutions."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Final

Span = tuple[int, int]

_PLAIN: Final = re.compile(r"[^ \t\n;&|()<>\\'\"`$]+")
_LITERAL: Final = re.compile(r"[^\\\"`$]+")
_BRACED: Final = re.compile(r"[^\\'\"`${}<>()\n]+")
_ARITHMETIC: Final = re.compile(r"[^()'\"`$\\;\n{}]+")


class Misread(Exception):
    """The script has something at this place that the reader does not know."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a script is made of; each place as its first byte and its last byte + 1."""

    commands: set[tuple[Span, ...]] = field(default_factory=set)
    """The words of each simple command, without its assignments and redirections."""
    conditions: set[Span] = field(default_factory=set)
    """Each `[[ … ]]` and `(( … ))`."""
    assignments: set[Span] = field(default_factory=set)
    """Those before a command or on their own."""
    targets: set[Span] = field(default_factory=set)
    """The targets of redirections, and the delimiters of here-documents."""


class Quoting:
    """Reads the words of `text`, from `position` to `end`."""

    def __init__(self, text: str, shape: Shape, position: int, end: int) -> None:
        self.shape = shape
        self._text = text
        self._at = position
        self._end = end
        self._documents: list[tuple[str, bool, bool]] = []
        """Here-documents whose text comes after the next newline: delimiter, quoted, with tabs removed."""

    @abstractmethod
    def _script(self, start: int, end: int) -> None:
        """Read a whole script between two places."""

    @abstractmethod
    def _substitution(self) -> None:
        """Read commands up to and including a closing parenthesis."""

    def _skip(self, pattern: re.Pattern[str]) -> None:
        """Go to the end of what a pattern matches here, if it does."""
        match = pattern.match(self._text, self._at, self._end)
        if match:
            self._at = match.end()

    def _word(self, *, regex: bool = False) -> Span:
        """Read one word. `regex`: on the right of `=~`, where parentheses and bars belong to it."""
        start = self._at
        if self._text[self._at : self._at + 2] in ("<(", ">("):
            self._at += 2
            self._substitution()

        depth = 0
        while self._at < self._end:
            match = _PLAIN.match(self._text, self._at, self._end)
            if match:
                self._at = match.end()
                continue

            here = self._text[self._at]
            if regex and here in "()|":
                depth += (here == "(") - (here == ")")
                self._at += 1
            elif here in " \t\n;&|()<>":
                break
            else:
                self._quoting(here)

        if depth or self._at == start or self._at > self._end:
            raise Misread("a word is missing")

        # To bash, the text of a here-document begins after the first newline, even one within quotes.
        if self._documents and "\n" in self._text[start : self._at]:
            raise Misread("a newline in a word, before the text of a here-document")
        return start, self._at

    def _quoting(self, here: str) -> None:
        """Read a quote or an expansion. `here`: the character that it begins with."""
        match here:
            case "\\":
                self._at += 2
            case "'":
                self._at = self._closing("'", self._at + 1)
            case '"':
                self._double()
            case "`":
                self._backquotes()
            case _:
                self._dollar(quoted=False)

    def _closing(self, mark: str, position: int) -> int:
        end = self._text.find(mark, position, self._end)
        if end < 0:
            raise Misread(f"{mark} does not end")
        return end + 1

    def _double(self) -> None:
        self._at += 1
        while True:
            self._skip(_LITERAL)
            if self._at >= self._end:
                raise Misread('" does not end')

            match self._text[self._at]:
                case '"':
                    self._at += 1
                    return
                case "\\":
                    self._at += 2
                case "`":
                    self._backquotes()
                case _:
                    self._dollar(quoted=True)

    def _backquotes(self) -> None:
        end = self._closing("`", self._at + 1)
        inside = self._text[self._at : end]
        if "\\" in inside or "<<" in inside:
            raise Misread("escapes within backquotes")

        self._script(self._at + 1, end - 1)
        self._at = end

    def _dollar(self, *, quoted: bool) -> None:
        """Read from a dollar sign. A variable's name after it is read as text."""
        following = self._text[self._at + 1 : min(self._at + 3, self._end)]
        self._at += 1
        if following.startswith("(("):
            self._at += 2
            self._arithmetic()
        elif following.startswith("("):
            self._at += 1
            self._substitution()
        elif following.startswith("{"):
            self._at += 1
            self._braces(quoted=quoted)
        elif following.startswith("["):
            raise Misread("$[")
        elif following.startswith('"') and not quoted:
            raise Misread('$"')
        elif following.startswith("'") and not quoted:
            self._ansi_c()

    def _ansi_c(self) -> None:
        """Read from after the dollar sign of `$'` to the end of its quote, which can be escaped."""
        self._at += 1
        while self._at < self._end and self._text[self._at] != "'":
            self._at += 2 if self._text[self._at] == "\\" else 1

        if self._at >= self._end:
            raise Misread("$' does not end")
        self._at += 1

    def _braces(self, *, quoted: bool) -> None:
        """Read from after `${` to the end of `}`."""
        if self._text[self._at : self._at + 1] in (*" \t\n|", ""):
            raise Misread("a substitution in braces")

        while True:
            self._skip(_BRACED)
            if self._at >= self._end:
                raise Misread("${ does not end")

            here = self._text[self._at]
            if here == "}":
                self._at += 1
                return
            if here in "{<>()\n" or (here == "'" and quoted):
                raise Misread(f"{here} within braces")
            self._quoting(here)

    def _arithmetic(self, *, parts: bool = False) -> None:
        """Read from after `((` to the end of `))`. `parts`: with the semicolons of a loop."""
        depth = 2
        while True:
            self._skip(_ARITHMETIC)
            if self._at >= self._end:
                raise Misread("(( does not end")

            here = self._text[self._at]
            if here == ";" and parts:
                self._at += 1
            elif here == "(":
                depth += 1
                self._at += 1
            elif here == ")":
                depth -= 1
                self._at += 1
                # The last two must be side by side: `((a) )` is a subshell in a subshell.
                if depth == 1:
                    if not self._text.startswith(")", self._at):
                        raise Misread("(( that is no arithmetic")
                    self._at += 1
                    return
            elif here == "$":
                self._dollar(quoted=True)
            elif here == '"':
                self._double()
            else:
                raise Misread(f"{here} in arithmetic")

    def expansions(self) -> None:
        """Read the text of a here-document: no quotes, but expansions."""
        while self._at < self._end:
            match self._text[self._at]:
                case "\\":
                    self._at += 2
                case "$":
                    self._dollar(quoted=True)
                case "`":
                    self._backquotes()
                case _:
                    self._at += 1
        if self._at > self._end:
            raise Misread("an expansion goes beyond its text")
