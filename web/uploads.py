"""Incoming files: announced by a message, sent in binary frames, and completed by a message.

A file that becomes a variable is held in memory while it is received, so there is a limit on its size and on the number
of files at once. An archive of a session is written to disk as it arrives.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from iact.core.errors import UsageError
from iact.core.session.session import LARGEST_UPLOAD

AT_ONCE: Final = 4
"""How many files one server receives at once."""
LARGEST_ARCHIVE: Final = 16 << 30
"""Bytes of a session's archive; its unpacked size is limited where it is unpacked."""


@dataclass
class IncomingFile:
    """One file, as far as it has been received. `file`: where it is stored, if it is not in memory. `came`: bytes of it
    that are stored; `arrived`: also those that wait behind other messages."""

    name: str
    media: str
    size: int
    content: bytearray = field(default_factory=bytearray)
    file: IO[bytes] | None = None
    came: int = 0
    arrived: int = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece.

        Raises:
            UsageError: there is more than was announced, or it can't be stored.
        """
        if self.came + len(data) > self.size:
            raise UsageError(f"More than the announced {self.size:,} bytes arrived; upload the file again.")
        self.came += len(data)
        if self.file is None:
            self.content += data
            return
        try:
            self.file.write(data)
        except OSError as error:
            raise UsageError(
                f"The archive can't be stored ({error.strerror}); free some disk space."
            ) from error

    def whole(self) -> bytes:
        """The content.

        Raises:
            UsageError: a part of it is missing.
        """
        self._complete()
        return bytes(self.content)

    def stored(self) -> Path:
        """Where it is on disk.

        Raises:
            UsageError: a part of it is missing, or it can't be stored.
        """
        self._complete()
        assert self.file is not None
        try:
            self.file.flush()
        except OSError as error:
            raise UsageError(
                f"The archive can't be stored ({error.strerror}); free some disk space."
            ) from error
        # It has no name, so that nothing is left of it however this process ends.
        return Path(f"/proc/self/fd/{self.file.fileno()}")

    def close(self) -> None:
        """Discard the file, including what is on disk."""
        if self.file is not None:
            with suppress(OSError):
                self.file.close()

    def _complete(self) -> None:
        if self.came != self.size:
            raise UsageError(f"Only {self.came:,} of {self.size:,} bytes arrived; upload the file again.")


class Uploads:
    """The files that one server is receiving."""

    def __init__(self) -> None:
        self._incoming = 0

    def begin(self, name: str, media: str, size: int, folder: Path | None = None) -> IncomingFile:
        """Announce a file. `folder`: where it is stored while it is received; None: in memory.

        Raises:
            UsageError: it is too large, can't be stored, or too many are being received.
        """
        most = LARGEST_UPLOAD if folder is None else LARGEST_ARCHIVE
        if size > most:
            raise UsageError(f"{name[:80]!r} has {size:,} bytes; a file may have {most:,}.")
        if self._incoming >= AT_ONCE:
            raise UsageError("Too many files are being uploaded to this server; try again in a moment.")
        try:
            file = None if folder is None else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise UsageError(
                f"The archive can't be stored ({error.strerror}); free some disk space."
            ) from error
        self._incoming += 1
        return IncomingFile(name, media, size, file=file)

    def end(self) -> None:
        """Count a file as received or given up."""
        self._incoming -= 1
