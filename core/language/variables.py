"""Symbolic variables: values that are passed by name and never repeat their content in a context.

A `Value` is immutable and identified by the SHA-256 of its content. It may keep the bytes in memory or as a blob next
to the journal, so passing one is O(1). A `Table` holds an agent's names.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Final, TypeVar

_MENTION: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)(?!\w)")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
Named = TypeVar("Named")

PERSON: Final = "the user"
"""The origin of what a person gave."""

_TEXT: Final = re.compile(
    r"text/.*|application/(?:.*\+(?:json|xml|yaml)|(?:x-)?(?:json|ndjson|xml|yaml|toml|javascript|sh|sql|python))(?:;.*)?"
)


_SHORT: Final = {
    "txt": "plain",
    "md": "markdown",
    "yml": "yaml",
    "js": "javascript",
    "py": "python",
    "text": "plain",
}


def media_of(written: str) -> str:
    """Return the media type for an agent's word: `md` is text/markdown, `json` application/json."""
    word = written.strip().lower()
    if "/" in word:
        return word
    if word == "json":
        return "application/json"
    return f"text/{_SHORT.get(word, word) or 'plain'}"


@dataclass(frozen=True, slots=True)
class Value:
    """Content with its type and origin. Equality is by content and type."""

    sha256: str
    """Of the content, as hexadecimal digits."""
    size: int
    """In bytes."""
    media: str
    """Its media type."""
    load: Callable[[], bytes] = field(compare=False, repr=False)
    """Returns the content."""
    labels: frozenset[str] = field(default=frozenset(), compare=False)
    """Where the content comes from, as the gate sees it (`core.gate`)."""
    origin: str = field(default="", compare=False)
    """What made it: the path of an agent, a function, a step of a plan, or "the user"."""
    may_be_lost: bool = field(default=False, compare=False)
    """Whether its content was lost, so that `load` returns a sentence about that; unless it was stored again."""

    @property
    def is_text(self) -> bool:
        """Whether the content can be shown as text."""
        return _TEXT.fullmatch(self.media.lower()) is not None

    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become replacement characters."""
        return self.load().decode("utf-8", "replace")


def text_value(
    text: str, *, media: str = "text/plain", labels: frozenset[str] = frozenset(), origin: str = ""
) -> Value:
    """Return a value that is held in memory."""
    data = text.encode("utf-8", "replace")
    return Value(hashlib.sha256(data).hexdigest(), len(data), media, lambda: data, labels, origin)


class Table(Mapping[str, Value]):
    """The named values of one agent."""

    def __init__(self) -> None:
        self.bindings = 0
        """How often a name was bound to something new, in total."""
        self._values: dict[str, Value] = {}
        """In the order in which they were bound last."""
        self._bound: dict[str, int] = {}
        """What `bindings` was when a name was bound last."""
        self._counts: dict[str, int] = {}
        """The last number behind each stem, for the next name."""
        self._numbered: set[str] = set()
        """The names that nobody chose."""
        self._quiet: set[str] = set()
        """Of these, the ones that are in no list."""

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def newest(self, since: int = 0) -> Iterator[tuple[str, Value]]:
        """Iterate over names and values, the last bound first; `since`: only those bound after that many `bindings`."""
        return takewhile(lambda item: self._bound[item[0]] > since, reversed(self._values.items()))

    def listed(self, since: int = 0) -> list[tuple[str, Value]]:
        """The names and values to tell of, the most telling first; `since`: as for `newest`.

        What a person gave, and what somebody gave a name, comes before what only has a number.
        """
        newest = [item for item in self.newest(since) if item[0] not in self._quiet]
        return sorted(newest, key=lambda item: item[0] in self._numbered and item[1].origin != PERSON)

    def copy(self) -> Table:
        """Return an independent copy."""
        other = Table()
        other.bindings = self.bindings
        other._values = dict(self._values)
        other._bound = dict(self._bound)
        other._counts = dict(self._counts)
        other._numbered = set(self._numbered)
        other._quiet = set(self._quiet)
        return other

    def define(self, name: str, value: Value) -> None:
        """Bind `name`, replacing its previous value."""
        if self._values.get(name) == value:
            # The same content, perhaps with other labels: its place in the order stays.
            self._values[name] = value
            return

        self._values.pop(name, None)
        self._values[name] = value
        self.bindings += 1
        self._bound[name] = self.bindings
        self._numbered.discard(name)
        self._quiet.discard(name)

    def number(self, stem: str) -> str:
        """Return the next free name of the form `stem_1`, `stem_2`, …"""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", stem)
        count = self._counts.get(stem, 0) + 1
        while f"{stem}_{count}" in self._values:
            count += 1
        self._counts[stem] = count
        return f"{stem}_{count}"

    def named(self) -> Iterator[tuple[str, Value]]:
        """Iterate over the variables that somebody named, without those that `keep` has numbered."""
        return ((name, value) for name, value in self._values.items() if name not in self._numbered)

    def keep(self, stem: str, value: Value, *, quiet: bool = False) -> str:
        """Bind the next free numbered name to `value`, and return the name. `quiet`: it is in no list."""
        name = self.number(stem)
        self.define(name, value)
        self._numbered.add(name)
        if quiet:
            self._quiet.add(name)
        return name

    def receive(self, name: str, value: Value) -> str:
        """Bind a value that came with a message. If the name is taken, it becomes `name_2`, `name_3`, …

        The same content under the same name is one value, which then comes from both sources.
        """
        free = name
        count = 1
        while free in self._values and self._values[free] != value:
            count += 1
            free = f"{name}_{count}"
        if free in self._values:
            value = replace(value, labels=value.labels | self._values[free].labels)
        self.define(free, value)
        return free


def mentions(text: str, table: Mapping[str, Named]) -> dict[str, Named]:
    """Return the variables of `table` that `text` mentions as `$name`, in order of first mention."""
    if "$" not in text:
        return {}
    mentioned = dict.fromkeys(match.group(1) for match in _MENTION.finditer(text))
    return {name: table[name] for name in mentioned if name in table}


_NUMBERED: Final = re.compile(r"(.+)_\d+")
_CODE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_MOST_NAMES: Final = 64
"""The most names of a text that are looked for in a table. Each is compared with all that is in it."""

_LONG_ENOUGH: Final = 3
"""The fewest letters of a name that is probably a variable's although none is like it."""


