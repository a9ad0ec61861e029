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
    """What has been read so far."""

    path: list[str] = field(default_factory=list)
    """The elements around the current position, without their name spaces."""
    title: str = ""
    """The feed's."""
    entries: list[dict[str, str]] = field(default_factory=list)
    """The fields of each entry."""
    text: list[str] = field(default_factory=list)
    """The text since the last tag."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        plain = name.rpartition("}")[2].rpartition(":")[2]
        if not self.path and plain not in _ROOTS:
            raise NoFeed
        self.path.append(plain)
        if len(self.path) > 100:
            raise NoFeed

        is_address = plain == "link" and attributes.get("rel", "alternate") == "alternate"
        if plain in _ENTRIES:
            self.entries.append({})
        elif is_address and self.entries:
            self.entries[-1].setdefault("link", attributes.get("href", ""))
        self.text = []

    def end(self, name: str) -> None:
        plain = self.path.pop()
        text = "".join(self.text).strip()
        self.text = []
        if plain == "title" and not self.entries:
            self.title = self.title or text

        is_in_entry = bool(self.entries) and any(element in _ENTRIES for element in self.path)
        if not text or not is_in_entry:
            return
        fields = self.entries[-1]
        match plain:
            case "title" | "link":
                fields[plain] = fields.get(plain) or text
            case "pubDate" | "published" | "updated" | "date":
                fields.setdefault("date", text)
            case "description" | "summary" | "content" | "encoded":
                fields.setdefault("text", text)

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

    lines = [line for entry in reading.entries[:MOST] for line in _entry(entry, base)]
    left = len(reading.entries) - MOST
    if left > 0:
        lines.append(f"[{left} more entries]")
    return Page(_line(reading.title), "\n".join(lines))


def _entry(fields: dict[str, str], base: str) -> list[str]:
    """An entry as one line, or two with its text."""
    title = _line(fields.get("title", "")) or "(no title)"
    link = _line(fields.get("link", ""))
    head = f"- {title}"
    if link.startswith(("http://", "https://")):
        head = f"- [{title}]({link})"
    if fields.get("date"):
        head = f"{head} ({_line(fields['date'])})"

    text = " ".join(convert(fields.get("text", "")[:20_000], base).text.split())
    return [head, f"  {_cut(text)}"] if text else [head]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
