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
        self.cut: int | None = None
        """Where the text stops to count; None while all of it does."""

        self._settled: list[str] = []
        """Whole lines, in order."""
        self._line: list[str] = []
        """Pieces of the line that has not ended yet."""
        self._at = 0
        """The offset of that line."""
        self._carry = ""
        """A "\\r" that a "\\n" may follow."""
        self._simple = True
        """Whether a chunk without a line ending only needs to be kept."""

        self._open: Opened | None = None
        self._levels: list[str] = []
        """The open fences of that block, outermost first."""
        self._indent = 0
        self._body: list[str] = []
        self._blocks: list[Block] = []

        self._outside: list[str] = []
        """Lines since the last block that `_containers` has not read."""
        self._containers = Containers()
        self._acted = False
        """Whether an action block is complete, so that a result can be invented."""

    @property
    def inside(self) -> bool:
        """Whether a fenced block is open after the lines so far."""
        return self._open is not None

    @property
    def text(self) -> str:
        """All text so far, with normalized line endings. Costs its length; `feed` does not."""
        return "".join([*self._settled, *self._line])

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
        if self.cut is not None:
            return events

        line = "".join(self._line)
        if line:
            self._settled.append(line)
            self._line = []
            self._judge(line, self._at, events)
            self._at += len(line)

        # The last line may have cut the text, and then nothing that is open counts.
        if self._open is not None and self.cut is None:
            self._close(self._at, events, closed=False)
        return events

    def _normalise(self, chunk: str) -> str:
        """The chunk with "\\n" as its only line ending. A "\\r" at its end waits for the next chunk."""
        if not self._carry and "\r" not in chunk:
            return chunk

        chunk = self._carry + chunk
        self._carry = ""
        if chunk.endswith("\r"):
            self._carry = "\r"
            chunk = chunk[:-1]
        return chunk.replace("\r\n", "\n").replace("\r", "\n")

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

        start = self._at
        self._at += split
        self._judge(lines, start, events)

    def _judge(self, lines: str, start: int, events: list[ScanEvent]) -> None:
        """Read whole lines; `start` is the offset of the first."""
        position = 0
        while position < len(lines) and self.cut is None:
            candidate = self._next_candidate(lines, position)
            if candidate > position:
                self._plain(lines[position:candidate], start + position, events)
            if candidate == len(lines) or self.cut is not None:
                return

            line_end = lines.find("\n", candidate)
            if line_end < 0:
                line_end = len(lines)
            self._candidate(lines[candidate:line_end], start + candidate, events)
            position = line_end + 1

    @staticmethod
    def _next_candidate(lines: str, position: int) -> int:
        """Where the next line begins that starts like a fence, from the beginning of a line on; else the end."""
        if _FIRST.match(lines, position):
            return position
        later = _LATER.search(lines, position)
        return len(lines) if later is None else later.start() + 1

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
        if not self._opens(indent, mark, info):
            self._outside.append(line + "\n")
            return

        words = info.split(None, 1)
        action = bool(words) and self._is_action(words[0])
        self._open = Opened(start, info, action)
        self._levels = [mark]
        self._indent = indent
        self._body = []
        self._outside = []
        events.append(self._open)

    def _opens(self, indent: int, mark: str, info: str) -> bool:
        """Whether a candidate line opens a top-level fence."""
        if mark[0] == "`" and "`" in info:
            return False

        # A fence at the margin ends every list, so that only HTML can have taken it in.
        may_contain = _CONTAINER if indent else _HTML
        outside = "".join(self._outside)
        if self._containers.plain and not may_contain.search(outside):
            return True

        self._containers.read(outside)
        self._outside = []
        return self._containers.takes_fence(indent)

    def _inside(self, mark: str, info: str, end: int, events: list[ScanEvent]) -> bool:
        """Handle a fence line within the open block. Returns whether it ended the block."""
        assert self._open is not None
        if not mark.startswith(self._levels[-1]):
            return False

        if info:
            # Models quote code in the bodies of actions; in other blocks CommonMark knows no nesting.
            opens = mark[0] == "~" or "`" not in info
            if self._open.action and opens:
                self._levels.append(mark)
            return False

        self._levels.pop()
        if self._levels:
            return False
        self._close(end, events, closed=True)
        return True

    def _close(self, end: int, events: list[ScanEvent], *, closed: bool) -> None:
        assert self._open is not None
        opened = self._open
        body = _outdent("".join(self._body).removesuffix("\n"), self._indent)
        block = Block(opened.start, end, opened.info, body, opened.action, closed)
        self._blocks.append(block)
        events.append(block)
        self._acted = self._acted or opened.action

        self._open = None
        self._body = []
        self._outside = []
        self._containers = Containers()


def _outdent(body: str, columns: int) -> str:
    """Remove up to `columns` columns of indentation from each line (CommonMark 4.5); tabs stop every four (2.2)."""
    if not columns:
        return body

    if "\t" in body:
        reached_by_a_tab = re.compile(rf"^ {{0,{columns - 1}}}\t", re.MULTILINE)
        body = reached_by_a_tab.sub(lambda match: match.group().expandtabs(4), body)
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
