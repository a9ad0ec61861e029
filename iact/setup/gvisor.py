"""gVisor: the tests hold the sandbox against an engine that has it."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing

_PACKAGES = ["runsc"]


def ensure() -> Missing | None:
    """Leave with gVisor's `runsc`, or say what a person must do."""
    if shutil.which("runsc") or packages.install(_PACKAGES, why="the sandbox is tested under it, too"):
        return None
    return Missing("There is no gVisor", "the sandbox is not tested under it", packages.remedy(_PACKAGES))
