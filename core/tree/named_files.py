"""Which files texts name: the tasks of agents, above all.

Texts are read once into an index, and a file is looked up in it: ten thousand files and a long dialogue cost the sum of
both and not their product.

A file is named by its name, with as many of its folders as the text gives: `index.md` names every file of that name, and
`docs/index.md` none in another folder. What stands directly before and behind must not belong to a longer name; in a
text whose script has no blanks between words, a change of the script ends a name as well. Folders are named with a
slash (`docs/`, `src/app`), and kinds of files by a pattern (`*.md`, `docs/*.md`). Files with names in capitals are named
by the word, too: "the readme", "a line in the changelog".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import Final

from iact.core import path_names

_WITHOUT_BLANKS: Final = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""The letters of scripts that have no blanks between words, or that put an ending directly behind a foreign word."""

_MENTION: Final = re.compile(r"[\w./~*@+%-]+")
"""What may be a path: as much as belongs together."""

_REGULAR: Final = re.compile(r"[\w.@+%-]+")
"""A file's name that a text can hold as one mention."""

_DENSE: Final = re.compile(rf"[{_WITHOUT_BLANKS}]")
_WORD: Final = re.compile(r"\w+")
_GOES_ON_BEFORE: Final = re.compile(r"[\w.-]")
_GOES_ON_BEHIND: Final = re.compile(r"[\w-]|\.\w")
_FOREIGN: Final = re.compile(rf"[^{_WITHOUT_BLANKS}]+")
_LONGEST_DENSE: Final = 80
"""The most characters that a name in a text without blanks may have, with its folders."""

_DEEPEST_NAMED: Final = 8
"""The most folders that are looked at together, of a file and of a folder that is named."""

_MOST_PATTERNS: Final = 20
"""The most patterns, such as `*.md`, that count."""

_PATTERN: Final = re.compile(r"(?:[\w.@+%-]+/|\*\*?/)*(?:[\w.@+%-]*\*[\w@+%-]*\.[\w.]+|\*\*?)")
"""A pattern of files: one with an ending, or everything in a folder."""

_SHORTEST_WORD: Final = 4
"""The fewest letters of a file's name in capitals that names it as a word: README, not A."""


class NamedFiles:
    """The files that some texts name. Paths are relative to the workspace, as `path_names.encode` writes them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = unicodedata.normalize("NFC", "\n".join(texts))
        self._paths = set[str]()
        """What is named, each with the folders that the text gives."""
        self._from_root = set[str]()
        """The ends of paths that begin at the root of a file system: where the workspace stands is not known here."""
        self._folders = set[str]()
        self._judged = dict[str, bool]()
        """Folders of files that were looked up: whether they are named."""
        self._patterns = list[str]()
        self._words = frozenset(_WORD.findall(self._text.lower()))

        mentions = dict.fromkeys(_MENTION.findall(self._text))
        parts = (part for mention in mentions if _DENSE.search(mention) for part in _dense_parts(mention))
        for mention in {**mentions, **dict.fromkeys(parts)}:
            self._add(mention)

    @cached_property
    def _pairs(self) -> frozenset[tuple[str, str]]:
        """Words that stand behind one another. A name of several words is searched for only where all of its pairs are."""
        return _pairs_of(_WORD.findall(self._text.lower()))

    def names(self, path: str) -> bool:
        """Whether the texts name this file."""
        parts = _parts(path)
        ends = ["/".join(parts[first:]) for first in range(max(0, len(parts) - _DEEPEST_NAMED), len(parts))]
        if not self._paths.isdisjoint(ends) or "/".join(parts) in self._from_root:
            return True

        return (
            self._names_folder_of(parts[:-1])
            or any(fnmatchcase(end, pattern) for pattern in self._patterns for end in ends)
            or self._names_as_word(parts[-1])
            or self._names_irregular(parts[-1])
        )

    def _add(self, mention: str) -> None:
        bare = mention.lstrip("@").rstrip(".-")
        if "*" in bare:
            self._add_pattern(bare)
            # Emphasis in Markdown.
            bare = bare.strip("*").rstrip(".")
        if not bare:
            return

        named = bare.removeprefix("/workspace/")
        is_from_root = named.startswith(("/", "~"))
        parts = [part for part in named.split("/") if part not in ("", ".", "..", "~")]
        if not parts:
            return

        self._paths.add("/".join(parts))
        if "/" in named:
            self._folders.add("/".join(parts))
        if is_from_root:
            self._from_root.update("/".join(parts[first:]) for first in range(len(parts))[-_DEEPEST_NAMED:])

    def _add_pattern(self, mention: str) -> None:
        pattern = mention.removeprefix("/workspace/").removeprefix("./")
        is_alone = pattern in ("*", "**")
        if is_alone or len(self._patterns) >= _MOST_PATTERNS or not _PATTERN.fullmatch(pattern):
            return
        self._patterns.append(pattern.replace("**/", "*"))

    def _names_folder_of(self, folders: Sequence[str]) -> bool:
        whole = "/".join(folders)
        if whole not in self._judged:
            self._judged[whole] = self._names_any_folder(folders)
        return self._judged[whole]

    def _names_any_folder(self, folders: Sequence[str]) -> bool:
        """Whether one of these folders, each in the one before, is named; or several, as the end of what is named."""
        for first in range(len(folders)):
            for last in range(first, min(first + _DEEPEST_NAMED, len(folders))):
                named = "/".join(folders[first : last + 1])
                if named in self._folders or (first == 0 and named in self._from_root):
                    return True
        return False

    def _names_as_word(self, name: str) -> bool:
        stem = name.partition(".")[0]
        return len(stem) >= _SHORTEST_WORD and stem.isupper() and stem.lower() in self._words

    def _names_irregular(self, name: str) -> bool:
        """Whether a name with blanks or other marks occurs in the texts."""
        if _REGULAR.fullmatch(name):
            return False

        words = _WORD.findall(name.lower())
        if not self._words.issuperset(words) or not self._pairs.issuperset(_pairs_of(words)):
            return False

        place = self._text.find(name)
        while place >= 0:
            before = self._text[max(0, place - 1) : place]
            behind = self._text[place + len(name) : place + len(name) + 2]
            if not _GOES_ON_BEFORE.fullmatch(before) and not _GOES_ON_BEHIND.match(behind):
                return True
            place = self._text.find(name, place + 1)
        return False


def _pairs_of(words: Sequence[str]) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(words))


def _parts(path: str) -> Sequence[str]:
    """The names along a path, as people write them."""
    names = path_names.decode(path) or path.split("/")
    return [unicodedata.normalize("NFC", name) for name in names]


def _dense_parts(mention: str) -> Iterable[str]:
    """What may be a name in a text without blanks. It ends where the script changes, behind an ending or a slash, and
    begins at any letter before that, but behind what is a name itself."""
    begin = 0
    for foreign in _FOREIGN.finditer(mention):
        piece = foreign.group()
        if "." not in piece and "/" not in piece:
            continue

        end = foreign.end()
        dense = range(max(begin, end - _LONGEST_DENSE), foreign.start())
        yield from (mention[start:end] for start in dense)
        yield piece
        if "." in piece and not piece.endswith(("/", ".")):
            begin = end
