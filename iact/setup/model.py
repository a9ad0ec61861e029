"""The embedded model's file: fetched once, by the code that knows where it comes from."""

from __future__ import annotations

import os
from pathlib import Path

from iact.setup.environment import PYTHON, VENV
from iact.setup.report import ROOT, Missing, digest, run

_STAMP = VENV / "iact.model"
"""Digest of the code that names the file, its origin and its digest."""
_SOURCE = ROOT / "core" / "models" / "weights.py"


def ensure() -> Missing | None:
    """Leave with the model's file, or say what a person must do."""
    wanted = digest([_SOURCE])
    if _STAMP.exists() and _STAMP.read_text(encoding="ascii") == wanted and any(cache().rglob("*.gguf")):
        return None
    command = [str(PYTHON), "-m", "core.models.embedded", "fetch"]
    if run(command, folder=ROOT):
        _STAMP.write_text(wanted, encoding="ascii")
        return None
    return Missing(
        "The embedded model could not be fetched",
        "a model endpoint of your own is needed (OPENAI_BASE_URL)",
        " ".join(command),
    )


def cache() -> Path:
    """The product's cache folder, where the model's file is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(os.environ.get("IACT_CACHE") or Path(home) / "iact")
