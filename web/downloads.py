"""Files that a client asked to download, each waiting at an address that can't be guessed.

The websocket answers with an address, and the browser fetches that once. It is always an attachment of a type that no
browser opens, so a file made by an agent is never a page of this server, whatever it contains. Large content is not
held here but made while it is sent.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote

PREFIX: Final = "/download/"
MOST: Final = 16
"""How many files wait for one user; the oldest is dropped."""


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

    def put(self, name: str, content: Content, whose: str = "") -> str:
        """Add a file for a user. Returns its address on this server."""
        address = f"{PREFIX}{secrets.token_urlsafe(24)}"
        self._files[address] = Download(name.encode("utf-8", "replace").decode(), content, whose)
        waiting = [one for one, file in self._files.items() if file.whose == whose]
        for oldest in waiting[:-MOST]:
            del self._files[oldest]
        return address

    def take(self, address: str, whose: str = "") -> Download | None:
        """Remove and return the user's file at an address, if there is one."""
        found = self._files.get(address)
        return self._files.pop(address) if found is not None and found.whose == whose else None
