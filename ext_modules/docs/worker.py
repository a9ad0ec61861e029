"""Reads one document, in a separate process that can be killed: documents come from anywhere.

The type of a document is detected from its first bytes, not its name. Archives are inspected before they are unpacked.
Nothing that a document refers to is fetched or opened.
"""

from __future__ import annotations

import csv
import io
import itertools
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ext_modules.sdk.apart import NotDone, inside, serve
from ext_modules.sdk.values import JSON

if TYPE_CHECKING:
    from bs4 import Tag

Kind = Literal["pdf", "word", "sheet", "html"]
_MARKS: Final[Mapping[str, Kind]] = {"word/document.xml": "word", "xl/workbook.xml": "sheet"}
_KNOWN: Final = "PDF, Word (.docx), Excel (.xlsx) and HTML"
_UNPACKED: Final = 256 << 20
_MEMBERS: Final = 10_000
_SHOWN_ROWS: Final = 50
"""The most rows of a sheet in its Markdown; its table has all of them."""
_MOST_ROWS: Final = 100_000
_MOST_COLUMNS: Final = 200
_MOST_TABLES: Final = 200
_MOST_SPANNED: Final = 50
_MOST_HITS: Final = 100
_LINE_END: Final = "\n"
_NO_TEXT: Final = "[It has no text; docs.page gives it as a picture.]"
_AROUND: Final = 200
"""The most characters that are shown before and behind a hit in its line."""
_WIDEST: Final = 300
_LARGEST_PICTURE: Final = 1800
"""The most pixels of the longer side."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its place in the document."""

    where: str
    rows: Sequence[Sequence[str]]
    left_out: str = ""
    """What is not in the rows, if they are not all."""


