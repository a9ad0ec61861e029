"""The modules' base image, built during set-up so that the first task needn't wait for it."""

from __future__ import annotations

import shutil
import subprocess

from iact.setup import engine, packages
from iact.setup.environment import LOCK, PYTHON, VENV
from iact.setup.report import ROOT, Missing, digest

_STAMP = VENV / "iact.image"
"""The digest of the image's sources, and the image's name."""
_SOURCES = (ROOT / "sandbox", ROOT / "ext_modules" / "sdk", ROOT / "protos", LOCK)


def ensure() -> Missing | None:
    """Make sure that the image of this version exists. Otherwise return what the user must do. Skipped without an engine."""
    if engine.ping() != "ok":
        return None
    wanted = digest(_SOURCES)
    made_from, _, reference = _stamp().partition(" ")
    if made_from == wanted and engine.has_image(reference):
        return None
    if not shutil.which("mmdebstrap"):
        # Without it, the image can still come from a registry, so a failure here is not fatal.
        packages.install(["mmdebstrap"], why="the sandbox's image is built from Debian packages")
    command = [str(PYTHON), "-m", "iact.sandbox"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT, text=True, check=False
    )
    if done.returncode == 0:
        _STAMP.write_text(f"{wanted} {done.stdout.strip()}", encoding="utf-8")
        return None
    return Missing(
        "The sandbox's base image could not be built",
        "tools can't run",
        f"{packages.remedy(['mmdebstrap'])} && {' '.join(command)}",
    )


def _stamp() -> str:
    try:
        return _STAMP.read_text(encoding="utf-8")
    except OSError:
        return ""
