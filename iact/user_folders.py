"""The directories of users inside a data directory, named by user id, the one that they share, and those of hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError

USERS: Final = "users"
NODES: Final = "nodes"
"""The directories of several hosts on one machine, each laid out like a data directory."""
SHARED: Final = "shared"
"""The directory with what administrators set for all users: modules, approvals and secrets, laid out like a data directory."""
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def shared_folder(data: Path) -> Path:
    """The directory with what administrators set for all users."""
    return data / SHARED


def folder_of(data: Path, user: str) -> Path:
    """The data directory of a user. `user`: the user's id.

    Raises:
        UsageError: no user can have this id.
    """
    if not _ID.fullmatch(user):
        raise UsageError(f"{user!r} is not the id of a user.")
    return data / USERS / user
