"""The corpus of commands that change a directory and try to look harmless (`corpus/hostile.toml`)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parent / "corpus" / "hostile.toml"
_CORPUS: Final = tomllib.loads(_FILE.read_text(encoding="utf-8"))

SETUP: Final[str] = _CORPUS["setup"]
"""Fills the directory in which they run."""


def lines(text: str) -> list[str]:
    """The commands of one list."""
    return [line.replace("⏎", "\n") for line in text.splitlines() if line]


FAMILIES: Final = {
    "found": lines(_CORPUS["found"]["commands"]),
    **{family["name"]: lines(family["commands"]) for family in _CORPUS["family"]},
}
COMMANDS: Final = [(family, command) for family, commands in FAMILIES.items() for command in commands]
IDLE: Final = {
    command.replace("⏎", "\n"): str(reason)
    for family in [_CORPUS["found"], *_CORPUS["family"]]
    for command, reason in family.get("idle", {}).items()
}
"""Commands that can have no effect in this directory, or not everywhere, and why."""
