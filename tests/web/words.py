"""The words of the page in its languages, and what its scripts might say without `t`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from docs.reference.sentences import STATIC

LANGUAGES: Final = ("de",)
"""All but English, which needs no lines."""

Line: TypeAlias = str | Mapping[str, str]


def source(language: str, *, server: bool) -> str:
    """A file of lines: of the page's own words, or of the server's."""
    name = f"{language}.server.json" if server else f"{language}.json"
    return (STATIC / "languages" / name).read_text(encoding="utf-8")


def lines(language: str, *, server: bool = False) -> Mapping[str, Line]:
    """What a language says, by the English text."""
    found: Mapping[str, Line] = json.loads(source(language, server=server))
    return found


def _text(literal: str) -> str:
    return str(json.loads(f'"{literal}"'))


def strings(source: str) -> Iterator[tuple[int, str, str]]:
    """Each string of a script, outside of comments: the line, what stands before it on that line, and its text.

    Of a template what stands between its values; a regular expression is none.
    """
    token = re.compile(
        r"//[^\n]*|/\*[^]*?\*/".replace("[^]", r"[\s\S]")
        + r"|(?<=[(=,:?&|!])\s*/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*"
        + r'|"(?:[^"\\\n]|\\.)*"'
        + r"|`(?:[^`\\]|\\.)*`"
    )
    for match in token.finditer(source):
        text = match.group().strip()
        if text[0] not in '"`':
            continue
        begin = source.rfind("\n", 0, match.start()) + 1
        before = source[begin : match.start()]
        if text[0] == '"':
            yield source.count("\n", 0, match.start()) + 1, before, _text(text[1:-1])
        else:
            words = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "\0", text[1:-1])
            yield source.count("\n", 0, match.start()) + 1, before, words
