"""nginx and Caddy, which the tests put in front of the server. They are unpacked to a folder so that no service starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from iact.setup.environment import VENV
from iact.setup.report import Missing, run, say

FOLDER: Final = VENV / "proxies"
NGINX: Final = FOLDER / "usr" / "sbin" / "nginx"
CADDY: Final = FOLDER / "usr" / "bin" / "caddy"
_NAMES: Final = ("nginx", "caddy")


def ensure() -> Missing | None:
    """Make sure that both are unpacked. Otherwise return what the user must do."""
    if NGINX.exists() and CADDY.exists():
        return None
    if shutil.which("apt-get"):
        say("fetching nginx and caddy (the server is tested behind them)")
        with tempfile.TemporaryDirectory() as folder:
            if _fetch(Path(folder)) and all(
                run(["dpkg", "-x", str(one), str(FOLDER)]) for one in Path(folder).glob("*.deb")
            ):
                return None
    return Missing(
        "nginx and Caddy are not installed",
        "the tests of a server behind a proxy will fail",
        "python -m iact.setup proxies, on a Debian system",
    )


def _fetch(folder: Path) -> bool:
    if run(["apt-get", "download", "-qq", *_NAMES], folder=folder, quiet=True):
        return True
    update = ["apt-get", "update", "-qq"]
    return (
        os.geteuid() == 0
        and run(update, quiet=True)
        and run(["apt-get", "download", "-qq", *_NAMES], folder=folder, quiet=True)
    )
