"""git, which keeps the versions of the files that agents work on; without it, none are kept."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing


def ensure() -> Missing | None:
    """Leave with git, or say what a person must do."""
    if shutil.which("git") or packages.install(
        ["git"], why="it keeps versions of the files that agents work on"
    ):
        return None
    return Missing("There is no git", "files that agents change can't be put back", packages.remedy(["git"]))
