"""Many files as one archive, made piece by piece.

It may be unpacked with any program, so a name in it must not point outside: it is relative, characters that separate
folders on other systems are percent-encoded, and links are left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_PIECE: Final = 1 << 18
_WRITTEN_OUT: Final = str.maketrans({"\\": "%5C", ":": "%3A"})


class _Taken(io.RawIOBase):
    """Collects what is written until it is taken. It can't seek, so the archive doesn't either."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """What was written since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """An archive of files, each with its path (as `core.path_names` writes it) and its content in pieces."""
    taken = _Taken()
    with ZipFile(taken, "w", ZIP_DEFLATED) as archive:
        for path, pieces in files:
            info = ZipInfo(path.translate(_WRITTEN_OUT))
            info.compress_type, info.external_attr = ZIP_DEFLATED, 0o644 << 16
            with archive.open(info, "w", force_zip64=True) as entry:
                for piece in pieces:
                    for at in range(0, len(piece), _PIECE):
                        entry.write(piece[at : at + _PIECE])
                        yield taken.take()
            yield taken.take()
    yield taken.take()
