"""Changed files in the protocol's terms: where they are, and what their text was and is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from acp.schema import FileEditToolCallContent, ToolCallLocation

from iact.core import path_names
from iact.core.characters import escaped
from iact.core.records.parts import PathChange

_LARGEST: Final = 200_000
"""The most bytes of a new file that is shown."""
MOST: Final = 40
"""The number of paths of which places and texts are sent. The rest are only counted."""


def location(folder: Path, path: str) -> ToolCallLocation | None:
    """Where a path of the workspace is; None if it names nothing in it."""
    parts = path_names.decode(path)
    return None if parts is None else ToolCallLocation(path=str(folder.joinpath(*parts)))


def locations(folder: Path, paths: Iterable[str]) -> list[ToolCallLocation]:
    """Where paths of the workspace are."""
    found = [location(folder, path) for path in paths]
    return [place for place in found if place is not None][:MOST]


def edit(folder: Path, path: str, before: str | None, after: str) -> FileEditToolCallContent | None:
    """The change of a text, for a client that shows the difference. `before`: None for a new file."""
    place = location(folder, path)
    if place is None:
        return None
    return FileEditToolCallContent(type="diff", path=place.path, old_text=before, new_text=after)


def created(folder: Path, changes: Sequence[PathChange]) -> list[FileEditToolCallContent]:
    """The new files among changes that were made, as far as they are still what was made. Blocks."""
    found: list[FileEditToolCallContent] = []
    for change in changes[:MOST]:
        text = _made(folder, change) if change.kind == "add" else None
        shown = None if text is None else edit(folder, change.path, None, text)
        if shown is not None:
            found.append(shown)
    return found


def _made(folder: Path, change: PathChange) -> str | None:
    """The text of a new file; None if it isn't one, is large, or became something else since."""
    state = change.now
    parts = path_names.decode(change.path)
    if state is None or state.type != "file" or state.size > _LARGEST or parts is None:
        return None

    try:
        # Nothing is followed that was put in the file's place since.
        opened = os.open(folder.joinpath(*parts), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError:
        return None
    if b"\0" in content or hashlib.sha256(content).hexdigest() != state.content:
        return None

    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return escaped(text, every=False)
