"""The options with which a program still only reads: a table, and its matcher.

The head of `programs.toml` explains the form of an entry. Anything that is not in the table is not understood.
Abbreviated long options are not in it, so they are not understood either.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from iact.core.gate.shell.words import Word

_NUMBER: Final = re.compile(r"-\d+")
_MARKS: Final = frozenset({"*", "+", ".", "@@", "-#"})


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options that are understood. Its fields are the marks at the head of `programs.toml`.

    Unless the program is `free`, an unknown option could write or run something.
    """

    anything: bool = False
    free: bool = False
    alone: bool = False
    listed: bool = False
    most: int | None = None
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    joined: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    long_joined: frozenset[str] = frozenset()
    number: bool = False

    def operands(self, arguments: Sequence[Word]) -> list[Word] | None:
        """Return the operands among `arguments`, or None if an option is not understood."""
        if self.anything:
            return list(arguments)
        found: list[Word] = []
        rest = iter(arguments)
        for word in rest:
            if word.known == "--":
                found.extend(rest)
                break
            if word.loose:
                if not self.free:
                    return None
                found.append(word)
            elif not word.text.startswith("-") or word.text == "-":
                if (word.text.startswith("+") and not self.free) or (
                    word.text.startswith("@") and self.listed
                ):
                    return None
                found.append(word)
            else:
                takes_next = self._option(word)
                if takes_next is None:
                    return None
                if takes_next:
                    value = next(rest, None)
                    if value is None or not (self.free or _plain(value)):
                        return None
        return None if self.most is not None and self._too_many(found) else found

    def values(self, arguments: Sequence[Word], letter: str) -> list[Word]:
        """Return the values of option `letter` in `arguments`, which are understood: joined to it, or the next word."""
        found: list[Word] = []
        rest = iter(arguments)
        for word in rest:
            if word.known == "--":
                break
            if not word.text.startswith("-") or word.text.startswith("--"):
                continue
            for position, one in enumerate(word.text[1:], start=2):
                if one in self.valued:
                    joined = word.text[position:]
                    value = Word(joined, word.many, word.loose) if joined else next(rest, None)
                    if one == letter and value is not None:
                        found.append(value)
                    break
        return found

    def _too_many(self, found: Sequence[Word]) -> bool:
        assert self.most is not None
        return len(found) > self.most or any(word.many for word in found)

    def _option(self, word: Word) -> bool | None:
        """Whether an option takes the next word; None if it is not understood."""
        text = word.text
        if text.startswith("--"):
            name, equals, _ = text.partition("=")
            if equals and (name in self.long_valued or name in self.long_joined):
                return False
            if word.known is None:
                return None
            return False if text in self.long else True if text in self.long_valued else None
        if word.known is not None and self.number and _NUMBER.fullmatch(text):
            return False
        if self.alone and re.fullmatch(r"-\w(?:\d+)?", text, re.ASCII) is None:
            return None
        for position, letter in enumerate(text[1:], start=2):
            if letter in self.joined and position < len(text):
                return False
            if letter in self.valued:
                return position == len(text)
            if letter not in self.flags:
                return None
        return False


def _plain(value: Word) -> bool:
    """Whether a word can only be the value of the option before it, even if that option takes none."""
    return not value.loose and not value.many and re.match(r"-[^\d]", value.text) is None


def parse(entry: str) -> OptionTable:
    """Parse an entry of the table."""
    flags: set[str] = set()
    valued: set[str] = set()
    joined: set[str] = set()
    long: set[str] = set()
    long_valued: set[str] = set()
    long_joined: set[str] = set()
    tokens = entry.split()
    most = None
    for token in tokens:
        if token in _MARKS:
            continue
        if token[0] == "@":
            most = int(token[1:])
        elif token.startswith("--") and token.endswith("=?"):
            long_joined.add(token.removesuffix("=?"))
        elif token.startswith("--"):
            (long_valued if token.endswith("=") else long).add(token.removesuffix("="))
        elif token.endswith("?"):
            joined.add(token[1:-1])
        elif token.endswith(":"):
            valued.add(token[1:-1])
        else:
            flags.update(token[1:])
    return OptionTable(
        anything="*" in tokens, free="+" in tokens, alone="." in tokens, listed="@@" in tokens, most=most,
        flags=frozenset(flags), valued=frozenset(valued - flags), joined=frozenset(joined),
        long=frozenset(long), long_valued=frozenset(long_valued), long_joined=frozenset(long_joined),
        number="-#" in tokens,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tables:
    """The contents of `programs.toml`. `effects`: the effect of each program that is known to do more than read.

    `versioned`: the options with which a program only prints its version or help.
    """

    observe: Mapping[str, OptionTable]
    git: Mapping[str, OptionTable]
    effects: Mapping[str, str]
    versioned: Mapping[str, frozenset[str]]


@cache
def tables() -> Tables:
    """Return the tables, read once."""
    text = resources.files("iact.core.gate.shell").joinpath("programs.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    versions = {
        option: frozenset(names.split())
        for options, names in data["version"].items()
        for option in options.split()
    }
    return Tables(
        {name: parse(entry) for name, entry in data["observe"].items()},
        {name: parse(entry) for name, entry in data["git"].items()},
        {name: effect for effect, names in data["effects"].items() for name in names.split()},
        {
            name: frozenset(option for option, those in versions.items() if name in those)
            for name in frozenset().union(*versions.values())
        },
    )
