"""The virtual environment in `.venv`: exactly the packages of `requirements.lock`, and `iact` itself.

A stamp file inside it contains the digest of its sources. While the digest matches, there is nothing to do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from iact.setup.report import ROOT, SetupFailed, run, say

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
_STAMP = VENV / "iact.stamp"


def ensure() -> None:
    """Make `.venv` match the lock file.

    Raises:
        SetupFailed: the environment can't be created, or packages can't be installed.
    """
    wanted = _digest()
    if _stamp() == wanted and (VENV / "bin" / "iact").exists() and _works():
        return
    if not _works():
        say(f"creating the virtual environment with Python {sys.version.split()[0]}")
        _make()
    say("installing the packages of requirements.lock")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq"]
    if not run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]):
        raise SetupFailed("The packages of requirements.lock could not be installed; see the lines above.")
    # "compat" puts the repository itself on the path, so that a new top-level package needs no new installation.
    own = [
        "--no-deps",
        "--no-build-isolation",
        "--config-settings",
        "editable_mode=compat",
        "--editable",
        str(ROOT),
    ]
    if not run([*pip, *own]):
        raise SetupFailed("The package iact itself could not be installed; see the lines above.")
    _STAMP.write_text(wanted, encoding="ascii")


def _digest() -> str:
    try:
        sources = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes()]
    except OSError as error:
        raise SetupFailed(
            f"{error.filename} can't be read; is this a complete clone of the repository?"
        ) from error
    return hashlib.sha256(b"\0".join([*sources, str(ROOT).encode(), b"1"])).hexdigest()


def _stamp() -> str:
    try:
        return _STAMP.read_text(encoding="ascii")
    except OSError:
        return ""


def _works() -> bool:
    """Whether the environment's interpreter starts. It doesn't after its base Python was replaced."""
    if not PYTHON.exists():
        return False
    try:
        return subprocess.run([PYTHON, "-c", ""], stdin=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def _make() -> None:
    if VENV.exists():
        _remove(VENV)
    base = Path(getattr(sys, "_base_executable", "") or sys.executable)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    if not run([str(base), "-m", "venv", str(VENV)], env=env):
        raise SetupFailed(
            "The virtual environment could not be created; run: sudo apt-get install python3-venv"
        )


def _remove(path: Path) -> None:
    if path.is_symlink():
        raise SetupFailed(f"{path} is a symbolic link. Remove it and run make again.")
    shutil.rmtree(path)
