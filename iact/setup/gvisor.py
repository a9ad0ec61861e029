"""gVisor, because the sandbox is also tested on an engine that uses it."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing

_PACKAGES = ["runsc"]


def ensure() -> Missing | None:
    """Make sure that gVisor's `runsc` is installed. Otherwise return what the user must do."""
    if shutil.which("runsc") or packages.install(_PACKAGES, why="the sandbox is also tested under it"):
        return None
    return Missing(
        "gVisor is not installed", "the sandbox is not tested under it", packages.remedy(_PACKAGES)
    )
