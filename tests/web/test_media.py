"""A file is known by its first bytes, whatever its name says."""

from __future__ import annotations

import pytest

from iact.web.media import media_of


@pytest.mark.parametrize(
    ("start", "media"),
    [
        (b"\x89PNG\r\n\x1a\n", ("image", "image/png")),
        (b"RIFF\0\0\0\0WEBPVP8 ", ("image", "image/webp")),
        (b"RIFF\0\0\0\0WAVEfmt ", ("audio", "audio/wav")),
        (b"RIFF\0\0\0\0AVI LIST", None),
        (b"ID3\x04\0\0", ("audio", "audio/mpeg")),
        (b"ID3 tags are at the beginning", None),
        (b"\xff\xfb\x90\x64", ("audio", "audio/mpeg")),
        (b"fLaC\0\0\0", ("audio", "audio/flac")),
        (b"OggS\0\x02" + b"\0" * 22 + b"\x01\x1eOpusHead", ("audio", "audio/ogg")),
        (b"OggS\0\x02" + b"\0" * 22 + b"\x01\x2a\x80theora", ("video", "video/ogg")),
        (b"\0\0\0\x20ftypisom", ("video", "video/mp4")),
        (b"\0\0\0\x20ftypM4A ", ("audio", "audio/mp4")),
        (b"\0\0\0\x14ftypqt  ", ("video", "video/quicktime")),
        (b"\0\0\0\x1cftypavif", None),
        (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", ("video", "video/webm")),
        (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
        (b"<html><script>", None),
        (b"", None),
    ],
)
def test_what_may_be_shown_or_played(start: bytes, media: tuple[str, str] | None) -> None:
    assert media_of(start) == media
