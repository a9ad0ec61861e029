"""What a client asked to download, waiting for it under an address that nobody can guess.

The websocket answers with an address, and the browser fetches that once. It is always an attachment of a type
that no browser opens, so a file that an agent made is never a page of ours, whatever it holds. What is large is
not held here but made while it is sent.
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
"""Files that wait for one person; the oldest makes way."""


Content: TypeAlias = bytes | Callable[[], Iterator[bytes]]
"""What a file holds, or what gives it in pieces: that may block, and raise `IactError`."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to be downloaded."""

    name: str
    content: Content
    whose: str = ""
    """Who asked for it: nobody else gets it, though they knew the address."""

    @property
    def disposition(self) -> str:
        """The header `Content-Disposition` (RFC 6266), with a plain name beside the real one."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", self.name)[:100] or "file"
        return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(self.name[:200], safe='')}"


class Downloads:
    """The files that wait, by address."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, Download] = OrderedDict()

    def put(self, name: str, content: Content, whose: str = "") -> str:
        """Lay a file down for somebody; gives its address on this server."""
        address = f"{PREFIX}{secrets.token_urlsafe(24)}"
        self._files[address] = Download(name.encode("utf-8", "replace").decode(), content, whose)
        waiting = [one for one, file in self._files.items() if file.whose == whose]
        for oldest in waiting[:-MOST]:
            del self._files[oldest]
        return address

    def take(self, address: str, whose: str = "") -> Download | None:
        """The file that waits for them at an address, which is then gone."""
        found = self._files.get(address)
        return self._files.pop(address) if found is not None and found.whose == whose else None
