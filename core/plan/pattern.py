"""Regular expressions that a model may write, matched in time linear in the text, whatever they contain.

A contract's pattern comes from a plan, and the text from a tool. With Python's backtracking `re`, either could hang the
trusted core forever. RE2 does not backtrack: it refuses what needs backtracking (back-references, look-around), and the
memory of an automaton is bounded. `^` and `$` match at lines. RE2's classes `\\d`, `\\w` and `\\s` know ASCII only, so
they are written out here for every alphabet, as in Python.
"""

from __future__ import annotations

from typing import Final

import re2

MAX_LENGTH: Final = 1000
MAX_TEXT: Final = 1 << 18
_MEMORY: Final = 8 << 20
"""The most bytes for one pattern; beyond them RE2 is slower, but still linear."""

_MEMBERS: Final = {"d": r"\p{Nd}", "w": r"\p{L}\p{N}_", "s": r"\s\v\x1c-\x1f\x{85}\p{Z}"}


class Pattern:
    """A compiled pattern.

    Raises:
        ValueError: it is malformed, too large, or needs backtracking; says which.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_LENGTH:
            raise ValueError(f"the pattern has {len(source)} characters, at most {MAX_LENGTH} are allowed")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(f"(?m){_for_every_alphabet(_encodable(source))}", options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(
                f"the pattern {source[:60]!r} is not usable: {said.replace('(?m)', '')} (back-references and look-around "
                "are not supported)"
            ) from error

    def found_in(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the first 262,144 characters of `text`."""
        return self._compiled.search(_encodable(text[:MAX_TEXT])) is not None


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which can't be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _for_every_alphabet(source: str) -> str:
    r"""Return the pattern with `\d`, `\w`, `\s` written out. Negated classes inside brackets are left to RE2."""
    parts: list[str] = []
    at, inside = 0, False
    while at < len(source):
        char = source[at]
        if char == "\\" and at + 1 < len(source):
            name = source[at + 1]
            members = _MEMBERS.get(name.lower())
            if members is None or (inside and name.isupper()):
                parts.append(source[at : at + 2])
            elif inside:
                parts.append(members)
            else:
                parts.append(f"[{'^' if name.isupper() else ''}{members}]")
            at += 2
            continue
        if char == "[" and not inside:
            inside = True
            # A closing bracket in the first position is a member.
            head = source[at + 1 : at + 3]
            lead = 1 + head.startswith("^")
            lead += source[at + lead : at + lead + 1] == "]"
            parts.append(source[at : at + lead])
            at += lead
            continue
        inside = inside and char != "]"
        parts.append(char)
        at += 1
    return "".join(parts)
