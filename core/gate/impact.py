"""How much a call would do: what its function declares, its arguments, and what is at stake where it runs.

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
NOT_UNDERSTOOD: Final = {False: 1, True: 2}
"""Impact of a call whose function nobody approved, by whether something of the user's is in reach."""


def impact_of(function: str, declared: int, texts: Mapping[str, str], *, live: bool) -> int:
    """Impact of a call: 0 reads, 1 writes, 2 may destroy.

    `texts`: its arguments as text. `live`: a directory of the user's is in reach.
    """
    script = SCRIPTS.get(function)
    if script is not None:
        from core.gate.shell import judge_script  # loads a parser, which sessions without a shell don't need

        return judge_script(texts.get(script[0], ""), language=texts.get(script[1], "bash")).impact(live=live)
    return 2 if live and declared > 0 else declared
