"""Where in a data directory the directories of its users are, each by the id of its user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError

USERS: Final = "users"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def folder_of(data: Path, user: str) -> Path:
    """The data directory of a user. `user`: their id.

    Raises:
        UsageError: no user can have this id.
    """
    if not _ID.fullmatch(user):
        raise UsageError(f"{user!r} is not the id of a user.")
    return data / USERS / user