def misnamed(text: str, table: Mapping[str, Named], *, in_code: bool = True) -> dict[str, str]:
    """Names that `text` mentions as `$name` and that are probably meant as variables of `table`, which has none of them.

    Returns for each the variable that is nearest to it; empty if none is like it. `$5` and `$HOME` are something else:
    money, or a variable of a program. In code, so is a name that is like none in the table. `in_code`: whether names in
    code count at all.
    """
    if "$" not in text:
        return {}

    mentioned = dict.fromkeys(match.group(1) for match in _MENTION.finditer(text))
    unknown = (name for name in mentioned if name not in table and _may_be_ours(name))
    prose = _CODE.sub("", text)
    misnamed: dict[str, str] = {}
    for name in islice(unknown, _MOST_NAMES):
        is_in_prose = f"${name}" in prose
        nearest = ""
        if is_in_prose or in_code:
            nearest = _nearest(name, table)

        is_meant = is_in_prose and len(name) >= _LONG_ENOUGH
        if nearest or is_meant:
            misnamed[name] = nearest
    return misnamed


def _may_be_ours(name: str) -> bool:
    """Whether a name is written as an agent's variables are, and not as those of an environment: `HOME`, `_`."""
    return name == name.lower() and not name.startswith("_")


def _nearest(name: str, table: Iterable[str]) -> str:
    """The variable that a name is most like: it is misspelt, or has another number. Empty if it is like none."""
    close = difflib.get_close_matches(name, list(table), n=1, cutoff=0.75)
    if close:
        return close[0]

    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        return ""
    with_its_stem = ""
    for other in table:
        match = _NUMBERED.fullmatch(other)
        if match is not None and match.group(1) == numbered.group(1):
            with_its_stem = other
    return with_its_stem


def rename(text: str, names: Mapping[str, str]) -> str:
    """Rewrite mentions `$old` to `$new` for every changed pair in `names`."""
    changed = {old: new for old, new in names.items() if old != new}
    if not changed:
        return text
    return _MENTION.sub(lambda match: "$" + changed.get(match.group(1), match.group(1)), text)
