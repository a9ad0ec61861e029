"""The temporary names under which files are written, and their removal after a process was killed.

Before the first draft is created, the token in the drafts' names and their folders are recorded next to the overlay.
The next process that opens the overlay removes what is left.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from iact.core import path_names, whole_file
from iact.core.errors import WorkspaceError
from iact.sandbox.live import steps


def name_of(token: str, number: int) -> str:
    """The name of one draft."""
    return f".iact-{token}-{number}"


def write_down(store: Path, token: str, folders: Iterable[tuple[str, ...]]) -> None:
    """Record that drafts with this token may be in these folders.

    Raises:
        WorkspaceError: the record can't be written.
    """
    text = json.dumps({"token": token, "folders": [path_names.encode("/".join(parts)) for parts in folders]})
    place = _place(store)
    try:
        whole_file.replace(place, text.encode())
    except OSError as error:
        raise WorkspaceError(
            f"{place} can't be written ({error.strerror}), so nothing was applied; free some disk space."
        ) from error


def clean(store: Path, lower: int) -> None:
    """Remove the recorded drafts, and the record. Anything that can't be removed stays."""
    place = _place(store)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        token, folders = str(found["token"]), [str(each) for each in found["folders"]]
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        token, folders = "", []
    for written in folders if token.isalnum() else ():
        parts = path_names.decode(written) if written else ()
        with suppress(OSError):
            if parts is not None:
                _clean(lower, parts, f".iact-{token}-")
    forget(store)


def forget(store: Path) -> None:
    """Note that no draft is left."""
    with suppress(OSError):
        _place(store).unlink()


def _clean(lower: int, parts: tuple[str, ...], prefix: str) -> None:
    with steps.folder(lower, parts) as at:
        for name in steps.names(at):
            if not name.startswith(prefix) or (status := steps.look(at, name)) is None:
                continue
            with suppress(OSError):
                if stat.S_ISDIR(status.st_mode):
                    os.rmdir(name, dir_fd=at)
                else:
                    os.unlink(name, dir_fd=at)


def _place(store: Path) -> Path:
    return store / "applying.json"
