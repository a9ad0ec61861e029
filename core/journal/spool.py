"""Takes in the artifacts that a module sends, piece by piece, and turns them into whole blobs.

Pieces go to a temporary file next to the blobs, so that an artifact of any size costs one piece of memory; writing
happens in a thread. A file becomes a blob, under its SHA-256, when it is complete.
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
class StoredArtifact:
    """An artifact that became a blob."""

    sha256: str
    """Under which it is stored."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """An artifact that is not complete yet."""

    path: Path
    stream: IO[bytes]
    hasher: hashlib._Hash


class Spool:
    """The artifacts of one call. Use it as a context manager: incomplete artifacts are removed."""

    def __init__(self, directory: Path) -> None:
        self._blobs = directory / "blobs"
        self._open: dict[str, _Draft] = {}
        self.kept: dict[str, StoredArtifact] = {}
        """The artifacts that are complete, by their module's name for them."""

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exit: object) -> None:
        for draft in self._open.values():
            draft.stream.close()
            draft.path.unlink(missing_ok=True)
        self._open.clear()

    async def take(self, artifact: str, data: bytes, *, last: bool) -> None:
        """Take the next piece of an artifact; with `last`, it is stored and added to `kept`."""
        await asyncio.to_thread(self._take, artifact, data, last)

    def _take(self, artifact: str, data: bytes, last: bool) -> None:
        if artifact not in self._open:
            descriptor, name = tempfile.mkstemp(dir=self._blobs, prefix=".spool-")
            self._open[artifact] = _Draft(Path(name), os.fdopen(descriptor, "wb"), hashlib.sha256())

        draft = self._open[artifact]
        draft.stream.write(data)
        draft.hasher.update(data)
        if not last:
            return

        # On disk before it has its name: a blob that exists is whole.
        size = draft.stream.tell()
        draft.stream.flush()
        os.fsync(draft.stream.fileno())
        draft.stream.close()

        digest = draft.hasher.hexdigest()
        draft.path.rename(self._blobs / digest)
        del self._open[artifact]
        self.kept[artifact] = StoredArtifact(digest, size)
