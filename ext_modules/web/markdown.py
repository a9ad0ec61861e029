"""Converts HTML to Markdown: what a reader needs of a page, and nothing that could run. No I/O.

Scripts, styles and forms are dropped. If the page marks its main part, only that is kept. Links are absolute, and only
http and https links are kept. The parser never fails: it makes a page of any input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

_DROPPED: Final = frozenset(
    ("script", "style", "template", "svg", "noscript", "iframe", "object", "math", "canvas", "head", "select")
)
_BLOCKS: Final = frozenset(
    ("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "figure", "figcaption",
     "ul", "ol", "dl", "dt", "dd", "table", "form", "fieldset", "address", "details", "summary", "body", "html",
     "hr", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "li", "caption")
)  # fmt: skip
_VOID: Final = frozenset(
    ("br", "hr", "img", "input", "meta", "link", "area", "base", "col", "embed", "source", "wbr", "track")
)
_MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_ENDED_BY: Final = {"li": ("ul", "ol"), "tr": ("table",)}
"""Elements that end where the next element of their kind begins within one of these."""
_DEEPEST: Final = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A page as text. `title`: one line, may be empty."""

    title: str
    text: str


def convert(html: str, base: str) -> Page:
    """Convert `html`, found at the address `base`, to Markdown."""
    reading = _Reading(base)
    reading.feed(html)
    reading.close()
    return reading.page()


@dataclass(slots=True)
class _Writer:
    """Markdown under construction: blocks, each with the prefixes of the lists and quotes around it."""

    lines: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    marker: str = ""

    def flush(self) -> None:
        """End the current block."""
        text = re.sub(r"[ \t\r\n\f]+", " ", "".join(self.inline)).replace("\x00", "\n").strip()
        self.inline = []
        if not text:
            return
        self.block([line.strip() for line in text.split("\n")])

    def block(self, lines: list[str], *, follows: bool = False) -> None:
        """Write a block unchanged; `follows`: without a blank line before it."""
        prefix = "".join(self.prefixes)
        first = f"{''.join(self.prefixes[:-1])}{self.marker}" if self.marker else prefix
        tight = self.marker and self.lines and re.match(r"[ >]*(-|\d+\.) ", self.lines[-1])
        if self.lines and not tight and not follows:
            self.lines.append("".join(part for part in self.prefixes if part.startswith(">")).rstrip())
        self.marker = ""
        self.lines += [
            f"{first if index == 0 else prefix}{line}".rstrip() for index, line in enumerate(lines)
        ]


