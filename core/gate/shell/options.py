"""The options that a program may be given so that it still only looks: a table, and its matcher.

The form of an entry is explained at the head of `programs.toml`. What is not in the table is not
understood; abbreviated long options are not in it, and so are not understood either.
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


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options that are understood. `strict`: other options of this program write or run something."""

    anything: bool = False
    strict: bool = False
    most: int | None = None
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    number: bool = False

    def operands(self, arguments: Sequence[Word]) -> list[Word] | None:
        """The operands among `arguments`; None if an option is not understood."""
        if self.anything:
            return list(arguments)
        found: list[Word] = []
        rest = iter(arguments)
        for word in rest:
            if word.known == "--":
                found.extend(rest)
                break
            if word.loose:
                if self.strict:
                    return None
                found.append(word)
            elif not word.text.startswith("-") or word.text == "-":
                if self.strict and word.text.startswith("+"):
                    return None
                found.append(word)
            else:
                takes_next = self._option(word)
                if takes_next is None:
                    return None
                if takes_next:
                    value = next(rest, None)
                    if value is None or (value.many and self.strict):
                        return None
        return None if self.most is not None and self._too_many(found) else found

    def values(self, arguments: Sequence[Word], letter: str) -> list[Word]:
        """What option `letter` is given among `arguments`, which are understood: joined to it or the next word."""
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
            if equals and name in self.long_valued:
                return False
            if word.known is None:
                return None
            return False if text in self.long else True if text in self.long_valued else None
        if word.known is not None and self.number and _NUMBER.fullmatch(text):
            return False
        for position, letter in enumerate(text[1:], start=2):
            if letter in self.valued:
                return position == len(text)
            if letter not in self.flags:
                return None
        return False


def parse(entry: str) -> OptionTable:
    """Options from an entry of the table."""
    flags: set[str] = set()
    valued: set[str] = set()
    long: set[str] = set()
    long_valued: set[str] = set()
    anything = strict = number = False
    most = None
    for token in entry.split():
        if token == "*":
            anything = True
        elif token == "!":
            strict = True
        elif token == "-#":
            number = True
        elif token[0] == "@":
            most = int(token[1:])
        elif token.startswith("--"):
            (long_valued if token.endswith("=") else long).add(token.removesuffix("="))
        elif token.endswith(":"):
            valued.add(token[1:-1])
        else:
            flags.update(token[1:])
    return OptionTable(
        anything, strict, most, frozenset(flags), frozenset(valued - flags), frozenset(long),
        frozenset(long_valued), number,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tables:
    """`programs.toml`. `effects`: the effect of each program that is known to do more than look."""

    observe: Mapping[str, OptionTable]
    git: Mapping[str, OptionTable]
    effects: Mapping[str, str]
    versioned: frozenset[str]
    version_options: frozenset[str]


@cache
def tables() -> Tables:
    """The table, read once."""
    text = resources.files("iact.core.gate.shell").joinpath("programs.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Tables(
        {name: parse(entry) for name, entry in data["observe"].items()},
        {name: parse(entry) for name, entry in data["git"].items()},
        {name: effect for effect, names in data["effects"].items() for name in names.split()},
        frozenset(data["version"]["programs"].split()),
        frozenset(data["version"]["options"].split()),
    )
