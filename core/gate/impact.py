"""How much a call would do: what its function declares, and what is at stake where it runs.

Impact is the worst that a call can do given its containment. In a scratch workspace, which holds
nothing of the user's, a function that writes can destroy nothing; where a directory of the user's
is mounted, a function that writes is not understood well enough to be less than 2. Functions that
run shell scripts are judged by what the script does (`core.gate.shell`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCRIPTS: Final[Mapping[str, tuple[str, str]]] = {"shell.run": ("command", "language")}
"""Functions of shipped modules that run a script: its parameter, and the one that names its language."""
RUNS_ON: Final[Mapping[str, str]] = {"shell.run": "background"}
"""The parameter by which such a function leaves its script running: then it is more than a look, whatever it does."""


def impact_of(declared: int, *, live: bool) -> int:
    """Impact of a function that runs no script: 0 reads, 1 writes, 2 may destroy.

    `live`: a directory of the user's is in reach.
    """
    return 2 if live and declared > 0 else declared
