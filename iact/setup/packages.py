"""Debian packages: installed if this process has the rights, otherwise named in a command for the user."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from iact.setup.report import run, say


def remedy(names: Sequence[str]) -> str:
    """The command that installs `names`, for the user to type."""
    if shutil.which("apt-get"):
        return f"sudo apt-get install {' '.join(names)}"
    return f"your system's package manager to install {' '.join(names)}"


def install(names: Sequence[str], *, why: str) -> bool:
    """Install `names` if this process is root on a system with apt-get. Returns whether they are installed now.

    The package lists are only updated if the first try fails, because that takes longer than most installations.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say(f"installing {', '.join(names)} ({why})")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *names]
    if (
        run(["apt-get", "check", "-qq"], env=env, quiet=True)
        and _listed(names)
        and run(command, env=env, quiet=True)
    ):
        return True
    return run(["apt-get", "update", "-qq"], env=env, quiet=True) and run(command, env=env, quiet=True)


def _listed(names: Sequence[str]) -> bool:
    """Whether the package lists on this machine contain all of `names`."""
    return all(run(["apt-cache", "show", "--quiet", name], quiet=True) for name in names)
