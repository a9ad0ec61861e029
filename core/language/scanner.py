"""Finds fenced blocks in a reply while it streams in, and where the reply must be cut.

A reply may go on after an action block, with sentences, ordinary blocks and more actions: all of it counts. It is cut
only before a line that begins as only the system writes (`labels.IMITATION`: a result, a message), since from there on
the model invents what it has not been told.

The idea: a line can open or close a fence only if it starts, after at most three spaces, with three backticks or
tildes. Everything else is skipped by one compiled search, so a scanner costs nearly nothing; a chunk without a line
ending costs one list append. Only where a candidate could be inside a list item or an HTML block (an indented fence
below a list marker, or a "<" at the start of a line) are the lines before it examined one by one (`containers.py`),
each of them once.

What a fenced block is follows CommonMark 0.31.2 section 4.5, with one addition: inside an *action block*, a fence with
an info string that could close the enclosing level opens a nested one, and the next bare fence of that kind closes it
(models quote code in scripts that way). An info string is returned as written: the argument grammar has its own
escapes.

Positions are offsets into `text`, in which line endings are normalized to "\\n".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from iact.core.language.containers import BULLET, Containers
from iact.core.language.labels import IMITATION

_FIRST: Final = re.compile(r" {0,3}(?:```|~~~)")
_LATER: Final = re.compile(r"\n {0,3}(?:```|~~~)")
_FENCE: Final = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)", re.DOTALL)
_HTML: Final = re.compile(r"^ {0,3}<", re.MULTILINE)
_CONTAINER: Final = re.compile(rf"^ {{0,3}}(?:<|{BULLET})", re.MULTILINE)
_BLANKS: Final = " \t"

IsAction = Callable[[str], bool]
"""Whether the first word of an info string names an action (or calls for feedback about one)."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A top-level fenced block begins. `start`: the offset of its line. `action`: whether it names an action."""

    start: int
    info: str
    action: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level fenced block is complete: `text[start:end]` with both fence lines, `body` between them.

    `closed` is False if the text ended before its closing fence.
    """

    start: int
    end: int
    info: str
    body: str
    action: bool
    closed: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """A text follows an action block that only the system writes: the reply counts only up to `at`, where that text
    begins, and generation can stop.
    """

    at: int


ScanEvent = Opened | Block | Cut


class Scanner:
    """`feed` chunks of any size, then `end`. After a `Cut`, all further text is ignored.

    The concatenated events do not depend on how the text was split into chunks.
    """

    def __init__(self, is_action: IsAction) -> None:
        self._is_action = is_action
        self._settled: list[str] = []  # whole lines, in order
        self._line: list[str] = []  # pieces of the line that has not ended yet
        self._at = 0  # offset of that line
        self._carry = ""  # a "\r" that a "\n" may follow
        self._simple = True  # a chunk without a line ending only needs to be kept
        self._open: Opened | None = None
        self._levels: list[str] = []  # the open fences, outermost first
        self._indent = 0
        self._body: list[str] = []
        self._outside: list[str] = []  # lines since the last block that `_containers` has not read
        self._containers = Containers()
        self._acted = False  # an action block is complete, so a result can be invented
        self._blocks: list[Block] = []
        self.cut: int | None = None

    @property
    def inside(self) -> bool:
        """Whether a fenced block is open after the lines so far."""
        return self._open is not None

    @property
    def text(self) -> str:
        """All text so far, with normalized line endings. Costs its length; `feed` does not."""
        return "".join(self._settled) + "".join(self._line)

    @property
    def kept(self) -> str:
        """The text that counts: all of it, or what stands before the cut."""
        text = self.text
        return (text if self.cut is None else text[: self.cut]).rstrip()

    def result(self) -> Scan:
        """What `scan` finds in the text that counts, without reading it again. Call it only at the end."""
        kept = self.kept
        if self._blocks and self._blocks[-1].end > len(kept):
            return scan(kept, self._is_action)  # blanks at the end, which don't count, were in a block
        return Scan(tuple(self._blocks), kept)

    def feed(self, chunk: str) -> list[ScanEvent]:
        """Take the next piece. Returns the events that are now certain."""
        if self.cut is not None:
            return []
        if self._simple and "\n" not in chunk and "\r" not in chunk:
            self._line.append(chunk)
            return []
        events: list[ScanEvent] = []
        self._take(self._normalise(chunk), events)
        self._simple = not self._carry
        return events

    def end(self) -> list[ScanEvent]:
        """Finish the text: judge the last line, and close a block that is still open."""
        events: list[ScanEvent] = []
        if self._carry:
            self._carry = ""
            self._line.append("\n")
        if self.cut is None:
            line = "".join(self._line)
            if line:
                self._settled.append(line)
                self._line = []
                self._judge(line, self._at, events)
                self._at += len(line)
            if self._open is not None and self.cut is None:
                self._close(self._at, events, closed=False)
        return events

    def _normalise(self, chunk: str) -> str:
        if self._carry or "\r" in chunk:
            chunk = self._carry + chunk
            self._carry = ""
            if chunk.endswith("\r"):
                self._carry, chunk = "\r", chunk[:-1]
            return chunk.replace("\r\n", "\n").replace("\r", "\n")
        return chunk

    def _take(self, chunk: str, events: list[ScanEvent]) -> None:
        """Judge every line that `chunk` completes."""
        self._line.append(chunk)
        if "\n" not in chunk:
            return

        lines = "".join(self._line)
        split = lines.rindex("\n") + 1
        rest = lines[split:]
        self._line = [rest] if rest else []
        lines = lines[:split]
        self._settled.append(lines)
        start, self._at = self._at, self._at + split
        self._judge(lines, start, events)

    def _judge(self, lines: str, start: int, events: list[ScanEvent]) -> None:
        """Read whole lines; `start` is the offset of the first."""
        position = 0
        while position < len(lines) and self.cut is None:
            found = position
            if not _FIRST.match(lines, position):
                later = _LATER.search(lines, position)
                found = later.start() + 1 if later is not None else len(lines)
                self._plain(lines[position:found], start + position, events)
                if later is None or self.cut is not None:
                    return
            line_end = lines.find("\n", found)
            line_end = line_end if line_end >= 0 else len(lines)
            self._candidate(lines[found:line_end], start + found, events)
            position = line_end + 1

    def _plain(self, lines: str, start: int, events: list[ScanEvent]) -> None:
        """Handle lines that can neither open nor close a fence; `start` is the offset of the first."""
        if self._open is not None:
            self._body.append(lines)
            return

        imitation = IMITATION.search(lines) if self._acted else None
        if imitation is not None:
            self.cut = start + imitation.start()
            events.append(Cut(self.cut))
            return

        self._outside.append(lines)

    def _candidate(self, line: str, start: int, events: list[ScanEvent]) -> None:
        """Handle one line, without its end, that starts like a fence."""
        match = _FENCE.fullmatch(line)
        assert match is not None
        blanks, mark, info = match.groups()
        indent = len(blanks)
        info = info.strip(_BLANKS)
        if self._open is not None:
            if not self._inside(mark, info, start + len(line), events):
                self._body.append(line + "\n")
            return
        opens = self._opens(indent, mark, info)
        words = info.split(None, 1)
        action = opens and bool(words) and self._is_action(words[0])
        if opens:
            self._open = Opened(start, info, action)
            self._levels, self._indent = [mark], indent
            self._body, self._outside = [], []
            events.append(self._open)
        else:
            self._outside.append(line + "\n")

    def _opens(self, indent: int, mark: str, info: str) -> bool:
        """Whether a candidate line opens a top-level fence."""
        if mark[0] == "`" and "`" in info:
            return False
        outside = "".join(self._outside)
        if not self._containers.plain or (_CONTAINER if indent else _HTML).search(outside):
            self._containers.read(outside)
            self._outside = []
            return self._containers.takes_fence(indent)
        return True

    def _inside(self, mark: str, info: str, end: int, events: list[ScanEvent]) -> bool:
        """Handle a fence line within the open block. Returns whether it ended the block."""
        assert self._open is not None
        if not mark.startswith(self._levels[-1]):
            return False
        if not info:
            self._levels.pop()
            if not self._levels:
                self._close(end, events, closed=True)
                return True
        elif self._open.action and not (mark[0] == "`" and "`" in info):
            self._levels.append(mark)
        return False

    def _close(self, end: int, events: list[ScanEvent], *, closed: bool) -> None:
        assert self._open is not None
        opened, self._open = self._open, None
        body = _outdent("".join(self._body).removesuffix("\n"), self._indent)
        self._body = []
        self._blocks.append(Block(opened.start, end, opened.info, body, opened.action, closed))
        events.append(self._blocks[-1])
        self._containers, self._outside = Containers(), []
        self._acted = self._acted or opened.action


def _outdent(body: str, columns: int) -> str:
    """Remove up to `columns` columns of indentation from each line (CommonMark 4.5); tabs stop every four (2.2)."""
    if not columns:
        return body
    if "\t" in body:
        body = re.sub(
            rf"^ {{0,{columns - 1}}}\t", lambda match: match.group().expandtabs(4), body, flags=re.MULTILINE
        )
    return re.sub(rf"^ {{1,{columns}}}", "", body, flags=re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Scan:
    """A whole reply: its top-level fenced blocks in order, and the text that counts."""

    blocks: tuple[Block, ...]
    kept: str


def scan(text: str, is_action: IsAction) -> Scan:
    """Scan a complete text at once."""
    scanner = Scanner(is_action)
    events = scanner.feed(text) + scanner.end()
    return Scan(tuple(event for event in events if isinstance(event, Block)), scanner.kept)
