"""Chromium and Firefox, which the page's tests drive. The product itself needs only the user's own browser."""

from __future__ import annotations

import shutil
from typing import Final

from iact.setup import packages
from iact.setup.report import Missing

_WITHOUT_WINDOWS: Final = "chromium-headless-shell"
"""Debian's Chromium without windows: the same engine, but a page needs two thirds of the processor time."""


def find() -> str | None:
    """The path of the Chromium that the tests drive, or None. The one without windows is preferred."""
    for name in (_WITHOUT_WINDOWS, "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def ensure() -> Missing | None:
    """Make sure that Chromium and Firefox are installed. Otherwise return what the user must do."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    # Systems other than Debian have no Chromium without windows; there the ordinary one is used.
    for chromium, path in ((_WITHOUT_WINDOWS, shutil.which(_WITHOUT_WINDOWS)), ("chromium", find())):
        there = {chromium: path, "firefox-esr": firefox}
        wanted = [name for name, path in there.items() if path is None]
        if not wanted or packages.install(wanted, why="the page's tests drive real browsers"):
            return None
    named = " and ".join({"chromium": "Chromium", "firefox-esr": "Firefox"}[name] for name in wanted)
    return Missing(f"Not installed: {named}", "the tests of the page will fail", packages.remedy(wanted))
