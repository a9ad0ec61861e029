"""The tools of the shell: the user is asked once, if there is a terminal."""

from __future__ import annotations

import subprocess
import sys

from iact.setup import engine
from iact.setup.environment import PYTHON, VENV
from iact.setup.report import ROOT, Missing, say

_STAMP = VENV / "iact.workshop"
"""Exists once the question was asked."""


def ensure() -> Missing | None:
    """Ask the question on the first start. Without a terminal, print how to add tools later."""
    if _STAMP.exists() or engine.ping() != "ok":
        return None
    if sys.stdin.isatty() and sys.stderr.isatty():
        done = subprocess.run([str(PYTHON), "-m", "iact", "image", "offer"], cwd=ROOT, check=False)
        if done.returncode:
            return Missing(
                "The shell's tools could not be built",
                "agents have the usual commands, git and Python",
                f"{PYTHON} -m iact image offer",
            )
    else:
        say(
            "the shell has the usual commands, git and Python. For compilers, pip, numpy and more, run: "
            ".venv/bin/iact image build --profile data --profile dev"
        )
    _STAMP.touch()
    return None
