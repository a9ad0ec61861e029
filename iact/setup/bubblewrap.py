"""bubblewrap, under which tools run where no Docker engine answers."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing

_PACKAGES = ["bubblewrap", "libseccomp2"]


def ensure() -> Missing | None:
    """Leave with bubblewrap, or say what a person must do."""
    if shutil.which("bwrap") or packages.install(_PACKAGES, why="tools run under it without an engine"):
        return None
    return Missing("There is no bubblewrap", "it can't stand in for an engine", packages.remedy(_PACKAGES))
