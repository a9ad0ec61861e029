"""Files that a client asked to download or to look at, each waiting at an address that can't be guessed.

The websocket answers with an address, and the browser fetches that once. A download is always an attachment of a type
that no browser opens, so a file made by an agent is never a page of this server, whatever it contains. What is looked at
is shown in a frame of the page, as a document without scripts, without an origin and without any other address: see
`VIEWS`. Large content is not held here but made while it is sent.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

PREFIX: Final = "/download/"
VIEW: Final = "/view/"
MOST: Final = 16
"""How many files wait for one user; the oldest is dropped."""

View: TypeAlias = Literal["html", "pdf"]
"""What a file is looked at as."""

_FRAMED: Final = "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
_FOR_VIEWS: Final = (("X-Frame-Options", "SAMEORIGIN"), ("X-DNS-Prefetch-Control", "off"))

VIEWS: Final[Mapping[View, tuple[str, Sequence[tuple[str, str]]]]] = {
    # Styles and pictures of its own are all that it has. `sandbox` takes scripts, forms, windows and the origin away.
    "html": (
        "text/html; charset=utf-8",
        (
            (
                "Content-Security-Policy",
                f"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; {_FRAMED}",
            ),
            *_FOR_VIEWS,
        ),
    ),
    # The browser's own viewer shows it, which a sandbox would switch off.
    "pdf": (
        "application/pdf",
        (
            (
                "Content-Security-Policy",
                f"default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; {_FRAMED}",
            ),
            *_FOR_VIEWS,
        ),
    ),
}
"""The media type of each view, and headers in place of the usual ones."""

_REACHES_OUT: Final = re.compile(r"<(?=(link|meta|base|iframe)\b)", re.IGNORECASE)
"""The beginning of elements that could make a browser look up a name, which no content policy forbids.

A frame can hold the others in an attribute, where they are not seen here.
"""


Content: TypeAlias = bytes | Callable[[], Iterator[bytes]]
"""A file's content, or a function that returns it in pieces. The function may block, and raise `IactError`."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to be downloaded."""

    name: str
    content: Content
    whose: str = ""
    """Who requested it. No one else gets it, even with the address."""

    @property
    def disposition(self) -> str:
        """The header `Content-Disposition` (RFC 6266), with a plain name in addition to the real one."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", self.name)[:100] or "file"
        return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(self.name[:200], safe='')}"


class Downloads:
    """The waiting files, by address."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, Download] = OrderedDict()

    def put(self, name: str, content: Content, whose: str = "", *, view: View | None = None) -> str:
        """Add a file for a user. `view`: what it is looked at as; None: a download. Returns its address on this server."""
        place = PREFIX if view is None else f"{VIEW}{view}/"
        address = f"{place}{secrets.token_urlsafe(24)}"
        self._files[address] = Download(name.encode("utf-8", "replace").decode(), content, whose)

        waiting = [other for other, file in self._files.items() if file.whose == whose]
        for oldest in waiting[:-MOST]:
            del self._files[oldest]

        return address

    def take(self, address: str, whose: str = "") -> Download | None:
        """Remove and return the user's file at an address, if there is one."""
        file = self._files.get(address)
        if file is None or file.whose != whose:
            return None
        return self._files.pop(address)


def view_of(address: str) -> View | None:
    """What the file at an address is looked at as; None if it is a download."""
    kind = address.removeprefix(VIEW).partition("/")[0] if address.startswith(VIEW) else ""
    return next((view for view in VIEWS if view == kind), None)


def shown_html(content: bytes) -> bytes:
    """A page as it is looked at: read as UTF-8, whatever it says of itself, and without what reaches out."""
    text = content.decode("utf-8", "replace").replace("\ufeff", "").replace("\0", "\ufffd")
    return _REACHES_OUT.sub("<x-", text).encode()
