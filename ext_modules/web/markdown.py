"""Converts HTML to Markdown: what a reader needs of a page, and nothing that could run. No I/O.

Scripts, styles and fields of forms are dropped. If the page marks its main part, or articles, only those are kept, and
what was left out is counted (`left_out`). Links are absolute, and only http and https links are kept. The parser never
fails: it makes a page of any input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

from .left_out import LANDMARKS, LeftOut, Link, Span, counted, outermost

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
_FIELDS: Final = frozenset(("input", "select", "textarea"))
_MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_ENDED_BY: Final = {"li": ("ul", "ol"), "tr": ("table",)}
"""Elements that end where the next element of their kind begins within one of these."""
_DEEPEST: Final = 200
_MOST_SPANNED: Final = 50
"""The most columns or rows that one cell of a table may span."""
_LONGEST_CELL: Final = 600
"""The most characters of a cell. A table with a longer one arranges the page, so its cells are paragraphs."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as text."""

    title: str
    """One line, may be empty."""
    text: str
    left_out: str = ""
    """What the page has and the text has not, in one line, and perhaps the links of its navigation in a second.

    Empty if there is nothing of either; the first line is empty if there is only the second.
    """


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
    """What is written."""
    inline: list[str] = field(default_factory=list)
    """The text of the current block."""
    prefixes: list[str] = field(default_factory=list)
    """What each line begins with: a part for each list and quote around it."""
    marker: str = ""
    """What the next line has in place of its last prefix, because a list item begins there."""

    def flush(self) -> None:
        """End the current block."""
        text = re.sub(r"[ \t\r\n\f]+", " ", "".join(self.inline)).replace("\x00", "\n").strip()
        self.inline = []
        if not text:
            return
        self.block([line.strip() for line in text.split("\n")])

    def block(self, lines: list[str], *, follows: bool = False) -> None:
        """Write a block unchanged; `follows`: without a blank line before it."""
        begins_item = bool(self.marker)
        last_line = self.lines[-1] if self.lines else ""
        continues_list = begins_item and re.match(r"[ >]*(-|\d+\.) ", last_line) is not None
        if self.lines and not continues_list and not follows:
            quotes = [part for part in self.prefixes if part.startswith(">")]
            self.lines.append("".join(quotes).rstrip())

        prefix = "".join(self.prefixes)
        first = f"{''.join(self.prefixes[:-1])}{self.marker}" if begins_item else prefix
        self.marker = ""
        for index, line in enumerate(lines):
            before = first if index == 0 else prefix
            self.lines.append(f"{before}{line}".rstrip())


