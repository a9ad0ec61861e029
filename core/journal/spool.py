"""Takes in what a module sends as artifacts, piece by piece, and leaves whole blobs behind.

Pieces go to a temporary file beside the blobs, so that an artifact of any size costs one piece of
memory; writing happens in a thread. A file becomes a blob, under its SHA-256, when it is complete.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Kept:
    """An artifact that became a blob."""

    sha256: str
    size: int


class Spool:
    """The artifacts of one call. Use it as a context manager: what was not completed is removed."""

    def __init__(self, directory: Path) -> None:
        self._blobs = directory / "blobs"
        self._open: dict[str, tuple[IO[bytes], hashlib._Hash]] = {}
        self.kept: dict[str, Kept] = {}

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exit: object) -> None:
        for stream, _ in self._open.values():
            stream.close()
            Path(stream.name).unlink(missing_ok=True)
        self._open.clear()

    async def take(self, artifact: str, data: bytes, *, last: bool) -> None:
        """The next piece of an artifact; with `last`, it is stored and stands in `kept`."""
        await asyncio.to_thread(self._take, artifact, data, last)

    def _take(self, artifact: str, data: bytes, last: bool) -> None:
        if artifact not in self._open:
            stream = tempfile.NamedTemporaryFile(dir=self._blobs, prefix=".spool-", delete=False)  # noqa: SIM115
            self._open[artifact] = stream.file, hashlib.sha256()
        stream_file, hasher = self._open[artifact]
        stream_file.write(data)
        hasher.update(data)
        if last:
            del self._open[artifact]
            size = stream_file.tell()
            stream_file.flush()
            os.fsync(stream_file.fileno())
            stream_file.close()
            Path(stream_file.name).rename(self._blobs / hasher.hexdigest())
            self.kept[artifact] = Kept(hasher.hexdigest(), size)
