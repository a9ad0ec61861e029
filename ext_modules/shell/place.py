"""The state that an agent keeps from script to script: its folder and its exported variables.

It travels with the calls (`Call.carried`), since each call may run in another instance. Some instances can only read,
and their output must not become code in an instance that can write. So variables are carried as names and values,
parsed strictly from bash's output, and quoted again for the next script.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 248 * 1024
"""The most bytes of exported variables that are kept."""

_NAME: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,255}")
_DOUBLE: Final = rb'"(?:[^"\\]++|\\.)*+"'
_SINGLE: Final = rb"\$'(?:[^'\\]++|\\.)*+'"
_DECLARED: Final = re.compile(
    rb"declare -[A-Za-z]++ (?P<name>[A-Za-z_][A-Za-z0-9_]*+)"
    rb"(?:=(?:(?P<double>" + _DOUBLE + rb")|(?P<single>" + _SINGLE + rb")"
    rb"|\((?:[^\"'()\\$]++|" + _DOUBLE + rb"|" + _SINGLE + rb")*+\)))?+\n",
    re.DOTALL,
)
"""One line of bash's `export -p`. An array can't be exported, so its value is ignored."""
_CODE: Final = frozenset({b"BASH_ENV", b"ENV", b"SHELLOPTS", b"BASHOPTS", b"PS4", b"PROMPT_COMMAND"})
"""Variables that bash treats as code, or that make it run code."""
_ESCAPED: Final = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"v": b"\v",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """An agent's folder and its exports."""

    cwd: str
    """An absolute path."""
    exports: Mapping[bytes, bytes]
    """Its exported variables."""

    @property
    def shown(self) -> str:
        """The folder as text for people and agents."""
        return os.fsencode(self.cwd).decode("utf-8", "replace")

    def carried(self) -> bytes:
        """The place as bytes to carry."""
        return b"\0".join([os.fsencode(self.cwd), *(b"%s=%s" % item for item in self.exports.items())])

    def script(self) -> bytes:
        """The exports as a script that sets them and does nothing else."""
        return b"".join(b"export %s=%s\n" % (name, _quoted(value)) for name, value in self.exports.items())


def arrived(carried: bytes) -> Place | None:
    """Parse what was carried. Returns None if nothing was, or if it is not valid."""
    cwd, *variables = carried.split(b"\0")
    if not cwd.startswith(b"/"):
        return None

    exports: dict[bytes, bytes] = {}
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if _lasts(name):
            exports[name] = value
    return Place(os.fsdecode(cwd), exports)


def left(printed: bytes, before: Place) -> Place:
    """Return the place after a script that printed its final folder and its exports. `before`: the place before it."""
    cwd, newline, variables = printed.partition(b"\n")
    directory = os.fsdecode(cwd)
    if not newline or not directory.startswith("/") or not os.path.isdir(directory):
        return before

    exports = exported(variables)
    if exports is None:
        exports = before.exports
    return Place(directory, exports)


def exported(printed: bytes) -> Mapping[bytes, bytes] | None:
    """Parse the output of `export -p`. Returns None if it is something else, or the variables are too large to keep."""
    variables: dict[bytes, bytes] = {}
    at = 0
    while at < len(printed):
        match = _DECLARED.match(printed, at)
        if match is None:
            return None
        at = match.end()

        name, double, single = match.group("name", "double", "single")
        if not _lasts(name):
            continue
        if double is not None:
            variables[name] = re.sub(rb"\\(.)", rb"\1", double[1:-1], flags=re.DOTALL)
        elif single is not None:
            variables[name] = _ESCAPED.sub(_unescaped, single[2:-1])

    size = sum(len(name) + len(value) + 2 for name, value in variables.items())
    return variables if size <= LARGEST else None


def _lasts(name: bytes) -> bool:
    """Whether a variable of this name is kept. Variables that bash runs as code, and iact's own, are not."""
    return _NAME.fullmatch(name) is not None and name not in _CODE and not name.startswith(b"IACT_")


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape: bytes = match[1]
    if escape[:1] == b"x" and len(escape) > 1:
        return bytes([int(escape[1:], 16)])
    if escape.isdigit():
        return bytes([int(escape, 8) & 0xFF])
    return _ESCAPES.get(escape, escape)


def _quoted(value: bytes) -> bytes:
    return b"'" + value.replace(b"'", b"'\\''") + b"'"
