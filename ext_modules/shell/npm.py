"""Scripts that do nothing but install packages with npm: nothing of the packages is run, and what was not run is said.

What a package runs when it is installed could send anything. The core relies on it that nothing is run: each install with
npm that it lets go on without a question has the form that is recognised here (`core.gate.installs`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

SETTINGS: Final = {"NPM_CONFIG_IGNORE_SCRIPTS": "true"}
"""The environment of such a script."""

_INSTALL: Final = re.compile(r"\s*npm (?:install|i|add|ci)\b[^;&|<>()$`\\\n]*\s*")
_OWN: Final = ("preinstall", "install", "postinstall", "prepare")
"""What npm would run of the project itself."""


def only_installs(script: str) -> bool:
    """Whether a bash script is one install with npm, and doesn't say itself what becomes of the packages' scripts."""
    return _INSTALL.fullmatch(script) is not None and "ignore-scripts" not in script


def not_run(folder: Path) -> str:
    """What such a script has left undone in the project in `folder`, or "" if nothing wanted to run."""
    sentences: list[str] = []
    if _packages_have_scripts(folder):
        sentences.append("What packages run when they are installed was not run; `npm rebuild` runs it.")
    own = _own_scripts(folder)
    if own:
        sentences.append(f"The project's own {', '.join(own)} was not run; `npm run {own[0]}` runs it.")
    return " ".join(sentences)


def _packages_have_scripts(folder: Path) -> bool:
    try:
        installed = (folder / "node_modules" / ".package-lock.json").read_text("utf-8")
    except (OSError, ValueError):
        return False
    return '"hasInstallScript": true' in installed


def _own_scripts(folder: Path) -> list[str]:
    try:
        scripts = json.loads((folder / "package.json").read_text("utf-8"))["scripts"]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    return [name for name in _OWN if isinstance(scripts, dict) and name in scripts]
