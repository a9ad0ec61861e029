"""The frameworks beside which we are measured, each in an environment of its own below the user's cache."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import platformdirs

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "autogen": ("autogen-core==0.7.5", "autogen-agentchat==0.7.5"),
    "langgraph": ("langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"),
}


def interpreter(name: str) -> Path:
    """The Python that has a peer's packages; the environment is made if it is not there, or holds others."""
    place = platformdirs.user_cache_path("iact") / "benchmarks" / "peers" / name
    wanted = "\n".join(PACKAGES[name])
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
        print(f"benchmarks.tree: installing {', '.join(PACKAGES[name])} into {place} …", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[name]], check=True)
        ready.write_text(wanted, encoding="utf-8")
    return python
