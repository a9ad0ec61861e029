"""How a path is written down: relative, with "/" between, and "%XX" for bytes that a text can't hold or must not show.

Within the rooms that read folders names are `str` as Python gives them for files (undecodable bytes as surrogates); what leaves it
is written as below, so that it can stand in a record, a page or a terminal. A path that is not written exactly as
`encode` would write it names nothing.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

DEEPEST: Final = 256
"""Folders within each other; what lies deeper is not looked at."""


def encode(path: str) -> str:
    """`path` with "%XX" for "%", for control characters and for bytes that are no UTF-8."""
    if path.isascii() and path.isprintable() and "%" not in path:
        return path
    return "".join(_written(character) for character in path)


def decode(written: str) -> tuple[str, ...] | None:
    """The names on the way to it; None if it is no path that `encode` could have given."""
    try:
        path = os.fsdecode(unquote_to_bytes(written))
    except UnicodeEncodeError:
        return None
    parts = tuple(path.split("/"))
    if encode(path) != written or any(part in ("", ".", "..") or "\0" in part for part in parts):
        return None
    return parts


def _written(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"%{ord(character) - 0xDC00:02X}"
    if character == "%" or unicodedata.category(character) == "Cc":
        return "".join(f"%{byte:02X}" for byte in character.encode())
    return character
