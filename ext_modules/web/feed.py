"""Converts RSS and Atom to Markdown: the entries, each with its address, its date and a few words. No I/O.

Feeds come from anywhere. A document type declaration is refused, because its entities could expand without end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from .markdown import Page, convert

MOST: Final = 200
"""The most entries that are shown."""
_LONGEST: Final = 600
"""The most characters of an entry's text."""
_ENTRIES: Final = frozenset({"item", "entry"})
_ROOTS: Final = frozenset({"rss", "feed", "RDF"})


class NoFeed(Exception):
    """The document is not a feed."""


@dataclass(slots=True)
class _Reading:
    """What has been read so far. `path`: the elements around the current position, without their name spaces."""

    path: list[str] = field(default_factory=list)
    title: str = ""
    entries: list[dict[str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def start(self, name: str, given: dict[str, str]) -> None:
        plain = name.rpartition("}")[2].rpartition(":")[2]
        if not self.path and plain not in _ROOTS:
            raise NoFeed
        self.path.append(plain)
        if len(self.path) > 100:
            raise NoFeed
        if plain in _ENTRIES:
            self.entries.append({})
        elif plain == "link" and self.entries and given.get("rel", "alternate") == "alternate":
            self.entries[-1].setdefault("link", given.get("href", ""))
        self.text = []

    def end(self, name: str) -> None:
        plain = self.path.pop()
        said = "".join(self.text).strip()
        self.text = []
        if plain == "title" and not self.entries:
            self.title = self.title or said
        if not said or not self.entries or not any(one in _ENTRIES for one in self.path):
            return
        known = self.entries[-1]
        match plain:
            case "title" | "link":
                known[plain] = known.get(plain) or said
            case "pubDate" | "published" | "updated" | "date":
                known.setdefault("date", said)
            case "description" | "summary" | "content" | "encoded":
                known.setdefault("text", said)

    def refuse(self, *_: object) -> None:
        raise NoFeed


def read_feed(body: bytes, base: str) -> Page:
    """Convert a feed, found at the address `base`.

    Raises:
        NoFeed: it is not a feed, or is damaged.
    """
    reading = _Reading()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = lambda text: reading.text.append(text)
    parser.StartDoctypeDeclHandler = reading.refuse
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise NoFeed from error
    lines = [part for one in reading.entries[:MOST] for part in _entry(one, base)]
    left = len(reading.entries) - MOST
    return Page(_line(reading.title), "\n".join([*lines, *([f"[{left} more entries]"] if left > 0 else [])]))


def _entry(one: dict[str, str], base: str) -> list[str]:
    title, link = _line(one.get("title", "")) or "(no title)", _line(one.get("link", ""))
    address = link if link.startswith(("http://", "https://")) else ""
    head = f"- [{title}]({address})" if address else f"- {title}"
    date = f" ({_line(one['date'])})" if one.get("date") else ""
    text = " ".join(convert(one.get("text", "")[:20_000], base).text.split())
    return [head + date, *([f"  {_cut(text)}"] if text else [])]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
