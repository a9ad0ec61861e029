"""git, which keeps versions of the files that agents work on. Without it, no versions are kept."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing


def ensure() -> Missing | None:
    """Make sure that git is installed. Otherwise return what the user must do."""
    if shutil.which("git") or packages.install(
        ["git"], why="it keeps versions of the files that agents work on"
    ):
        return None
    return Missing(
        "git is not installed", "files that agents change can't be restored", packages.remedy(["git"])
    )
