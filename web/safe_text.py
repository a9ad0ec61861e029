"""Makes text from untrusted sources safe and honest to read, in the page and in exports.

Terminal sequences are removed, and characters that `core.characters` calls deceptive are shown by name, because they
can make text look different from what it is (reordered lines of code, hidden instructions).
"""

from __future__ import annotations

import re

from iact.core.characters import named, without_sequences


def without_escapes(text: str) -> str:
    """`text` without terminal sequences; a carriage return overwrites its line, as on a terminal."""
    text = without_sequences(text)
    if "\r" in text:
        text = re.sub(r"^.*\r(?=[^\n])", "", text.replace("\r\n", "\n"), flags=re.MULTILINE).replace("\r", "")
    return text


def visible(text: str) -> str:
    """`text` with every deceptive character replaced by a visible name; newlines and tabs stay."""
    return named(text)


def exact(text: str) -> str:
    """`text` for a person who decides by it: nothing is removed, and unusual blanks and joiners have names, too."""
    return named(text, every=True)


def shortened(text: str, *, head: int, tail: int) -> tuple[str, int, str]:
    """The first `head` characters, how many were left out, and the last `tail`; nothing is cut if it fits."""
    if len(text) <= head + tail:
        return text, 0, ""
    return text[:head], len(text) - head - tail, text[len(text) - tail :]
