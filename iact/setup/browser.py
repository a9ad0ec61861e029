"""Chromium and Firefox, which the tests of the page drive; the product itself needs only the person's own browser."""

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
    """Leave with a Chromium and a Firefox, or say what a person must do."""
    there = {"chromium": find(), "firefox-esr": shutil.which("firefox-esr") or shutil.which("firefox")}
    wanted = [name for name, path in there.items() if path is None]
    if not wanted or packages.install(wanted, why="the page's tests drive real browsers"):
        return None
    named = " and no ".join({"chromium": "Chromium", "firefox-esr": "Firefox"}[name] for name in wanted)
    return Missing(f"There is no {named}", "the tests of the page will fail", packages.remedy(wanted))
