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
    """The options that are understood. Its fields are the marks at the head of `programs.toml`."""

    anything: bool = False
    """`*`: no argument at all changes that the program only reads."""
    free: bool = False
    """`+`: no option does. Of other programs, an unknown option could write or run something."""
    alone: bool = False
    """`.`: options can't be combined."""
    listed: bool = False
    """`@@`: an operand that begins with @ names a file with more options."""
    most: int | None = None
    """`@2`: at most that many operands."""
    flags: frozenset[str] = frozenset()
    """Letters of options without a value."""
    valued: frozenset[str] = frozenset()
    """Letters of options with a value, joined or the next word."""
    joined: frozenset[str] = frozenset()
    """Letters of options whose value must be joined."""
    long: frozenset[str] = frozenset()
    """Long options without a value."""
    long_valued: frozenset[str] = frozenset()
    """Long options with a value, joined or the next word."""
    long_joined: frozenset[str] = frozenset()
    """Long options whose value must be joined."""
    number: bool = False
    """`-#`: a number, as in `-20`."""

    def operands(self, arguments: Sequence[Word]) -> list[Word] | None:
        """Return the operands among `arguments`, or None if an option is not understood."""
        if self.anything:
            return list(arguments)

        operands: list[Word] = []
        rest = iter(arguments)
        for word in rest:
            if word.known == "--":
                operands.extend(rest)
                break

            if word.loose:
                if not self.free:
                    return None
                operands.append(word)
            elif not word.text.startswith("-") or word.text == "-":
                if self._is_more_than_operand(word.text):
                    return None
                operands.append(word)
            else:
                takes_next = self._option(word)
                if takes_next is None:
                    return None
                if takes_next and not self._may_be_value(next(rest, None)):
                    return None

        if self.most is not None and self._too_many(operands):
            return None
        return operands

    def _is_more_than_operand(self, text: str) -> bool:
        """Whether a word without a dash is an option all the same, or names a file with options."""
        return (text.startswith("+") and not self.free) or (text.startswith("@") and self.listed)

    def _may_be_value(self, word: Word | None) -> bool:
        """Whether the word after an option that takes one can be its value, and nothing else."""
        return word is not None and (self.free or _plain(word))

    def values(self, arguments: Sequence[Word], letter: str) -> list[Word]:
        """Return the values of option `letter` in `arguments`, which are understood: joined to it, or the next word."""
        values: list[Word] = []
        rest = iter(arguments)
        for word in rest:
            if word.known == "--":
                break
            if not word.text.startswith("-") or word.text.startswith("--"):
                continue

            # The first letter that takes a value ends the letters: all that follows is its value.
            for position, option in enumerate(word.text[1:], start=2):
                if option in self.valued:
                    joined = word.text[position:]
                    value = Word(joined, word.many, word.loose) if joined else next(rest, None)
                    if option == letter and value is not None:
                        values.append(value)
                    break
        return values

    def _too_many(self, operands: Sequence[Word]) -> bool:
        assert self.most is not None
        return len(operands) > self.most or any(word.many for word in operands)

    def _option(self, word: Word) -> bool | None:
        """Whether an option takes the next word; None if it is not understood."""
        text = word.text
        if text.startswith("--"):
            return self._long_option(word)

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

    def _long_option(self, word: Word) -> bool | None:
        """Whether a long option takes the next word; None if it is not understood."""
        name, equals, _ = word.text.partition("=")
        if equals and (name in self.long_valued or name in self.long_joined):
            return False
        if word.known is None:
            return None

        if word.text in self.long:
            return False
        if word.text in self.long_valued:
            return True
        return None


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
    most = None

    tokens = entry.split()
    for token in tokens:
        if token in _MARKS:
            continue
        if token[0] == "@":
            most = int(token[1:])
        elif token.startswith("--") and token.endswith("=?"):
            long_joined.add(token.removesuffix("=?"))
        elif token.startswith("--") and token.endswith("="):
            long_valued.add(token.removesuffix("="))
        elif token.startswith("--"):
            long.add(token)
        elif token.endswith("?"):
            joined.add(token[1:-1])
        elif token.endswith(":"):
            valued.add(token[1:-1])
        else:
            flags.update(token[1:])

    return OptionTable(
        anything="*" in tokens,
        free="+" in tokens,
        alone="." in tokens,
        listed="@@" in tokens,
        most=most,
        flags=frozenset(flags),
        valued=frozenset(valued - flags),
        joined=frozenset(joined),
        long=frozenset(long),
        long_valued=frozenset(long_valued),
        long_joined=frozenset(long_joined),
        number="-#" in tokens,
    )


@dataclass(frozen=True, slots=True)
class Tables:
    """The contents of `programs.toml`."""

    observe: Mapping[str, OptionTable]
    """The options of programs that only read."""
    git: Mapping[str, OptionTable]
    """The same for the commands of git."""
    effects: Mapping[str, str]
    """The effect of each program that is known to do more than read."""
    versioned: Mapping[str, frozenset[str]]
    """The options with which a program only prints its version or help."""


@cache
def tables() -> Tables:
    """Return the tables, read once."""
    text = resources.files("iact.core.gate.shell").joinpath("programs.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)

    # The file lists programs by their options; what is asked for are the options of a program.
    versioned: dict[str, frozenset[str]] = {}
    for options, programs in data["version"].items():
        for program in programs.split():
            versioned[program] = versioned.get(program, frozenset()) | frozenset(options.split())

    return Tables(
        observe={program: parse(entry) for program, entry in data["observe"].items()},
        git={command: parse(entry) for command, entry in data["git"].items()},
        effects={
            program: effect for effect, programs in data["effects"].items() for program in programs.split()
        },
        versioned=versioned,
    )
