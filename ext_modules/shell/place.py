"""What lasts for an agent from script to script: its folder, and the variables that it exported.

It travels with the calls (`Call.carried`), since each call may run in another instance. Some of these can only
look, and what comes out of one of them must not become code in one that can write: so variables are carried as
names and values, read strictly from what bash printed, and quoted anew for the next script.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 248 * 1024
"""Bytes of all exported variables that last."""

_NAME: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,255}")
_DOUBLE: Final = rb'"(?:[^"\\]++|\\.)*+"'
_SINGLE: Final = rb"\$'(?:[^'\\]++|\\.)*+'"
_DECLARED: Final = re.compile(
    rb"declare -[A-Za-z]++ (?P<name>[A-Za-z_][A-Za-z0-9_]*+)"
    rb"(?:=(?:(?P<double>" + _DOUBLE + rb")|(?P<single>" + _SINGLE + rb")"
    rb"|\((?:[^\"'()\\$]++|" + _DOUBLE + rb"|" + _SINGLE + rb")*+\)))?+\n",
    re.DOTALL,
)
"""One line of bash's `export -p`; an array can't be exported, so its value is not looked at."""
_CODE: Final = frozenset({b"BASH_ENV", b"ENV", b"SHELLOPTS", b"BASHOPTS", b"PS4", b"PROMPT_COMMAND"})
"""Variables that bash takes for code, or by which it runs some."""
_ESCAPED: Final = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"v": b"\v",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent is, and what it exported. `cwd`: an absolute path."""

    cwd: str
    exports: Mapping[bytes, bytes]

    @property
    def shown(self) -> str:
        """The folder as text for people and agents."""
        return os.fsencode(self.cwd).decode("utf-8", "replace")

    def carried(self) -> bytes:
        """The same as bytes that travel."""
        return b"\0".join([os.fsencode(self.cwd), *(b"%s=%s" % item for item in self.exports.items())])

    def script(self) -> bytes:
        """The exports as a script that sets them, and does nothing else."""
        return b"".join(b"export %s=%s\n" % (name, _quoted(value)) for name, value in self.exports.items())


def arrived(carried: bytes) -> Place | None:
    """What was carried; None if nothing was, or nothing that this could be."""
    cwd, *variables = carried.split(b"\0")
    if not cwd.startswith(b"/"):
        return None
    pairs = (one.partition(b"=") for one in variables)
    return Place(os.fsdecode(cwd), {name: value for name, _, value in pairs if _lasts(name)})


def left(said: bytes, before: Place) -> Place:
    """The place after a script that said where it ended and printed its exports; `before`: that before it."""
    cwd, newline, printed = said.partition(b"\n")
    directory = os.fsdecode(cwd)
    if not newline or not directory.startswith("/") or not os.path.isdir(directory):
        return before
    exports = exported(printed)
    return Place(directory, before.exports if exports is None else exports)


def exported(printed: bytes) -> dict[bytes, bytes] | None:
    """The variables in what `export -p` printed; None if that is something else, or they are too large to last."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(printed):
        match = _DECLARED.match(printed, at)
        if match is None:
            return None
        at = match.end()
        name, double, single = match.group("name", "double", "single")
        if _lasts(name) and double is not None:
            found[name] = re.sub(rb"\\(.)", rb"\1", double[1:-1], flags=re.DOTALL)
        elif _lasts(name) and single is not None:
            found[name] = _ESCAPED.sub(_unescaped, single[2:-1])
    size = sum(len(name) + len(value) + 2 for name, value in found.items())
    return found if size <= LARGEST else None


def _lasts(name: bytes) -> bool:
    """Whether a variable of this name is taken over: none that bash runs, and none of ours."""
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
