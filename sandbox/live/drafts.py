"""The names under which files are written before they get their own, and their removal when a process was killed.

Before the first of them is made, the token in their names and the folders that they will be in are written down
beside the overlay. Who opens it again removes what is left there.
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
    """Remember that drafts with this token may be in these folders.

    Raises:
        WorkspaceError: it can't be written.
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
    """Remove the drafts that are written down, and what is written down. What can't be removed is left."""
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
    """No draft is left."""
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
