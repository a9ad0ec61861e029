"""The one place where a text is cut for a model: at lines, with true numbers, and with how to read the rest.

A model reads a text whole if there is room for it. Otherwise it reads the head and the tail, and between them one line:

    [… lines 46–977 of 1,000 are left out: `SHOW run_1 lines=46-145` …]

Lines and characters are counted in the text as a model reads it (`readable`), from 1, in the notice and by SHOW alike. So
the head, what SHOW gives for the lines that the notice names, and the tail are the whole text. A text whose lines are too
long to be cut there is cut between characters, and the notice then counts characters.

A text is cut once. Until it is known how much room there is beside other texts, it stays whole in a `Passage`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from iact.core.language import labels
from iact.core.language.variables import Value
from iact.core.recent import Recent

AT_ONCE: Final = 6_000
"""The characters that a notice proposes to read at once, and the least that an agent reads of a result."""

_LINES_AT_ONCE: Final = 100
"""The lines that a notice proposes to read at once."""

_PIECE: Final = 65_536
"""The characters of a piece in which lines are counted."""

_OPEN: Final = 1 << 62
"""The end of a range that goes to the end, and room for a text of any length."""

_RANGE: Final = re.compile(r"\s*([0-9]{1,18})?\s*([-–:]|\.\.)?\s*([0-9]{1,18})?\s*")


READ_AT_ONCE: Final = 262_144
"""The most bytes of a value that are read where everything else waits for it: a few milliseconds."""

_KEPT: Final = 20_000_000
"""The characters of long texts that are kept once they were read."""

_TEXTS: Final = Recent[str, str](_KEPT)
"""Long texts by the digests of their values."""

_READ: Final = Recent[str, str](_KEPT)
"""The same as models read them. The session reads a long text in a thread first, and the fold finds it here."""


def whole(value: Value) -> str:
    """The text of a value as it is."""
    if is_read_here(value):
        return value.text()
    return _TEXTS.get(value.sha256, value.size, value.text)


def readable(value: Value) -> str:
    """The text of a value as models read it: safe to show, and without the end of its last line."""
    if is_read_here(value):
        return _readable(value)
    return _READ.get(value.sha256, value.size, partial(_readable, value))


def is_read_here(value: Value) -> bool:
    """Whether a value is read where it is asked for. What may be lost is no text of its digest: it is read every time, so
    that what another session has read decides nothing."""
    return value.size <= READ_AT_ONCE or value.may_be_lost


def _readable(value: Value) -> str:
    return labels.clean(whole(value)).removesuffix("\n")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `first` to `last`, both counted from 1 and both included."""

    first: int
    """The first number."""
    last: int
    """The last one."""

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        if self.first == self.last:
            return f"{self.first}"
        return f"{self.first}-{self.last}"

    def up_to(self, count: int) -> Range | None:
        """The part of the range that exists if there are `count`; None if there is none."""
        if self.first > count:
            return None
        return Range(self.first, min(self.last, count))

    def told(self) -> str:
        """The range for a reader: "46–977", or "46" if it is one number."""
        if self.first == self.last:
            return f"{self.first:,}"
        return f"{self.first:,}–{self.last:,}"


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a text that a SHOW asks for."""

    text: str
    """What was selected."""
    title: str
    """The range, for the label of the answer: " lines=3-9 of 1,000". Empty for the whole text."""
    chosen: str = ""
    """The argument for the selected lines, if characters within them are counted: "lines=3-9 "."""
    first: int = 1
    """The number of the first selected line or, if characters were selected, of the first character."""
    of: int = 0
    """How many lines the whole text has or, if characters were selected, how many characters the lines have."""
    by_lines: bool = True
    """Whether whole lines were selected."""
    beyond: str = ""
    """A sentence, if the range goes on behind the end of the text."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with its label, whole for as long as it is not known how much of it can be shown."""

    label: str
    """What stands before the text: where it comes from."""
    text: str
    """The whole text, as a model reads it."""
    room: int
    """The most characters of it that are shown."""
    variable: str = ""
    """The name under which an agent can read all of it; empty if there is none."""
    after: str = ""
    """What follows the text."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Contents of variables, by name, that stand between the label and the text."""
    sources: frozenset[str] = frozenset()
    """The labels of the values that the label shows (`core.gate.provenance`)."""
    asked: Selection | None = None
    """The part of the variable that the text is, if an agent asked for it: it is then read from its beginning."""

    def within(self, room: int) -> str:
        """The passage, with at most about `room` characters of its text and of each value."""
        most = min(room, self.room)
        if self.asked is not None:
            shown = beginning(self.asked, most, self.variable)
        else:
            shown = excerpt(self.text, most, self.variable)

        parts = [self.label]
        for name, value in self.values.items():
            parts.append(f"${name}:\n{labels.fenced(excerpt(value, room, name))}")
        if self.values:
            parts.append("The message:")
        return "\n".join([*parts, labels.fenced(shown)]) + self.after

    def __str__(self) -> str:
        return self.within(_OPEN)


