"""Which waiting changes are noise: what tools keep beside the work, and a person does not want to read one by one.

Noise is shown folded, in one line, and is listed on request; it is applied and dropped like everything else. What counts
is the user's own `.gitignore`, as it is in the directory and not as an agent would have it, and git's store of objects,
whose names are their content. Anything that could act by its kind is never folded: a link, a program, a conflict.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import re2

from iact.core.ports import FileChange
from iact.core.tree.effects import parents

Noise = Literal["ignored", "git", "cache"]
"""Named by the user's `.gitignore`; a raw object of git's; a cache of a well-known tool, newly made."""

_LARGEST: Final = 64 << 10
"""The most bytes of a `.gitignore` that are read."""
_PATTERNS: Final = 500
"""The most patterns of one file."""
_LONGEST: Final = 200
_OBJECT: Final = re.compile(
    r"(?:.*/)?\.git/objects(?:/[0-9a-f]{2}(?:/[0-9a-f]{38,62})?|/pack/pack-[0-9a-f]+\.\w+)?"
)
_CACHES: Final = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
_ANY_EXECUTE: Final = 0o111


class NoiseOf:
    """Tells the noise among the changes of one directory, whose `.gitignore` files it reads when they are needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, list[_Pattern]] = {}

    def of(self, change: FileChange) -> Noise | None:
        """What kind of noise a change is; None if it is to be read. Blocks."""
        if not _is_plain(change):
            return None
        if change.kind != "delete" and _OBJECT.fullmatch(change.path):
            return "git"
        if self._ignores(change.path, folder=_is_folder(change)):
            return "ignored"
        inside_cache = not _CACHES.isdisjoint(change.path.split("/"))
        return "cache" if inside_cache and change.kind == "add" else None

    def is_beside_work(self, path: str) -> bool:
        """Whether nobody needs to be told that a file changed: git keeps it, git ignores it, or it is in a cache. Blocks."""
        folders = path.split("/")[:-1]
        return ".git" in folders or not _CACHES.isdisjoint(folders) or self._ignores(path, folder=False)

    def _ignores(self, path: str, *, folder: bool) -> bool:
        """Whether git would ignore a path: it or a folder that it is in is named, by the last pattern that names it."""
        above = [*reversed([*parents(path)])]
        if ".git" in path.split("/"):
            return False
        return any(self._named(one, folder=True) for one in above) or self._named(path, folder=folder)

    def _named(self, path: str, *, folder: bool) -> bool:
        ignored = False
        for place in ["", *reversed([*parents(path)])]:
            below = path.removeprefix(f"{place}/") if place else path
            for pattern in self._patterns(place):
                if (folder or not pattern.folders_only) and pattern.fits(below):
                    ignored = not pattern.negated
        return ignored

    def _patterns(self, place: str) -> list[_Pattern]:
        if place not in self._known:
            self._known[place] = list(_patterns_in(self._directory / place / ".gitignore"))
        return self._known[place]


def _is_plain(change: FileChange) -> bool:
    """Whether a change is one of ordinary files or folders that meets nothing and starts nothing."""
    if change.conflict:
        return False
    for state in (change.was, change.now):
        if state is not None and state.type not in ("file", "folder"):
            return False
    now = change.now
    return now is None or now.type == "folder" or not now.mode & _ANY_EXECUTE


def _is_folder(change: FileChange) -> bool:
    state = change.now or change.was
    return state is not None and state.type == "folder"


class _Pattern:
    """One line of a `.gitignore` (gitignore(5)). `folders_only`: it ends in a slash."""

    def __init__(self, line: str) -> None:
        self.negated = line.startswith("!")
        text = line.removeprefix("!")
        self.folders_only = text.endswith("/")
        text = text.rstrip("/")
        anchored = "/" in text
        # RE2 takes linear time, whatever a stranger's repository has written there.
        self._expression = re2.compile(("" if anchored else "(?:.*/)?") + _translated(text.removeprefix("/")))

    def fits(self, path: str) -> bool:
        return self._expression.fullmatch(path) is not None


def _patterns_in(file: Path) -> Iterator[_Pattern]:
    for line in _text(file).splitlines()[:_PATTERNS]:
        written = line.rstrip()
        if not written or written.startswith("#") or len(written) > _LONGEST or written in ("/", "!"):
            continue
        try:
            yield _Pattern(written)
        except re2.error:
            continue


def _text(file: Path) -> str:
    """The beginning of a `.gitignore`; empty if there is none, or it is no ordinary file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return stream.read(_LARGEST).decode("utf-8", "replace")


_PIECE: Final = re.compile(r"/\*\*/|\*\*/|/\*\*|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\.|.", re.DOTALL)


def _translated(pattern: str) -> str:
    """The regular expression for a pattern: no wildcard but `**` passes a slash."""
    return "".join(_piece(token.group()) for token in _PIECE.finditer(pattern))


def _piece(token: str) -> str:
    match token:
        case "/**/":
            return "/(?:.*/)?"
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "?":
            return "[^/]"
        case _ if token.startswith("*"):
            return "[^/]*"
        case _ if token.startswith("[") and len(token) > 2:
            inner = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            return f"[^{inner[1:]}]" if inner[:1] in "!^" else f"[{inner}]"
        case _ if token.startswith("\\") and len(token) > 1:
            return re.escape(token[1])
        case _:
            return re.escape(token)
