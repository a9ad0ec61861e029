"""A file on its way in: announced by a message, then in binary frames, then closed by a message.

What is on its way stands in memory, so there is a limit to one file and to how many come in at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from core.errors import UsageError
from core.session.session import LARGEST_UPLOAD

AT_ONCE: Final = 4
"""Files that may be on their way to one server."""


@dataclass
class Arriving:
    """One file, as far as it has come."""

    name: str
    media: str
    size: int
    content: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Take the next piece.

        Raises:
            UsageError: there is more than was announced.
        """
        if len(self.content) + len(data) > self.size:
            raise UsageError(
                f"More than the {self.size:,} bytes came that were announced; upload the file again."
            )
        self.content += data

    def whole(self) -> bytes:
        """The content.

        Raises:
            UsageError: a part of it is missing.
        """
        if len(self.content) != self.size:
            raise UsageError(
                f"Only {len(self.content):,} of {self.size:,} bytes came; upload the file again."
            )
        return bytes(self.content)


class Landing:
    """The files that are on their way to one server."""

    def __init__(self) -> None:
        self._arriving = 0

    def begin(self, name: str, media: str, size: int) -> Arriving:
        """Announce a file.

        Raises:
            UsageError: it is too large, or too many are on their way.
        """
        if size > LARGEST_UPLOAD:
            raise UsageError(f"{name[:80]!r} has {size:,} bytes; a file may have {LARGEST_UPLOAD:,}.")
        if self._arriving >= AT_ONCE:
            raise UsageError("Too many files are on their way to this server; try again in a moment.")
        self._arriving += 1
        return Arriving(name, media, size)

    def end(self) -> None:
        """One has arrived, or will not."""
        self._arriving -= 1
