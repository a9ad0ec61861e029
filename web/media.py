"""What a file is by its first bytes, among the formats that a page may show or play: none of them can hold a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

Shown = Literal["image", "audio", "video"]
"""How a person meets a content."""

_BEGINNINGS: Final[Sequence[tuple[bytes, Shown, str]]] = (
    (b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    (b"\xff\xd8\xff", "image", "image/jpeg"),
    (b"GIF87a", "image", "image/gif"),
    (b"GIF89a", "image", "image/gif"),
    (b"fLaC", "audio", "audio/flac"),
    (b"ID3\x02", "audio", "audio/mpeg"),
    (b"ID3\x03", "audio", "audio/mpeg"),
    (b"ID3\x04", "audio", "audio/mpeg"),
    (b"\xff\xfb", "audio", "audio/mpeg"),
    (b"\xff\xf3", "audio", "audio/mpeg"),
    (b"\xff\xf2", "audio", "audio/mpeg"),
    (b"\xff\xf1", "audio", "audio/aac"),
    (b"\xff\xf9", "audio", "audio/aac"),
)
"""The bytes with which a format begins."""

_RIFF: Final[Sequence[tuple[bytes, Shown, str]]] = (
    (b"WEBP", "image", "image/webp"),
    (b"WAVE", "audio", "audio/wav"),
)
"""Formats that begin with `RIFF`, by the word behind the length."""

_HEAD: Final = 256
"""Bytes within which a container names its codecs."""


def media_of(start: bytes) -> tuple[Shown, str] | None:
    """How a content is met, and its media type; None if the page neither shows nor plays it.

    `start`: its first bytes, at least 256 if there are as many.
    """
    if start.startswith(b"RIFF"):
        return next(((shown, media) for word, shown, media in _RIFF if start[8:12] == word), None)

    if start[4:8] == b"ftyp":
        return _of_mpeg_4(start[8:12])

    head = start[:_HEAD]
    if start.startswith(b"OggS"):
        # Only a film has a picture codec in its first page.
        return ("video", "video/ogg") if b"theora" in head else ("audio", "audio/ogg")
    if start.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head:
        return "video", "video/webm"

    return next(((shown, media) for begins, shown, media in _BEGINNINGS if start.startswith(begins)), None)


def _of_mpeg_4(brand: bytes) -> tuple[Shown, str] | None:
    if brand in (b"M4A ", b"M4B "):
        return "audio", "audio/mp4"
    if brand == b"qt  ":
        return "video", "video/quicktime"
    # Pictures are kept in this form, too, and browsers don't agree on which.
    if brand in (b"avif", b"heic", b"mif1"):
        return None
    return "video", "video/mp4"
