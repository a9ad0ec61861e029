"""Where in a data directory the directories of its users are, each by the id of its user, and what all of them have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError

USERS: Final = "users"
SHARED: Final = "shared"
"""The directory with what administrators set for everybody: modules, approvals and secrets, as a data directory has them."""
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def shared_folder(data: Path) -> Path:
    """Where what administrators set for everybody is."""
    return data / SHARED


def folder_of(data: Path, user: str) -> Path:
    """The data directory of a user. `user`: their id.

    Raises:
        UsageError: no user can have this id.
    """
    if not _ID.fullmatch(user):
        raise UsageError(f"{user!r} is not the id of a user.")
    return data / USERS / user
