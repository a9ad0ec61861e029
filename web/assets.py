"""The page's files, read once at start into a table.

A request is looked up by its exact path, so there is no path to traverse: what is not a key is 404.

Scripts are served without their comments, which are a quarter of what they weigh: they are there for readers of the
source, and for the checker of types. Lines keep their numbers. Nothing else is changed; a test compares the tokens.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
}

_COMMENT: Final = re.compile(r"^[ \t]*//[^\n]*|/\*.*?\*/|[ \t]+// [^\n\"'`]*$", re.MULTILINE | re.DOTALL)
_BLANK_AT_THE_END: Final = re.compile(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page and its media type; `packed` is the content by gzip, made once.

    Nothing secret is in it, so its length tells nobody anything.
    """

    media: str
    content: bytes
    packed: bytes


def uncommented(script: str) -> str:
    """A script of ours without its comments; each of its lines stays where it is."""
    return _BLANK_AT_THE_END.sub("", _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), script))


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    if file.suffix == ".js":
        content = uncommented(content.decode()).encode()
    return Asset(_TYPES[file.suffix], content, gzip.compress(content, mtime=0))


def load(folder: Path) -> Mapping[str, Asset]:
    """Every file in `folder` that belongs to the page, by request path; `index.html` is `/`."""
    table = {
        f"/static/{file.relative_to(folder).as_posix()}": _asset(file)
        for file in sorted(folder.rglob("*"))
        if file.suffix in _TYPES
    }
    table["/"] = table.pop("/static/index.html")
    return table