def work(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    """Carry out a request: `read`, `tables` or `page`."""
    path = str(request["path"])
    data = inside(path).read_bytes() if path else Path(f"/proc/self/fd/{request['content']}").read_bytes()
    kind = kind_of(data)
    pages = str(request.get("pages", ""))
    if pages.strip() and kind != "pdf":
        raise NotDone("Only a PDF has pages; leave `pages` out.")

    if request["do"] == "read":
        facts, parts = _READERS[kind](data, pages)
        if request["find"]:
            return places(parts, str(request["find"]), by_page=kind == "pdf")
        return _cut(facts, parts, int(str(request["start"])), int(str(request["most"])))

    number = int(str(request["number"]))
    if request["do"] == "page":
        if kind != "pdf":
            raise NotDone("Only a PDF has pages that can be drawn; docs.read gives what is in this document.")
        return {}, drawn(data, number)

    tables = itertools.islice(_TABLES[kind](data, pages), _MOST_TABLES + 1)
    return _chosen(list(tables), number)


def kind_of(data: bytes) -> Kind:
    """Detect the type of a document.

    Raises:
        NotDone: it is not of a type that can be read here.
    """
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith(b"PK"):
        return _packed(data)

    beginning = data[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    begins_as_html = beginning.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body"))
    if begins_as_html or b"<html" in beginning:
        return "html"

    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise NotDone(
            f"This is a document of an old Office, or one with a password; {_KNOWN} can be read here."
        )
    raise NotDone(f"This is none of the documents that can be read here: {_KNOWN}. Text is for files.read.")


def _packed(data: bytes) -> Kind:
    """What an archive is, by the members that it has."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise NotDone(f"The document is damaged: {error}.") from None
    if len(members) > _MEMBERS or sum(member.file_size for member in members) > _UNPACKED:
        raise NotDone(
            f"The document holds more than {_UNPACKED >> 20} MiB when it is unpacked; it was not read."
        )

    names = {member.filename for member in members}
    for name, kind in _MARKS.items():
        if name in names:
            return kind
    raise NotDone(f"This archive is none of the documents that can be read here: {_KNOWN}.")


def _cut(
    facts: Mapping[str, JSON], parts: Iterable[str], start: int, most: int
) -> tuple[Mapping[str, JSON], bytes]:
    """Return `most` characters from `start`, reading no more of the document than needed."""
    end = start + most
    text = ""
    for part in parts:
        text += part
        if len(text) > end:
            break
    return {**facts, "more": len(text) > end}, text[start:end].encode("utf-8", "replace")


def places(parts: Iterable[str], words: str, *, by_page: bool) -> tuple[Mapping[str, JSON], bytes]:
    """The lines that hold all of `words`, in any case: under their pages, or with the character at which to read on."""
    lowered = words.lower().split()
    shown: list[str] = []
    count = lines = before = without_text = 0
    for part in parts:
        heading = f"{part.partition(_LINE_END)[0]}\n" if by_page else ""
        if by_page and _NO_TEXT in part:
            without_text += 1

        for line in part.splitlines(keepends=True):
            at = _place_of(lowered, line)
            if at is not None:
                count += 1
            if at is not None and count <= _MOST_HITS:
                where = "" if by_page else f"start={before}: "
                shown.append(f"{heading}{where}{_around(line, at)}\n")
                heading = ""
            lines += 1
            before += len(line)

    if count > _MOST_HITS:
        shown.append(f"[{count - _MOST_HITS:,} more lines hold it.]\n")
    if not count:
        shown.append(f"[None of {lines:,} lines holds {words!r}.]\n")
    if without_text:
        shown.append(f"[{without_text:,} pages have no text; docs.page gives them as pictures.]\n")
    return {"found": count}, "".join(shown).encode("utf-8", "replace")


def _place_of(words: Sequence[str], line: str) -> int | None:
    """Where the first of the words is in a line that has all of them."""
    lowered = line.lower()
    return lowered.find(words[0]) if all(word in lowered for word in words) else None


def _around(line: str, at: int) -> str:
    """The part of a line around a place."""
    start = max(0, at - _AROUND)
    end = at + _AROUND
    shown = " ".join(line[start:end].split())
    if start:
        shown = f"…{shown}"
    return f"{shown}…" if end < len(line) else shown


def chosen(text: str, count: int) -> list[int]:
    """The pages that "2-5,8" names, counted from 1; all pages if the text is empty.

    Raises:
        NotDone: the text is not valid.
    """
    if not text.strip():
        return list(range(1, count + 1))

    pages: list[int] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if not first.isdigit() or (last and not last.isdigit()):
            raise NotDone(f"{text!r} names no pages; write them as 2-5,8.")

        # "5-" goes on to the end.
        end = int(first)
        if last:
            end = int(last)
        elif dash:
            end = count
        pages += range(max(1, int(first)), min(end, count) + 1)

    if not pages:
        raise NotDone(f"There are {count} pages, so there is no page {text}.")
    return pages


# --- PDF ------------------------------------------------------------------------------------------------


def read_pdf(data: bytes, pages: str) -> tuple[Mapping[str, JSON], Iterator[str]]:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    count = len(document)
    title = str(document.get_metadata_dict().get("Title", ""))[:200]

    def parts() -> Iterator[str]:
        for number in chosen(pages, count):
            text = document[number - 1].get_textpage().get_text_range().replace("\r\n", "\n").strip()
            yield f"[Page {number} of {count}]\n\n{text or _NO_TEXT}\n\n"

    return {"kind": "pdf", "pages": count, "title": title}, parts()


def tables_of_pdf(data: bytes, pages: str) -> Iterator[Table]:
    import pdfplumber

    with pdfplumber.open(io.BytesIO(data)) as document:
        for number in chosen(pages, len(document.pages)):
            page = document.pages[number - 1]
            for rows in page.extract_tables():
                clean = [[" ".join((cell or "").split()) for cell in row] for row in rows]
                yield Table(f"page {number}", clean)
            page.close()


def drawn(data: bytes, number: int) -> bytes:
    """Draw a page as PNG."""
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    if not 1 <= number <= len(document):
        raise NotDone(f"There are {len(document)} pages, so there is no page {number}.")

    page = document[number - 1]
    longer = max(1.0, *page.get_size())
    scale = min(2.0, _LARGEST_PICTURE / longer)
    out = io.BytesIO()
    page.render(scale=scale).to_pil().save(out, "PNG")
    return out.getvalue()


# --- Word and HTML --------------------------------------------------------------------------------------


def read_word(data: bytes, _pages: str) -> tuple[Mapping[str, JSON], Iterator[str]]:
    html, pictures = _html_of_word(data)
    rest = ""
    if pictures:
        noun = "picture" if pictures == 1 else "pictures"
        rest = f"\n[Left out: {pictures} {noun}.]\n"
    return {"kind": "word"}, iter([_markdown(html), rest])


def read_html(data: bytes, _pages: str) -> tuple[Mapping[str, JSON], Iterator[str]]:
    return {"kind": "html"}, iter([_markdown(data.decode("utf-8", "replace"))])


def _html_of_word(data: bytes) -> tuple[str, int]:
    """A Word document as HTML, and how many pictures it has."""
    import mammoth

    pictures = itertools.count()
    images = mammoth.images.img_element(lambda image: {"src": f"picture-{next(pictures)}"})
    html = str(mammoth.convert_to_html(io.BytesIO(data), convert_image=images).value)
    return html, next(pictures)


def _markdown(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(html, "html.parser")
    for unseen in soup(["script", "style", "template"]):
        unseen.decompose()

    # What a picture shows stays, and the picture does not.
    for picture in soup("img"):
        description = str(picture.get("alt") or "").strip()
        picture.replace_with(f"[image: {description}]" if description else "")

    return str(MarkdownConverter(heading_style="ATX").convert_soup(soup)).strip() + "\n"


def tables_of_word(data: bytes, _pages: str) -> Iterator[Table]:
    return _tables_of(_html_of_word(data)[0])


def tables_of_html(data: bytes, _pages: str) -> Iterator[Table]:
    return _tables_of(data.decode("utf-8", "replace"))


def _tables_of(html: str) -> Iterator[Table]:
    from bs4 import BeautifulSoup

    for number, table in enumerate(BeautifulSoup(html, "html.parser").find_all("table"), 1):
        rows: list[list[str]] = []
        hanging: dict[int, tuple[int, str]] = {}
        for row in table.find_all("tr"):
            # Not those of a table inside of a cell.
            if row.find_parent("table") is not table:
                continue
            cells = row.find_all(["td", "th"], recursive=False)
            rows.append(list(_spread([_cell_of(cell) for cell in cells], hanging)))
        yield Table(f"table {number}", rows)


def _cell_of(cell: Tag) -> tuple[str, int, int]:
    """A cell's text, and how many columns and rows it covers."""
    wide, high = (_spanned(cell.get(name)) for name in ("colspan", "rowspan"))
    return " ".join(cell.get_text(" ").split()), wide, high


def _spanned(value: object) -> int:
    text = str(value)
    is_number = text.isascii() and text.isdigit() and len(text) < 6
    return min(max(1, int(text)), _MOST_SPANNED) if is_number else 1


def _spread(cells: Sequence[tuple[str, int, int]], hanging: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield a row's columns. A cell over several rows is repeated in each; `hanging` has those that go on, by column."""
    column = 0

    def from_above() -> Iterator[str]:
        nonlocal column
        while column in hanging:
            left, text = hanging.pop(column)
            yield text
            if left > 1:
                hanging[column] = (left - 1, text)
            column += 1

    for text, wide, high in cells:
        yield from from_above()
        if high > 1:
            hanging[column] = (high - 1, text)
        yield from [text, *[""] * (wide - 1)]
        column += wide
    yield from from_above()


# --- spreadsheets ---------------------------------------------------------------------------------------


def sheets(data: bytes) -> Iterator[Table]:
    """Yield each sheet, without empty cells at its right and empty rows below."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        sheet.reset_dimensions()
        rows: list[list[str]] = []
        left_out = ""
        for count, row in enumerate(sheet.iter_rows(values_only=True)):
            if count == _MOST_ROWS:
                left_out = f"all rows after {_MOST_ROWS:,}"
                break
            if len(row) > _MOST_COLUMNS:
                left_out = f"all columns after {_MOST_COLUMNS}"
            rows.append(_cells(row[:_MOST_COLUMNS]))
        while rows and not rows[-1]:
            rows.pop()

        width = max(map(len, rows), default=0)
        filled = [[*row, *[""] * (width - len(row))] for row in rows]
        yield Table(f"sheet {sheet.title}", filled, left_out)


def _cells(row: Iterable[object]) -> list[str]:
    """The cells of a row as text, without empty ones at its right."""
    cells = ["" if cell is None else str(cell) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def read_sheets(data: bytes, _pages: str) -> tuple[Mapping[str, JSON], Iterator[str]]:
    def parts() -> Iterator[str]:
        for number, table in enumerate(sheets(data), 1):
            yield f"## {table.where.removeprefix('sheet ')}\n\n{as_markdown(table.rows[:_SHOWN_ROWS])}\n"
            if len(table.rows) > _SHOWN_ROWS:
                more = len(table.rows) - _SHOWN_ROWS
                yield f"[{more:,} more rows; docs.tables number={number} gives all.]\n\n"
            if table.left_out:
                yield f"[Left out: {table.left_out}.]\n\n"

    return {"kind": "sheet"}, parts()


def tables_of_sheets(data: bytes, _pages: str) -> Iterator[Table]:
    return sheets(data)


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "[It is empty.]\n"
    lines = [[_cell(cell) for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    clean = " ".join(text.split()).replace("|", "\\|")
    return clean if len(clean) <= _WIDEST else clean[:_WIDEST] + "…"


def _chosen(tables: Sequence[Table], number: int) -> tuple[Mapping[str, JSON], bytes]:
    """The list of all tables, or one of them as CSV."""
    count = len(tables)
    if not number:
        lines = [_in_a_line(at, table) for at, table in enumerate(tables[:_MOST_TABLES], 1)]
        if count > _MOST_TABLES:
            lines.append(
                f"[There are more than {_MOST_TABLES}; of a PDF, `pages` gives those of some pages.]\n"
            )
        return {"tables": count}, "".join(lines).encode("utf-8", "replace")

    if not 1 <= number <= count:
        there = "is 1 table" if count == 1 else f"are {count} tables"
        raise NotDone(f"There {there}, so there is no table {number}.")

    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(tables[number - 1].rows)
    return {"tables": count}, out.getvalue().encode("utf-8", "replace")


def _in_a_line(at: int, table: Table) -> str:
    first = table.rows[0] if table.rows else ()
    names = ", ".join(_cell(cell) for cell in first[:12])
    more = ", …" if len(first) > 12 else ""
    left_out = f" [left out: {table.left_out}]" if table.left_out else ""
    return f"{at}: {table.where}, {len(table.rows):,} rows, {len(first)} columns: {names}{more}{left_out}\n"


_READERS: Final[Mapping[Kind, Callable[[bytes, str], tuple[Mapping[str, JSON], Iterator[str]]]]] = {
    "pdf": read_pdf, "word": read_word, "sheet": read_sheets, "html": read_html
}  # fmt: skip
_TABLES: Final[Mapping[Kind, Callable[[bytes, str], Iterator[Table]]]] = {
    "pdf": tables_of_pdf, "word": tables_of_word, "sheet": tables_of_sheets, "html": tables_of_html
}  # fmt: skip


if __name__ == "__main__":
    serve(work)
