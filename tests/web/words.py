"""The words of the page as its sources hold them: what it says through `t`, and what it might say without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, TypeAlias

STATIC: Final = Path(__file__).parents[2] / "web" / "static"
SCRIPTS: Final = tuple(
    path
    for path in sorted((STATIC / "js").glob("*.js"))
    # What records say is no script but types.
    if path.name not in ("records.js", "types.js")
)
LANGUAGES: Final = ("de",)
"""All but English, which needs no lines."""

Line: TypeAlias = str | Mapping[str, str]

_LITERAL: Final = r'"((?:[^"\\\n]|\\.)*)"'
_SAID: Final = re.compile(rf"\bt\(\s*{_LITERAL}")
_PLURAL: Final = re.compile(rf"\bplural\([^;\"]*?{_LITERAL},\s*{_LITERAL}")


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


def said() -> Mapping[str, str]:
    """Every text that scripts say through `t` or `plural`, and where."""
    found: dict[str, str] = {}
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        for text in _SAID.findall(source):
            found.setdefault(_text(text), script.name)
        for _, text in _PLURAL.findall(source):
            found.setdefault(_text(text), script.name)
    return found


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        self.texts += [
            value
            for name, value in attrs
            if name in ("title", "placeholder", "aria-label") and value and re.search(r"[a-z]{2}", value)
        ]

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"head", "kbd", "noscript"} & set(self._inside):
            return
        if re.search(r"[A-Za-z]{2}", data):
            self.texts.append(data.strip())


def of_the_page() -> tuple[str, ...]:
    """Every text of index.html that a person meets."""
    page = _Page()
    page.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    return tuple(dict.fromkeys(page.texts))


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
