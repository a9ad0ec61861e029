"""Chromium, which the tests of the page drive; the product itself needs only the person's own browser."""

from __future__ import annotations

import shutil

from iact.setup import packages
from iact.setup.report import Missing


def find() -> str | None:
    """Path of a Chromium on this machine, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def ensure() -> Missing | None:
    """Leave with a Chromium, or say what a person must do."""
    wanted = ["chromium"]
    if find() or packages.install(wanted, why="the page's tests drive a real browser"):
        return None
    return Missing("There is no Chromium", "the tests of the page will fail", packages.remedy(wanted))
