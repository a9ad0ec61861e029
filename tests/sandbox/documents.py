"""Documents made by hand, byte by byte, so that the tests need none of the libraries that read them; and hostile ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

TABLE: Final = (("town", "people"), ("Oslo", "709"), ("Bergen", "291"))


def pdf(pages: Sequence[str]) -> bytes:
    """A PDF of these pages, each drawn by the operators of a content stream."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, drawing in enumerate(pages):
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] {font} /Contents {5 + 2 * n} 0 R >>"
        )
        objects.append(f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream")
    out, offsets = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1"))
    begin = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write(b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets))
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n".encode())
    return out.getvalue()


def said(text: str, x: int = 40, y: int = 250) -> str:
    """Text at a place of a page."""
    return f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET"


def ruled(rows: Sequence[Sequence[str]] = TABLE) -> str:
    """A table with lines around its cells."""
    drawn = [
        f"{40 + 100 * c} {240 - 20 * r} 100 20 re S" for r in range(len(rows)) for c in range(len(rows[0]))
    ]
    drawn += [
        said(cell, 44 + 100 * c, 245 - 20 * r) for r, row in enumerate(rows) for c, cell in enumerate(row)
    ]
    return "\n".join(drawn)


def packed(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


_TYPES: Final = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>{}</Types>'
)
_PART: Final = "application/vnd.openxmlformats-officedocument."
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006/relationships"


def _relations(*targets: tuple[str, str]) -> str:
    listed = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{_PACKAGE}">{listed}</Relationships>'


def word(body: str, *, head: str = '<?xml version="1.0"?>') -> bytes:
    """A Word document with this body."""
    kind = (
        f'<Override PartName="/word/document.xml" ContentType="{_PART}wordprocessingml.document.main+xml"/>'
    )
    name_space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return packed(
        {
            "[Content_Types].xml": _TYPES.format(kind),
            "_rels/.rels": _relations(("officeDocument", "word/document.xml")),
            "word/document.xml": f'{head}<w:document xmlns:w="{name_space}"><w:body>{body}</w:body></w:document>',
        }
    )


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def word_table(rows: Sequence[Sequence[str]] = TABLE) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def workbook(rows: Sequence[Sequence[str]], *, dimension: str = "A1:B3") -> bytes:
    """An Excel workbook with one sheet."""
    kinds = (
        f'<Override PartName="/xl/workbook.xml" ContentType="{_PART}spreadsheetml.sheet.main+xml"/>'
        f'<Override PartName="/xl/sheet1.xml" ContentType="{_PART}spreadsheetml.worksheet+xml"/>'
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    lines = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>"
        for row in rows
    )
    sheet = '<sheets><sheet name="Towns" sheetId="1" r:id="r1"/></sheets>'
    return packed(
        {
            "[Content_Types].xml": _TYPES.format(kinds),
            "_rels/.rels": _relations(("officeDocument", "xl/workbook.xml")),
            "xl/_rels/workbook.xml.rels": _relations(("worksheet", "sheet1.xml")),
            "xl/workbook.xml": f'<?xml version="1.0"?><workbook xmlns="{main}" xmlns:r="{_OFFICE}">{sheet}</workbook>',
            "xl/sheet1.xml": f'<?xml version="1.0"?><worksheet xmlns="{main}"><dimension ref="{dimension}"/>'
            f"<sheetData>{lines}</sheetData></worksheet>",
        }
    )


_LAUGHS: Final = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    + "]>"
)
_FILE: Final = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'

HOSTILE: Final[Mapping[str, bytes]] = {
    "bomb.docx": packed({"word/document.xml": b"\0" * (300 << 20)}),
    "many.docx": packed({"word/document.xml": "", **{f"word/{n}": "" for n in range(10_001)}}),
    "laughs.docx": word(paragraph("&a9;"), head=_LAUGHS),
    "file.docx": word(paragraph("&f;"), head=_FILE),
    "deep.docx": word("<w:sdt>" * 50_000 + "</w:sdt>" * 50_000),
    "cut.pdf": pdf([said("x")])[:200],
    "noise.pdf": b"%PDF-1.7\n" + bytes(range(256)) * 400,
    "ring.pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>endobj\n"
    b"trailer<</Root 1 0 R>>",
    "huge.xlsx": workbook(TABLE, dimension="A1:XFD1048576"),
    "notes.txt": b"just a text",
    "old.doc": b"\xd0\xcf\x11\xe0" + b"\0" * 600,
    "empty.pdf": b"",
    "deep.html": b"<html>" + b"<div>" * 100_000,
}