Feedback: TypeAlias = str | Passage
"""What an agent reads next: a sentence of ours, or a text with its label."""


def as_read(part: Feedback) -> Feedback:
    """The same text for an agent whose labels already name its sources."""
    if isinstance(part, Passage) and part.sources:
        return replace(part, sources=frozenset())
    return part


def excerpt(text: str, room: int, variable: str = "") -> str:
    """Show at most about `room` characters of a text: head, a line about what is left out, tail.

    The text stays whole if the cut would save less than the notice costs. `variable`: the name by which an agent reads the
    rest; without one, the notice says only what is left out.
    """
    if len(text) <= room:
        return text

    # The ends of lines are looked up and counted: a text of millions of lines is not taken apart for each cut.
    whole = Selection(text, "", of=text.count("\n") + 1)
    head_end = text.rfind("\n", 0, room * 2 // 3 + 1)
    tail_begin = text.find("\n", len(text) - room // 3 - 1) + 1
    head_lines = text.count("\n", 0, head_end) + 1
    tail_lines = text.count("\n", tail_begin) + 1
    has_both = head_end >= 0 and tail_begin > 0
    shown_in_lines = head_end - (head_lines - 1) + len(text) - tail_begin - (tail_lines - 1)

    # A line so long that half of the room would be lost is cut within.
    if has_both and shown_in_lines * 2 >= room:
        proposed = text[head_end + 1 : min(tail_begin - 1, head_end + AT_ONCE + 3)]
        behind = proposed.split("\n", _LINES_AT_ONCE)[:_LINES_AT_ONCE]
        notice = _lines_left_out(whole, behind, Range(head_lines + 1, whole.of - tail_lines), variable)
        parts = [text[:head_end], notice, text[tail_begin:]]
    else:
        begin = room * 2 // 3
        end = len(text) - room // 3
        notice = _characters_left_out(whole, Range(begin + 1, end), len(text), variable)
        parts = [text[:begin], notice, text[end:]]

    cut = "\n".join(parts)
    ends_around_notice = 2
    saved = len(text) - len(cut) + ends_around_notice
    return cut if saved > len(notice) else text


def select(text: str, lines: str = "", characters: str = "") -> Selection | str:
    """Select lines of a text ("3-9"), characters of it, or characters of its selected lines.

    Returns what is wrong, as the end of a sentence, if a range can't be read, or if nothing stands where it points.
    """
    count = text.count("\n") + 1
    if not lines:
        whole = Selection(text, "", of=count)
        return _characters_of(whole, characters, "it has") if characters else whole

    wanted = _range(lines, "lines")
    if isinstance(wanted, str):
        return wanted
    taken = wanted.up_to(count)
    if taken is None:
        return f"it has {count:,} lines, so there is nothing at lines={lines.strip()}"

    # The ends of lines are looked up: a text of millions of lines is not taken apart.
    begin = _begin_of_line(text, taken.first)
    end = len(text)
    if taken.last < count:
        end = _begin_of_line(text, taken.last + 1) - 1
    selected = Selection(
        text[begin:end],
        title=f" lines={taken} of {count:,}",
        chosen=f"lines={taken} ",
        first=taken.first,
        of=count,
        beyond=_beyond(wanted, count, "lines"),
    )
    return _characters_of(selected, characters, "its lines have") if characters else selected


def _characters_of(selected: Selection, characters: str, they_have: str) -> Selection | str:
    """Select characters of a selection. Returns what is wrong, as `select` does, in a sentence with `they_have`."""
    wanted = _range(characters, "chars")
    if isinstance(wanted, str):
        return wanted

    count = len(selected.text)
    taken = wanted.up_to(count)
    if taken is None:
        return f"{they_have} {count:,} characters, so there is nothing at chars={characters.strip()}"

    return Selection(
        selected.text[taken.first - 1 : taken.last],
        title=f"{selected.title} chars={taken} of {count:,}",
        chosen=selected.chosen,
        first=taken.first,
        of=count,
        by_lines=False,
        beyond=selected.beyond or _beyond(wanted, count, "characters"),
    )


def _begin_of_line(text: str, number: int) -> int:
    """Where a line begins, counted from 1. A text of millions of lines is counted in pieces, and not taken apart."""
    begin, passed = 0, 0
    while passed + (in_piece := text.count("\n", begin, begin + _PIECE)) < number - 1:
        begin += _PIECE
        passed += in_piece

    for _ in range(number - 1 - passed):
        begin = text.index("\n", begin) + 1
    return begin


def beginning(selected: Selection, room: int, variable: str) -> str:
    """Show the beginning of what a SHOW selected, as far as there is room, and say how to read on."""
    text = selected.text
    if len(text) <= room:
        return text

    lines = text.split("\n")
    head = _lines_within(lines, room)
    last = selected.first + len(lines) - 1
    shown = sum(map(len, lines[:head]))

    if selected.by_lines and head and shown * 2 >= room:
        left = Range(selected.first + head, last)
        notice = _lines_left_out(selected, lines[head : head + _LINES_AT_ONCE], left, variable)
        return "\n".join([*lines[:head], notice])

    # Characters are counted from where the selection's are: of these lines, or of what they were selected from.
    begin = 1
    count = len(text)
    if not selected.by_lines:
        begin = selected.first
        count = selected.of
    left = Range(begin + room, begin + len(text) - 1)
    notice = _characters_left_out(selected, left, count, variable)
    return f"{text[:room]}\n{notice}"


def _lines_within(lines: list[str], room: int) -> int:
    """How many lines, from the first on, have room together with the ends of lines between them."""
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < -1:
            return count
    return len(lines)


def _left_out(noun: str, left: Range, of: str) -> str:
    """Which lines or characters of how many are left out."""
    if len(left) == 1:
        return f"{noun} {left.told()} of {of} is left out"
    return f"{noun}s {left.told()} of {of} are left out"


def _lines_left_out(selected: Selection, behind: list[str], left: Range, variable: str) -> str:
    """The notice about lines. `behind`: the first of the lines that are left out."""
    what = _left_out("line", left, f"{selected.of:,}")
    if not variable:
        return f"[… {what} …]"

    next_lines = Range(left.first, left.first + max(1, _lines_within(behind, AT_ONCE)) - 1)
    arguments = f"lines={next_lines}"
    if len(behind[0]) > AT_ONCE:
        arguments = f"lines={left.first} chars={Range(1, AT_ONCE)}"
    return f"[… {what}: `SHOW {variable} {arguments}` …]"


def _characters_left_out(selected: Selection, left: Range, of: int, variable: str) -> str:
    """The notice about characters. `of`: how many there are where they are counted."""
    where = f" of {selected.chosen.strip()}" if selected.chosen else ""
    what = _left_out("character", left, f"{of:,}{where}")
    if not variable:
        return f"[… {what} …]"

    next_characters = Range(left.first, min(left.last, left.first + AT_ONCE - 1))
    return f"[… {what}: `SHOW {variable} {selected.chosen}chars={next_characters}` …]"


def _range(wanted: str, parameter: str) -> Range | str:
    """Read a range: "3-9", "3-" and "-9" (to either end), or "3". Returns what is wrong, if it is none."""
    match = _RANGE.fullmatch(wanted)
    if match is None or (match[1] is None and match[3] is None):
        return f"{labels.inline(wanted, 60)!r} is no range; write {parameter}=3-9"

    first = int(match[1]) if match[1] else 1
    if match[3]:
        last = int(match[3])
    elif match[2]:
        last = _OPEN
    else:
        last = first

    if not 1 <= first <= last:
        return f"{labels.inline(wanted, 60)!r} is no range; write {parameter}=3-9, counted from 1"
    return Range(first, last)


def _beyond(wanted: Range, count: int, what: str) -> str:
    """A sentence, if somebody asked for more than there is; not for "to the end"."""
    if wanted.last <= count or wanted.last == _OPEN:
        return ""
    return f"It has {count:,} {what}; nothing follows."
