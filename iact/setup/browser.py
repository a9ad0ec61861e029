"""Chromium and Firefox, which the tests of the page drive; the product itself needs only the person's own browser."""

from __future__ import annotations

import shutil
from typing import Final

from iact.setup import packages
from iact.setup.report import Missing

_WITHOUT_WINDOWS: Final = "chromium-headless-shell"
"""Debian's Chromium that can't show a window: the same engine, and a page costs it two thirds of the processor time."""


def find() -> str | None:
    """Path of the Chromium that the tests drive, or None: the one without windows, where there is one."""
    for name in (_WITHOUT_WINDOWS, "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def ensure() -> Missing | None:
    """Leave with a Chromium and a Firefox, or say what a person must do."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    # Other systems than Debian have no Chromium without windows; the usual one does there.
    for chromium, path in ((_WITHOUT_WINDOWS, shutil.which(_WITHOUT_WINDOWS)), ("chromium", find())):
        there = {chromium: path, "firefox-esr": firefox}
        wanted = [name for name, path in there.items() if path is None]
        if not wanted or packages.install(wanted, why="the page's tests drive real browsers"):
            return None
    named = " and no ".join({"chromium": "Chromium", "firefox-esr": "Firefox"}[name] for name in wanted)
    return Missing(f"There is no {named}", "the tests of the page will fail", packages.remedy(wanted))
