"""Programs with other people's clients, in an environment that nothing of the repository is in.

Their packages come from the index, as the guides say to install them, so this needs one. A program here reads what it is
to do as JSON objects, one a line, and answers each with a line.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent
PACKAGES: Final = ("openai", "langchain-openai", "openai-agents", "a2a-sdk", "httpx")
"""What the guides say to install beside iact."""

_PATIENCE: Final = 540.0
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INDEX: Final = ("PIP_", "http_proxy", "https_proxy", "no_proxy")
"""Beginnings of the variables that say where packages come from."""


def variables() -> dict[str, str]:
    """The variables of an environment that has nothing of ours."""
    return {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_INDEX)}


def environment(temporary: pytest.TempPathFactory) -> Path:
    """The folder of the environment with the clients."""
    return installed_once(temporary, "clients", *PACKAGES)


def installed_once(temporary: pytest.TempPathFactory, name: str, *packages: str) -> Path:
    """An environment with packages from the index. It is made once in a run of the tests, by whichever process asks first.

    `packages`: what `pip install` is given.
    """
    shared = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    place = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            _install(place, packages)
            (place / "ready").touch()
    return place


def _install(place: Path, packages: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True, timeout=_PATIENCE)
    command = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(
        command, env=variables(), cwd=place, capture_output=True, text=True, check=False, timeout=_PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
