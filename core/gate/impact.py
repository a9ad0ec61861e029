"""The impact of a call: what its function declares, and what is at stake where it runs.

Impact is the worst that a call can do given its containment. In a scratch workspace, which contains nothing of the
user's, a function that writes can destroy nothing. Where a user's directory is mounted, a function that writes is not
understood well enough to be less than 2. Functions that run shell scripts are judged by what the script does
(`core.gate.shell`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCRIPTS: Final[Mapping[str, tuple[str, str]]] = {"shell.run": ("command", "language")}
"""Functions of shipped modules that run a script: the parameter of the script, and that of its language."""
RUNS_ON: Final[Mapping[str, str]] = {"shell.run": "background"}
"""The parameter that lets a function leave its script running. Such a call is never read-only."""


def impact_of(declared: int, *, live: bool) -> int:
    """Return the impact of a function that runs no script: 0 reads, 1 writes, 2 may destroy.

    `live`: a directory of the user is within reach.
    """
    return 2 if live and declared > 0 else declared
