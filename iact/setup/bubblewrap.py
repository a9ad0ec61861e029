"""bubblewrap, under which tools run if no Docker engine answers."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing

_PACKAGES = ["bubblewrap", "libseccomp2"]


def ensure() -> Missing | None:
    """Make sure that bubblewrap is installed. Otherwise return what the user must do."""
    if shutil.which("bwrap") or packages.install(_PACKAGES, why="tools run under it without an engine"):
        return None
    return Missing(
        "bubblewrap is not installed", "it can't replace a missing engine", packages.remedy(_PACKAGES)
    )
