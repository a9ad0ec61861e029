"""Makes text from untrusted places harmless and honest to look at.

Terminal escape sequences are taken out. Control characters, bidirectional controls and invisible
characters are replaced by something that can be seen, because they can make text read otherwise
than it is (reordered lines of code, hidden instructions). The zero-width joiners stay: several
scripts and emoji need them, and they hide nothing.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = re.compile(
    r"""
    (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]                     # CSI … final byte
    | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) [^\x07\x1b\x9c]* (?:\x07|\x1b\\|\x9c)   # OSC, DCS, … string
    | \x1b [ -/]* [0-~]                                      # two-character sequences
    """,
    re.VERBOSE,
)
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def without_escapes(text: str) -> str:
    """`text` without terminal escape sequences; a carriage return overwrites its line, as on a terminal."""
    if "\x1b" in text or "\x9b" in text or "\x9d" in text or "\x90" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = re.sub(r"^.*\r(?=[^\n])", "", text.replace("\r\n", "\n"), flags=re.MULTILINE).replace("\r", "")
    return text


def visible(text: str) -> str:
    """`text` with every hidden character replaced by a visible name; newlines and tabs stay."""
    return _HIDDEN.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"


def shortened(text: str, *, head: int, tail: int) -> tuple[str, int, str]:
    """The first `head` characters, how many were left out, and the last `tail`; nothing is cut if it fits."""
    if len(text) <= head + tail:
        return text, 0, ""
    return text[:head], len(text) - head - tail, text[len(text) - tail :]
