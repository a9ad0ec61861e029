"""Which files a call is known to write: named in its arguments, or named literally in its script.

Other files are not listed: a program writes what it likes. So this must not be used to decide about a call. It is for
code that runs calls one after another that would otherwise write one file at the same time.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

from iact.core.gate.impact import SCRIPTS
from iact.core.ports import JSON

_FILES: Final[Mapping[str, str]] = {"files.write": "path", "files.edit": "path"}
"""Functions of shipped modules that write one file: the parameter that names it."""
_WORKSPACE: Final = "/workspace"
"""Where a call begins, and what paths are relative to."""


def paths_written(function: str, arguments: Mapping[str, JSON]) -> tuple[str, ...]:
    """The files that a call is known to write, each as an absolute path."""
    if function in _FILES:
        path = arguments.get(_FILES[function])
        return (_absolute(path),) if isinstance(path, str) else ()
    if function not in SCRIPTS:
        return ()

    script_name, language_name = SCRIPTS[function]
    script = arguments.get(script_name)
    language = arguments.get(language_name, "bash")
    if not isinstance(script, str) or language != "bash":
        return ()

    from iact.core.gate.shell import judge_script  # loads a parser that sessions without a shell don't need

    return tuple(sorted({_absolute(path) for path in judge_script(script).written}))


def _absolute(path: str) -> str:
    normal = posixpath.normpath(posixpath.join(_WORKSPACE, path))
    return normal[1:] if normal.startswith("//") else normal
