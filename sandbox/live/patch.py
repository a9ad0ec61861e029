"""One change for a person to read: a unified diff, or a sentence where a diff shows nothing.

The content may come from an attacker, by way of the agent. So nothing in it may move a cursor, or hide or reorder text:
such characters are escaped. The patch shows what `apply` would write, or says that it does not.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from iact.core import path_names
from iact.core.ports import FileState
from iact.sandbox.live import lines, steps
from iact.sandbox.live.base import stamp_of
from iact.sandbox.live.compare import Found

LARGEST: Final = 1 << 20
"""The most bytes of a file that is shown line by line."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn"})
_NO_END: Final = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Patch:
    """Shows changes of one overlay."""

    upper: int
    """A descriptor of the upper layer."""
    lower: int
    """A descriptor of the user's directory."""
    most: int
    """The most characters of a text."""

    def of(self, found: Found) -> str:
        """The change as text, every line terminated."""
        path = visible(path_names.encode(found.path))
        head = [
            f"--- a/{path}" if found.was is not None else "--- /dev/null",
            f"+++ b/{path}" if found.now is not None else "+++ /dev/null",
            *_about(found.was, found.now),
        ]
        return _cut((*head, *self._content(found)), self.most)

    def texts(self, found: Found) -> tuple[str, str] | None:
        """The texts before and after, with what is invisible escaped; None where they don't show the whole change."""
        was = found.was
        now = found.now
        states = [state for state in (was, now) if state is not None]
        if any(state.type != "file" or state.size > LARGEST for state in states):
            return None
        if was is not None and now is not None and was.mode != now.mode:
            return None

        before = _read(self.lower, found, found.below) if was else b""
        after = _read(self.upper, found, found.above) if now else b""
        if before is None or after is None:
            return None

        old = text_of(before)
        new = text_of(after)
        if old is None or new is None:
            return None
        return visible(old), visible(new)

    def _content(self, found: Found) -> Iterator[str]:
        """The lines of a difference between files, or a sentence where it can't be shown."""
        was = found.was if found.was is not None and found.was.type == "file" else None
        now = found.now if found.now is not None and found.now.type == "file" else None
        if was is None and now is None:
            return
        if was and now and was.sha256 == now.sha256 != "":
            return

        sizes = [f"{state.size:,} bytes {when}" for state, when in ((was, "before"), (now, "after")) if state]
        if max(state.size for state in (was, now) if state) > LARGEST:
            yield f"Too large to show: {', '.join(sizes)}."
            return

        before = _read(self.lower, found, found.below) if was else b""
        after = _read(self.upper, found, found.above) if now else b""
        if before is None or after is None:
            yield "It changed again after it was read for review."
            return

        old = text_of(before)
        new = text_of(after)
        if old is None or new is None:
            yield f"Binary: {', '.join(sizes)}."
            return
        for line in lines.unified(lines_of(old), lines_of(new)):
            yield from visible(line).split("\n")


def visible(text: str) -> str:
    """Escape every character that is invisible, or that changes how others are displayed."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\t\n" or unicodedata.category(character) not in _UNSEEN
        else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"


def _about(was: FileState | None, now: FileState | None) -> Iterator[str]:
    """Types, modes and link targets, where relevant."""
    if was is None and now is not None:
        yield f"new {_kind(now)}, mode {now.mode:o}"
    elif now is None and was is not None:
        yield f"deleted {_kind(was)}"
    elif was is not None and now is not None:
        if was.type != now.type:
            yield f"was a {_kind(was)}, is a {_kind(now)}"
        if was.mode != now.mode:
            yield f"mode {was.mode:o} before, {now.mode:o} after"
    for sign, state in (("-", was), ("+", now)):
        if state is not None and state.type == "link":
            yield f"{sign}link to {visible(path_names.encode(state.target))}"


def _kind(state: FileState) -> str:
    return state.target if state.type == "other" else state.type


def _read(top: int, found: Found, status: os.stat_result | None) -> bytes | None:
    """The content, or None if it changed since it was compared."""
    with suppress(OSError), steps.folder(top, found.parts[:-1]) as at:
        opened = steps.read(at, found.parts[-1])
        with os.fdopen(opened, "rb") as stream:
            if status is not None and stamp_of(os.fstat(opened)) == stamp_of(status):
                return stream.read(LARGEST)
    return None


def text_of(content: bytes) -> str | None:
    """The content as text, or None if it is not text."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Split at "\\n" only. A last line without one is marked."""
    all_lines = text.split("\n")
    if all_lines[-1]:
        all_lines[-1] = f"{all_lines[-1]}\n{_NO_END}"
    else:
        all_lines.pop()
    return all_lines


def _cut(all_lines: Iterable[str], most: int) -> str:
    shown: list[str] = []
    length = 0
    left_out = 0
    for line in all_lines:
        length += len(line) + 1
        if length > most:
            left_out += 1
        else:
            shown.append(line)

    if left_out:
        shown.append(f"… {left_out:,} more lines are not shown.")
    return "".join(f"{line}\n" for line in shown)
