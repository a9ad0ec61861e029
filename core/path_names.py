"""How a path is written: relative, with "/" as separator, and "%XX" for bytes that can't be or must not be in a text.

Code that reads folders uses names as `str`, as Python gives them for files (undecodable bytes as surrogates). Names
that leave it are written as below, so that they can be in a record, a page or a terminal. A path that is not written
exactly as `encode` would write it names nothing.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

DEEPEST: Final = 256
"""The deepest nesting of folders. Anything deeper is not examined."""


def encode(path: str) -> str:
    """Return `path` with "%XX" for "%", for control characters and for bytes that are not UTF-8."""
    if path.isascii() and path.isprintable() and "%" not in path:
        return path
    return "".join(_written(character) for character in path)


def decode(written: str) -> tuple[str, ...] | None:
    """Return the names along the path, or None if `encode` could not have returned it."""
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
