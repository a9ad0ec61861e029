"""The page's files, read once at start into a table.

A request is looked up by its exact path, so there is no path to traverse: a path that is not a key is 404.

Scripts are served without their comments, which make up a quarter of their size and are meant for readers of the source
and for the type checker. Lines keep their numbers. Nothing else changes; a test compares the tokens.

Each reference to another file includes the version of all files, `?v=DIGEST`, so a browser may cache files for as long
as it likes, and requests nothing when the page is opened again. A page that was opened before an upgrade requests files
with its old version. It gets today's files with that old version in their references: with two versions at once, it
would load and start scripts twice.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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


_REFERENCES: Final[Mapping[str, re.Pattern[str]]] = {
    ".js": re.compile(r"""((?:\bfrom |\bimport |\bimport\()"\.{1,2}/[\w./-]+\.js)(?=")"""),
    ".html": re.compile(r"""((?:href|src)="/static/[\w./-]+)(?=")"""),
}
_QUERY: Final = re.compile(r"v=[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page and its media type. `packed`: its content compressed with gzip, once.

    It contains no secrets, so its compressed length reveals nothing.
    """

    media: str
    content: bytes
    packed: bytes
    kept: bool = False
    """Whether a browser may cache it: the request names this exact content."""


@dataclass(frozen=True, slots=True)
class Assets:
    """All files of the page, by request path; `index.html` is `/`."""

    version: str
    """As a query: `v=DIGEST`."""
    files: Mapping[str, Asset]

    def get(self, path: str, query: str) -> Asset | None:
        """The file at `path`, for a request with this query."""
        asset = self.files.get(path)
        if asset is None or not _QUERY.fullmatch(query):
            return asset
        if query == self.version:
            return replace(asset, kept=True)

        # A page that is open with another version goes on to ask for that: what it gets refers to the same.
        content = asset.content.replace(self.version.encode(), query.encode())
        return _packed(asset.media, content)


def uncommented(script: str) -> str:
    """One of our scripts without its comments; every line keeps its number."""
    return _BLANK_AT_THE_END.sub("", _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), script))


def _packed(media: str, content: bytes) -> Asset:
    return Asset(media, content, gzip.compress(content, mtime=0))


def _versioned(file: Path, text: str, version: str) -> str:
    """A file's text, with a version added to every reference."""
    references = _REFERENCES.get(file.suffix)
    return references.sub(rf"\1?{version}", text) if references else text


def load(folder: Path) -> Assets:
    """Every file in `folder` that belongs to the page."""
    texts = {file: _source(file) for file in sorted(folder.rglob("*")) if file.suffix in _TYPES}
    whole = "\0".join(f"{file.relative_to(folder)}\0{text}" for file, text in texts.items())
    version = f"v={hashlib.sha256(whole.encode()).hexdigest()[:16]}"

    files: dict[str, Asset] = {}
    for file, text in texts.items():
        content = _versioned(file, text, version).encode()
        files[f"/static/{file.relative_to(folder).as_posix()}"] = _packed(_TYPES[file.suffix], content)
    files["/"] = files.pop("/static/index.html")

    return Assets(version, files)


def _source(file: Path) -> str:
    """A file's text, as browsers get it."""
    text = file.read_text(encoding="utf-8")
    return uncommented(text) if file.suffix == ".js" else text
