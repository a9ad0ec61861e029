"""The frameworks that iact is compared with, each in its own environment in the user's cache directory.

They are never dependencies of iact. The versions are pinned, so that figures can be reproduced.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import platformdirs

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "autogen": ("autogen-core==0.7.5", "autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
    "langgraph": (
        "langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2", "langchain==1.4.7", "langchain-openai==1.7.3",
    ),
    "openai_agents": ("openai-agents==0.24.0",),
    "pydantic_ai": ("pydantic-ai-slim[openai]==2.68.0",),
    "smolagents": ("smolagents[openai]==1.26.0",),
}  # fmt: skip

_INSTALLING: Final = 600
"""The most seconds that installing one framework may take."""


class Unavailable(Exception):
    """A framework's environment can't be created. The text says why."""


def installed(*names: str) -> list[str]:
    """The frameworks whose environments exist or can be created. Prints why any other is left out."""
    found = []
    for name in names:
        try:
            interpreter(name)
        except Unavailable as error:
            print(f"\n{name} is left out: {error}", flush=True)
        else:
            found.append(name)
    return found


def interpreter(name: str) -> Path:
    """The Python interpreter with a framework's packages. Creates the environment if it is missing or outdated.

    Raises:
        Unavailable: the packages can't be installed here.
    """
    place = platformdirs.user_cache_path("iact") / "benchmarks" / "peers" / name
    wanted = "\n".join(PACKAGES[name])
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
        print(f"benchmarks: installing {', '.join(PACKAGES[name])} into {place} …", file=sys.stderr)
        try:
            venv.create(place, with_pip=True, clear=True)
            command = [str(python), "-m", "pip", "install", "-q", *PACKAGES[name]]
            subprocess.run(command, check=True, timeout=_INSTALLING)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"{', '.join(PACKAGES[name])} can't be installed: {error}") from error
        ready.write_text(wanted, encoding="utf-8")
    return python