@dataclass(slots=True)
class _Table:
    """The table that is being read, row by row, with cells that span several columns or rows."""

    rows: int = 0
    """How many rows were written."""
    row: list[str] | None = None
    """The cells of the row that is open; None between rows."""
    in_cell: bool = False
    """Whether a cell is open."""
    wide: int = 1
    """How many columns it spans."""
    high: int = 1
    """How many rows it spans."""
    hanging: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By column: how many more rows a cell from above covers, and its text."""

    def begin_cell(self, given: dict[str, str]) -> None:
        """Begin a cell with these attributes."""
        self.in_cell = True
        self.wide = _spanned(given.get("colspan", ""))
        self.high = _spanned(given.get("rowspan", ""))

    def end_cell(self, text: str) -> None:
        """End the open cell; text that stands outside of cells becomes one as well."""
        if self.row is None:
            return
        if not self.in_cell and not text:
            return
        self._put_hanging(self.row)

        column = len(self.row)
        self.row += [text, *[""] * (self.wide - 1)]
        if self.high > 1:
            self.hanging[column] = (self.high - 1, text)

        self.in_cell = False
        self.wide = 1
        self.high = 1

    def end_row(self) -> list[str]:
        """End the row and return its cells."""
        cells = self.row or []
        self.row = None
        if cells:
            self._put_hanging(cells)
        return cells

    def _put_hanging(self, cells: list[str]) -> None:
        """Repeat the text of a cell from above that covers this row, so that columns stay below each other."""
        while (column := len(cells)) in self.hanging:
            left, text = self.hanging.pop(column)
            cells.append(text)
            if left > 1:
                self.hanging[column] = (left - 1, text)


def _spanned(value: str) -> int:
    is_number = value.isascii() and value.isdigit() and len(value) < 6
    return min(max(1, int(value)), _MOST_SPANNED) if is_number else 1


def _first_number(start: str) -> int:
    """The number with which a list begins."""
    is_number = start.isascii() and start.isdigit() and len(start) < 7
    return int(start) if is_number else 1


def _in_one_line(text: str) -> str:
    return " ".join(text.replace("\x00", " ").split())


class _Reading(HTMLParser):
    """Takes tags and text, and keeps two texts: the whole page, and its main part."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._writer = _Writer()

        # Where the reader is.
        self._open: list[str] = []
        """The elements that are open."""
        self._dropping = 0
        """How many of those that are dropped are open."""
        self._links: list[tuple[str, int]] = []
        """Of each open link: its address, and where its text begins in the block."""
        self._lists: list[int | None] = []
        """Of each open list: the number of its next item; None if it has none."""
        self._pre: list[str] | None = None
        """The text of an open `pre`; None outside of one."""
        self._table = _Table()
        self._landmarks: list[tuple[str, int]] = []
        """Of each open part of the page: what it is, and its first line."""

        # What the page has.
        self._title: list[str] = []
        self._titles = 0
        self._in_title = False
        self._spans: list[Span] = []
        self._page_links: list[Link] = []
        self._left = LeftOut()

    def page(self) -> Page:
        """The page, once all of it was read."""
        self._writer.flush()
        while self._landmarks:
            self._close_landmark()

        lines = self._writer.lines
        title = " ".join("".join(self._title).split())[:300]
        parts = self._main_parts()
        left_out = counted(self._left, lines, parts, self._spans, self._page_links)
        texts = ["\n".join(lines[part.start : part.end]).strip("\n") for part in parts]
        return Page(title, "\n\n".join(text for text in texts if text), left_out)

    def _main_parts(self) -> list[Span]:
        """The parts of the page that are kept: what is marked as main, else the articles, else all of it."""
        lines = self._writer.lines
        for kind in ("main", "article"):
            parts = [span for span in outermost(self._spans, kind) if span.has_text(lines)]
            if parts:
                return parts
        return [Span("page", 0, len(lines))]

    # --- tags ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "title":
            self._in_title = True
            self._titles += 1
        if tag == "body":  # a head that was never closed
            self._dropping = 0

        if not self._dropping:
            self._count_left_out(tag, attributes)
        if tag in _DROPPED:
            self._dropping += 1
        if self._dropping:
            return

        if tag in _ENDED_BY:
            self._end_before(tag)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(tag)

        if tag in _BLOCKS and self._pre is None:
            self._start_block(tag, attributes)
        else:
            self._start_inline(tag, attributes)

    def _count_left_out(self, tag: str, given: dict[str, str]) -> None:
        if tag in _FIELDS and given.get("type", "").lower() not in ("hidden", "submit", "button", "image"):
            self._left.fields += 1
        elif tag == "iframe" and (address := self._address(given.get("src", ""))):
            self._left.frames.append(address)

    def _end_before(self, tag: str) -> None:
        """End an open element of the same kind, since HTML lets authors omit its end tag."""
        for opened in reversed(self._open):
            if opened == tag:
                self.handle_endtag(tag)
                return
            if opened in _ENDED_BY[tag]:
                return

    def _start_block(self, tag: str, attributes: dict[str, str]) -> None:
        writer = self._writer
        if tag in ("table", "pre"):
            self._give_up_row()
        in_row = self._table.row is not None
        if not in_row:
            writer.flush()
        if tag in LANDMARKS:
            self._landmarks.append((tag, len(writer.lines)))
        if in_row and tag != "tr":
            # A cell is one line, whatever blocks are in it.
            self._write("\x00")
            return

        match tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                writer.inline.append(f"{'#' * int(tag[1])} ")
            case "blockquote" if len(writer.prefixes) < 20:
                writer.prefixes.append("> ")
            case "ul":
                self._lists.append(None)
            case "ol":
                self._lists.append(_first_number(attributes.get("start", "1")))
            case "li" if len(writer.prefixes) < 20:
                self._start_item()
            case "pre":
                self._pre = []
            case "hr":
                writer.block(["---"])
            case "table":
                self._table = _Table()
            case "tr":
                self._table.row = []

    def _start_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        marker = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        self._writer.prefixes.append(" " * len(marker))
        self._writer.marker = marker

    def _start_inline(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("td", "th") and self._table.row is not None:
            self._end_cell()
            self._table.begin_cell(attributes)
        elif tag == "br":
            self._write("\x00")
        elif tag == "a":
            address = self._address(attributes.get("href", ""))
            self._links.append((address, len(self._writer.inline)))
            self._write("[" if address else "")
        elif tag == "img" and attributes.get("alt", "").strip():
            self._write(f"[image: {attributes['alt'].strip()}]")
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

        # Whatever was opened in it and not closed ends with it.
        while (closing := self._open.pop()) != tag:
            self._close(closing)
        self._close(tag)

    def _close(self, tag: str) -> None:
        if self._pre is not None and tag != "pre":
            return

        if tag in _BLOCKS:
            self._close_block(tag)
        elif tag == "a" and self._links:
            self._close_link(*self._links.pop())
        elif tag == "code":
            self._write("`")
        elif tag in _MARKS:
            self._write(_MARKS[tag])

    def _close_link(self, address: str, begun: int) -> None:
        if not address:
            return
        text = " ".join("".join(self._writer.inline[begun + 1 :]).replace("\x00", " ").split())
        self._page_links.append(Link(text, address, len(self._writer.lines)))
        self._write(f"]({address})")

    def _close_landmark(self) -> None:
        kind, start = self._landmarks.pop()
        self._spans.append(Span(kind, start, len(self._writer.lines)))

    def _close_block(self, tag: str) -> None:
        writer = self._writer
        if tag == "pre":
            self._close_pre()
            return
        if tag == "table":
            self._close_row()
        in_row = self._table.row is not None
        if not in_row:
            writer.flush()
        if tag in LANDMARKS and self._landmarks and self._landmarks[-1][0] == tag:
            self._close_landmark()

        if in_row and tag == "tr":
            self._close_row()
        elif in_row:
            self._write("\x00")
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
        text = "".join(self._writer.inline).strip(" \t\r\n\f\x00")
        self._writer.inline = []
        self._table.end_cell(text)

    def _close_row(self) -> None:
        """Write a row of a table as one line."""
        if self._table.row is None:
            return
        self._end_cell()

        cells = self._table.end_row()
        if any(len(cell) > _LONGEST_CELL for cell in cells):
            self._write_paragraphs(cells)
            return
        if not any(cells):
            return

        is_first = self._table.rows == 0
        escaped = [_in_one_line(cell).replace("|", "\\|") for cell in cells]
        lines = [f"| {' | '.join(escaped)} |"]
        if is_first:
            lines.append(f"|{'---|' * len(cells)}")
        self._writer.block(lines, follows=not is_first)
        self._table.rows += 1

    def _give_up_row(self) -> None:
        """Write the cells of an open row as paragraphs: a table or a listing within it doesn't fit in a line."""
        if self._table.row is None:
            return
        self._end_cell()
        self._write_paragraphs(self._table.end_row())

    def _write_paragraphs(self, cells: list[str]) -> None:
        for cell in cells:
            self._writer.inline = [cell]
            self._writer.flush()

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
