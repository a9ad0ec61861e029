"""What a file or a variable can be looked at as, besides its text: by its name or type, and by its first bytes."""

from __future__ import annotations

from typing import Final

from iact.core.errors import UsageError
from iact.web.downloads import View
from iact.web.wire.answers import Look

LARGEST_PAGE: Final = 2 << 20
"""Bytes of a page that is looked at."""

_PDF: Final = b"%PDF-"
_ZIP: Final = b"PK\x03\x04"
_SHEET: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_BY_END: Final[dict[str, Look]] = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".csv": "table", ".tsv": "table",
}  # fmt: skip
_BY_MEDIA: Final[dict[str, Look]] = {
    "text/html": "html", "text/markdown": "markdown", "text/csv": "table", "text/tab-separated-values": "table",
}  # fmt: skip


def look_of(name: str, media: str, start: bytes, *, is_text: bool) -> Look | None:
    """What content can be looked at as. `start`: its first bytes; `media`: its type, as far as it has one."""
    end = f".{name.lower().rpartition('.')[2]}"
    kind = media.lower().partition(";")[0].strip()

    if start.startswith(_PDF):
        return "pdf"
    if start.startswith(_ZIP) and (end == ".xlsx" or kind == _SHEET):
        return "sheet"
    if is_text:
        return _BY_END.get(end) or _BY_MEDIA.get(kind)
    return None


def view_as(look: Look | None, size: int) -> View:
    """What content is shown as in a frame.

    Raises:
        UsageError: it can't be.
    """
    if look == "html" and size > LARGEST_PAGE:
        raise UsageError(f"The page is too long to be shown here: {size:,} bytes; download it to look.")
    if look == "html" or look == "pdf":
        return look
    raise UsageError("This can't be shown here; download it to look.")
