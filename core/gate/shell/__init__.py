"""The impact of a shell command, by a parser of shell grammar (see docs/design/shell-classifier.md).

Importing this package needs `tree-sitter` and `tree-sitter-bash`.
"""

from __future__ import annotations

from typing import Final

from iact.core.gate.shell.effects import Effect, Finding, Judgement
from iact.core.gate.shell.walk import Walk

__all__ = ["Effect", "Finding", "Judgement", "judge_script"]

LONGEST: Final = 64 * 1024
"""The most characters of a script that is examined. A longer script is not understood."""


def judge_script(script: str, *, language: str = "bash") -> Judgement:
    """Judge what a script can do. A program in a language other than bash is other code: not understood."""
    if language != "bash":
        return Judgement((Finding("unknown", f"runs {language} code"),))
    if len(script) > LONGEST:
        return Judgement((Finding("unknown", f"the script has {len(script)} characters"),))
    walk = Walk()
    walk.judge(script)
    return Judgement(tuple(walk.findings), tuple(walk.written))
