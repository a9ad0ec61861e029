"""The file of the model on board, downloaded once by the code that knows its origin."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from iact.setup import packages
from iact.setup.environment import PYTHON, VENV
from iact.setup.report import ROOT, Missing, digest, run

_STAMP = VENV / "iact.model"
"""The digest of the code that names the file, its origin and its digest."""
_LIBRARY = "libgomp1"
_SOURCE = ROOT / "iact" / "models" / "weights.py"


def ensure() -> Missing | None:
    """Make sure that the model's file and its library are present. Otherwise return what the user must do."""
    return ensure_library() or _fetched()


def ensure_library() -> Missing | None:
    """Make sure that what runs the model finds its libraries. Otherwise return what the user must do."""
    if not _loads() and not (packages.install([_LIBRARY], why="the model on board needs it") and _loads()):
        return Missing(
            "A library that the model on board needs is missing",
            "you need your own model endpoint (OPENAI_BASE_URL)",
            packages.remedy([_LIBRARY]),
        )
    return None


def _loads() -> bool:
    """Whether the package that runs the model finds its libraries."""
    command = [str(PYTHON), "-c", "import xllamacpp"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _fetched() -> Missing | None:
    wanted = digest([_SOURCE])
    if _STAMP.exists() and _STAMP.read_text(encoding="ascii") == wanted and any(cache().rglob("*.gguf")):
        return None
    command = [str(PYTHON), "-m", "iact.models.embedded", "fetch"]
    if run(command, folder=ROOT):
        _STAMP.write_text(wanted, encoding="ascii")
        return None
    return Missing(
        "The model on board could not be downloaded",
        "you need your own model endpoint (OPENAI_BASE_URL)",
        " ".join(command),
    )


def cache() -> Path:
    """The product's cache folder, where the model's file is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(os.environ.get("IACT_CACHE") or Path(home) / "iact")