class _Reading(HTMLParser):
    """Takes tags and text, and keeps two texts: the whole page, and its main part."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._writer = _Writer()
        self._open: list[str] = []
        self._dropping = 0
        self._title: list[str] = []
        self._titles = 0
        self._in_title = False
        self._links: list[str] = []
        self._lists: list[int | None] = []
        self._pre: list[str] | None = None
        self._row: list[str] | None = None
        self._rows = 0
        self._main: tuple[int, int] | None = None
        self._main_since: int | None = None

    def page(self) -> Page:
        self._writer.flush()
        lines = self._writer.lines
        if self._main_since is not None:
            self._main = (self._main_since, len(lines))
        if self._main is not None and any(lines[slice(*self._main)]):
            lines = lines[slice(*self._main)]
        return Page(" ".join("".join(self._title).split())[:300], "\n".join(lines).strip("\n"))

    # --- tags ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
            self._titles += 1
        if tag == "body":  # a head that was never closed
            self._dropping = 0
        if tag in _DROPPED:
            self._dropping += 1
        if self._dropping:
            return
        if tag in _ENDED_BY:
            self._end_before(tag)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(tag)
        given = {name: value or "" for name, value in attrs}
        if tag in _BLOCKS and self._pre is None:
            self._start_block(tag, given)
        else:
            self._start_inline(tag, given)

    def _end_before(self, tag: str) -> None:
        """End an open element of the same kind, since HTML lets authors omit its end tag."""
        for opened in reversed(self._open):
            if opened == tag:
                self.handle_endtag(tag)
                return
            if opened in _ENDED_BY[tag]:
                return

    def _start_block(self, tag: str, given: dict[str, str]) -> None:
        writer = self._writer
        if tag != "tr" or self._row is None:
            writer.flush()
        match tag:
            case "main" | "article" if self._main is None and self._main_since is None:
                self._main_since = len(writer.lines)
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                writer.inline.append(f"{'#' * int(tag[1])} ")
            case "blockquote" if len(writer.prefixes) < 20:
                writer.prefixes.append("> ")
            case "ul" | "ol":
                first = given.get("start", "1")
                number = int(first) if first.isascii() and first.isdigit() and len(first) < 7 else 1
                self._lists.append(number if tag == "ol" else None)
            case "li" if len(writer.prefixes) < 20:
                self._start_item()
            case "pre":
                self._pre = []
            case "hr":
                writer.block(["---"])
            case "table":
                self._rows = 0
            case "tr":
                self._row = []

    def _start_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        marker = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        self._writer.prefixes.append(" " * len(marker))
        self._writer.marker = marker

    def _start_inline(self, tag: str, given: dict[str, str]) -> None:
        if tag in ("td", "th") and self._row is not None:
            self._end_cell()
        elif tag == "br":
            self._write("\x00")
        elif tag == "a":
            self._links.append(self._address(given.get("href", "")))
            self._write("[" if self._links[-1] else "")
        elif tag == "img" and given.get("alt", "").strip():
            self._write(f"[image: {given['alt'].strip()}]")
        elif tag == "code" and self._pre is None:
            self._write("`")
        elif tag in _MARKS:
            self._write(_MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in _DROPPED and self._dropping:
            self._dropping -= 1
            return
        if self._dropping or tag in _VOID or tag not in self._open:
            return
        while (closing := self._open.pop()) != tag:
            self._close(closing)
        self._close(tag)

    def _close(self, tag: str) -> None:
        if self._pre is not None and tag != "pre":
            return
        if tag in _BLOCKS:
            self._close_block(tag)
        elif tag == "a" and self._links:
            address = self._links.pop()
            self._write(f"]({address})" if address else "")
        elif tag == "code":
            self._write("`")
        elif tag in _MARKS:
            self._write(_MARKS[tag])

    def _close_block(self, tag: str) -> None:
        writer = self._writer
        if tag == "pre":
            self._close_pre()
            return
        if tag == "tr" and self._row is not None:
            self._close_row()
            return
        writer.flush()
        if tag in ("main", "article") and self._main_since is not None and tag not in self._open:
            self._main, self._main_since = (self._main_since, len(writer.lines)), None
        elif tag == "blockquote" and "> " in writer.prefixes:
            while writer.prefixes.pop() != "> ":
                pass
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "li" and writer.prefixes and not writer.prefixes[-1].strip():
            writer.prefixes.pop()
            writer.marker = ""

    def _close_pre(self) -> None:
        text = "".join(self._pre or ()).strip("\n")
        self._pre = None
        if text:
            longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            self._writer.block([fence, *text.split("\n"), fence])

    def _end_cell(self) -> None:
        text = " ".join("".join(self._writer.inline).replace("\x00", " ").split())
        self._writer.inline = []
        if self._row is not None and (text or self._row):
            self._row.append(text)

    def _close_row(self) -> None:
        """Write a row of a table as one line; the writer's remaining inline text is its last cell."""
        if self._row is not None:
            rest = " ".join("".join(self._writer.inline).replace("\x00", " ").split())
            cells = [*self._row, rest] if rest or self._row else []
            self._writer.inline = []
            self._row = None
            if any(cells):
                line = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
                below = [] if self._rows else [f"|{'---|' * len(cells)}"]
                self._writer.block([line, *below], follows=self._rows > 0)
                self._rows += 1

    # --- text ---

    def handle_data(self, data: str) -> None:
        if self._in_title:
            if self._titles == 1:
                self._title.append(data)
        elif not self._dropping:
            self._write(data.replace("\x00", " "))

    def _write(self, text: str) -> None:
        if self._pre is not None:
            self._pre.append(text.replace("\x00", "\n"))
        else:
            self._writer.inline.append(text)

    def _address(self, href: str) -> str:
        """The absolute address of a link, or "" unless it is http or https."""
        try:
            address = urljoin(self._base, "".join(href.split()))
            if urlsplit(address).scheme not in ("http", "https"):
                return ""
        except ValueError:
            return ""
        return address[:2000].replace("(", "%28").replace(")", "%29")
