"""Writes a complete reply in our language: what means an action and is written otherwise becomes an action block.

This happens once, before a reply is recorded. So the journal, the history and everything that reads a reply know only
one language, and a model sees in its own earlier messages how an action is written. What is not understood, or names
nothing that exists, stays as it was written; `core.language.unread` finds it again.

What is rewritten, from the first line to the last:

- a call in another form (`core.language.foreign`), outside of code blocks and quotes;
- a block of code with the name of an action behind its language, or in its first line;
- a code block that holds nothing but calls, if nothing stands behind it: elsewhere it is an example;
- an action block in a list item, which moves to the margin;
- an action that is one line without a fence (`core.language.bare`);
- `ANSWER` alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from iact.core.language import bare, foreign, unread
from iact.core.language.actions import ANSWER, MOST_ACTIONS, ActionSpec, Registry
from iact.core.language.bare import Known
from iact.core.language.containers import BULLET, IN_LIST
from iact.core.language.foreign import ForeignCall, FoundCalls, resolver
from iact.core.language.scanner import Block, Scanner, scan
from iact.core.language.unread import PYTHONS, SHELLS
from iact.core.language.writer import CallWriter, block

_ANSWER_ALONE: Final = re.compile(rf"[\s`*_~]*{ANSWER.name}[\s`*_~.!]*")
_LISTED: Final = re.compile(rf"(?P<before>{IN_LIST})" + r"(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)")
"""A line that opens a fenced block. Behind a fence of backticks, a backtick makes the line inline code."""

_ITEM: Final = re.compile(rf"[ \t]*{BULLET}[ \t]")
_FENCE: Final = re.compile(r"^ {0,3}(?:`{3}|~{3})", re.MULTILINE)
_MARKED: Final = re.compile(rf"{foreign.SIGN}|^{_ITEM.pattern}", re.MULTILINE)
"""What a line holds that can't be passed over: the sign of another form, or the beginning of a list item."""

_MARKED_OR_BARE: Final = re.compile(rf"{_MARKED.pattern}|{bare.ANYWHERE.pattern}", re.MULTILINE)
"""The same, and lines that may be an action without a fence."""

_QUOTES: Final = re.compile(r"^[^\S\n]*>", re.MULTILINE)

_CODE: Final = SHELLS | PYTHONS | {"tool", "tool_code", "tool_call", "action", "act"}
"""Languages of blocks that are meant to be run if the name of an action stands with them."""

_MOST: Final = 200
"""The most marks of other forms that are read in one reply."""

_IN_VAIN: Final = 4
"""How many times its length is read of a reply in vain, for calls in other forms and for the ends of blocks in lists."""

_LEAST_IN_VAIN: Final = 1_000_000
"""How many characters may be read in vain however short a reply is."""

_MOST_PIECES: Final = 2 * MOST_ACTIONS
"""After how many pieces no more are looked for. They would not be run."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A reply in our language. `cut`: whether its end was left out, because it invented a result in another form."""

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text that is an action, and how it is written. `last`: only if nothing stands behind it."""

    start: int
    end: int
    blocks: str
    last: bool = False
    calls: tuple[ForeignCall, ...] = ()
    """What it calls, if it is written in another form."""


def is_plain(text: str, blocks: Sequence[Block]) -> bool:
    """Whether nothing in a reply can mean an action but its action blocks. `blocks`: all of its blocks.

    Most replies are so, and need not be read again.
    """
    if ANSWER.name in text and _ANSWER_ALONE.fullmatch(text.rstrip().rpartition("\n")[2]):
        return False

    position = 0
    for fenced in blocks:
        if not fenced.action or _MARKED.search(text, position, fenced.start):
            return False
        position = fenced.end
    return _MARKED.search(text, position) is None


def in_our_language(text: str, registry: Registry, known: Known | None = None) -> Rewritten:
    """Return a complete reply with its actions written as action blocks.

    `known`: what actions may name that are one line without a fence; without it, such lines stay text.
    """
    if ANSWER.name in registry:
        text = _with_answer_as_block(text, registry)
    return _Reader(text, registry, known).rewritten()


def _with_answer_as_block(text: str, registry: Registry) -> str:
    """Write ANSWER as a block if it is all that is in the last line: it is never a part of the answer."""
    if _ANSWER_ALONE.fullmatch(text):
        return block(ANSWER.name, None)

    before, _, last = text.rstrip().rpartition("\n")
    is_code = last.startswith(("    ", "\t"))
    if is_code or not _ANSWER_ALONE.fullmatch(last):
        return text

    blocks = scan(text, registry.is_action).blocks
    in_open_block = bool(blocks) and not blocks[-1].closed
    if in_open_block:
        return text
    return f"{before.rstrip()}\n\n{block(ANSWER.name, None)}"


@dataclass(frozen=True, slots=True)
class CallsLeft:
    """The calls in another form that a reply in our language still holds."""

    unknown: Sequence[FoundCalls]
    """Those that can't be read, or call what does not exist."""
    passed_over: Sequence[FoundCalls]
    """Those that stand before an action or a text, where they may be examples. Those that are called so are left out."""


def calls_left(text: str, registry: Registry) -> CallsLeft:
    """Return the calls in another form that were not made."""
    reader = _Reader(text, registry)
    reader.read()
    return CallsLeft(reader.unknown, reader.passed_over())


class _Reader:
    """Reads a reply once, line by line, and collects what is to be written otherwise."""

    def __init__(self, text: str, registry: Registry, known: Known | None = None) -> None:
        self._text = text
        self._registry = registry
        self._known: Known | None = None
        if known is not None and bare.may_stand_in(text):
            self._known = replace(known, children={*known.children, *bare.called_in(text)})
        self._marked = _MARKED if self._known is None else _MARKED_OR_BARE
        self._doubtful = len(text) if self._known is None else _doubtful_from(text, registry)
        self._writer = CallWriter()
        self._scanner = Scanner(registry.is_action)
        self._base = 0
        """Where the text begins that the scanner reads."""
        self._in_list = False
        self._quotes = _Quotes(text)
        self._tried = 0
        """How many marks of other forms were read."""
        self._may_be_in_vain = _IN_VAIN * len(text) + _LEAST_IN_VAIN
        """How many characters may still be read for calls and blocks that are none."""
        self._pieces: list[_Piece] = []
        self._acted = 0
        """Where the last action block ends that needs no rewriting."""
        self.unknown: list[FoundCalls] = []

    def rewritten(self) -> Rewritten:
        self.read()
        pieces = self._accepted()
        if not pieces:
            return Rewritten(self._text)

        written: list[str] = []
        position = 0
        for piece in pieces:
            before = self._text[position : piece.start].rstrip()
            if before:
                written.append(f"{before}\n\n")
            written.append(f"{piece.blocks}\n\n")
            position = piece.end
        rest = self._text[position:].lstrip("\n")

        # Behind a call in another form, the model may have gone on with a result that nobody gave.
        invented = None
        if any(piece.calls for piece in pieces):
            invented = foreign.INVENTED.search(rest)
        if invented is not None:
            rest = rest[: invented.start()]
        return Rewritten(f"{''.join(written)}{rest}".rstrip(), cut=invented is not None)

    def passed_over(self) -> list[FoundCalls]:
        """The calls that exist and were not made, because they stand where they may be examples."""
        accepted = self._accepted()
        return [
            FoundCalls(piece.start, piece.end, piece.calls, foreign.FORMS[-1])
            for piece in self._pieces
            if piece.calls and piece not in accepted and not self._is_example(piece)
        ]

    def _is_example(self, piece: _Piece) -> bool:
        return unread.is_example(self._text[max(piece.start - unread.LONGEST_HINT, 0) : piece.start])

    def read(self) -> None:
        """Read the text to its end."""
        position = 0
        while position < len(self._text) and self._scanner.cut is None:
            marked = self._next_marked(position)
            if marked > position:
                self._take(self._scanner.feed(self._text[position:marked]))
                position = marked
            else:
                position = self._line(position)
        self._take(self._scanner.end())

    def _next_marked(self, position: int) -> int:
        """Where the next line begins that must be read by itself. What is before it can be passed over at once."""
        # What stands behind a call is read as if it were a line of its own.
        behind_a_call = position > 0 and self._text[position - 1] != "\n"
        if behind_a_call or (self._in_list and not self._scanner.inside):
            return position

        pattern = _FENCE if self._scanner.inside else self._marked
        mark = pattern.search(self._text, position)
        if mark is None:
            return len(self._text)
        return self._text.rfind("\n", 0, mark.start()) + 1

    def _line(self, start: int) -> int:
        """Read the line at `start`, or what begins in it. Returns where reading goes on."""
        end = self._text.find("\n", start) + 1 or len(self._text)
        line = self._text[start:end]

        if not self._scanner.inside and len(self._pieces) < _MOST_PIECES:
            after = self._listed(start, line)
            if after is None:
                after = self._bare(start, line, end)
            if after is None:
                after = self._foreign(start, line)
            if after is not None:
                # What follows is read as if it stood alone, as it will when this is a block.
                self._scanner = Scanner(self._registry.is_action)
                self._base = after
                return after
            self._in_list = self._goes_on_with_list(line)

        self._take(self._scanner.feed(line))
        return end

    def _goes_on_with_list(self, line: str) -> bool:
        if _ITEM.match(line):
            return True
        return self._in_list and (not line.strip() or line[0] in " \t")

    # --- list items -----------------------------------------------------------------------------

    def _listed(self, start: int, line: str) -> int | None:
        """Read a fenced block in a list item. Returns where it ends; None if there is none."""
        match = _LISTED.match(line)
        if match is None:
            return None
        begins_item = _ITEM.match(line) is not None
        goes_on = self._in_list and bool(match["before"])
        if not begins_item and not goes_on:
            return None
        if self._may_be_in_vain <= 0:
            return None

        info = match["info"].strip()
        words = info.split(None, 1)
        acts = bool(words) and self._registry.is_action(words[0])
        lines, after = self._body(start + len(line), match["mark"], acts=acts)
        if after is None:
            self._may_be_in_vain -= len(self._text) - start
            return None

        self._in_list = True
        columns = len(match["before"].expandtabs(4))
        body = "\n".join([_outdented(text, columns) for text in lines])
        if acts:
            self._pieces.append(_Piece(start, after, block(info, body if lines else None)))
        else:
            self._code(start, after, info, body)
        return after

    def _body(self, start: int, mark: str, *, acts: bool) -> tuple[list[str], int | None]:
        """The lines of a block up to the fence that closes it, and where that ends; None if nothing does."""
        body: list[str] = []
        levels = 1
        position = start
        while position < len(self._text):
            end = self._text.find("\n", position)
            if end < 0:
                end = len(self._text)
            line = self._text[position:end]
            position = end + 1

            # As in the scanner, a fence with a language opens another level inside an action.
            fence = line.strip()
            if fence.startswith(mark):
                is_inline_code = mark[0] == "`" and "`" in fence.lstrip("`")
                if not fence.strip(mark[0]):
                    levels -= 1
                elif acts and not is_inline_code:
                    levels += 1
                if levels == 0:
                    return body, min(position, len(self._text))
            body.append(line)
        return body, None

    # --- lines without a fence ------------------------------------------------------------------

    def _bare(self, start: int, line: str, end: int) -> int | None:
        """Read an action that is this line alone. Returns where it ends; None if it is none."""
        if self._known is None or start >= self._doubtful:
            return None

        in_list = self._goes_on_with_list(line)
        is_code = line.startswith(("    ", "\t")) and not in_list
        if is_code:
            return None
        written = bare.line_of(line.rstrip("\n"))
        if written is None or self._quotes.holds(start):
            return None
        if bare.is_heading(written, self._text, end) or bare.is_in_paragraph(written, self._text, start, end):
            return None
        if not bare.runs(written, self._registry, self._known):
            return None

        self._in_list = in_list
        spec = self._registry.find(written.name)
        is_core = isinstance(spec, ActionSpec) and spec.core
        # The name of a function with its arguments is also how a text explains it.
        self._pieces.append(_Piece(start, end, block(written.info, None), last=not is_core))
        return end

    # --- other forms ----------------------------------------------------------------------------

    def _foreign(self, start: int, line: str) -> int | None:
        """Read calls in another form that begin in a line. Returns where they end; None if there are none."""
        if self._tried >= _MOST or self._may_be_in_vain <= 0:
            return None
        at = foreign.opens_in(line)
        # What opens a block says what it is, and holds no call.
        if at is None or _FENCE.match(line):
            return None

        self._tried += 1
        before = line[:at]
        is_code = at >= 4 and not before.strip() and not self._in_list
        if is_code or line.lstrip().startswith(">"):
            return None

        read = foreign.read_at(self._text, start + at)
        if read is None or not read.calls:
            self._may_be_in_vain -= min(len(self._text) - start - at, foreign.LONGEST)
        if read is None:
            return None

        # A call with words on both sides of it is spoken of, and not made.
        in_sentence = bool(before.strip()) and bool(self._rest_of_line(read.end).strip())
        if in_sentence or not read.calls:
            if read.form.known:
                self.unknown.append(read)
            return None

        blocks = self._blocks(read.calls)
        if not blocks:
            self.unknown.append(read)
            return read.end

        last = not read.form.known
        self._pieces.append(_Piece(read.start, read.end, blocks, last, read.calls))
        return read.end

    def _rest_of_line(self, start: int) -> str:
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]

    def _blocks(self, calls: Sequence[ForeignCall]) -> str:
        """Calls as action blocks; empty if one of them calls what does not exist."""
        if not calls:
            return ""

        # All are found before one is written: the writer numbers the variables that it makes.
        resolve = resolver(self._registry.names)
        specs: list[ActionSpec] = []
        for call in calls:
            spec = self._registry.find(resolve(call.name))
            if not isinstance(spec, ActionSpec):
                return ""
            specs.append(spec)

        pairs = zip(specs, calls, strict=True)
        return "\n\n".join([self._writer.blocks(spec, call.arguments, call.words) for spec, call in pairs])

    # --- blocks ---------------------------------------------------------------------------------

    def _take(self, events: Sequence[object]) -> None:
        """Take the blocks that the scanner has found."""
        for event in events:
            if isinstance(event, Block):
                self._block(event)

    def _block(self, found: Block) -> None:
        end = self._base + found.end
        if found.action:
            self._acted = end
        elif found.closed and len(self._pieces) < _MOST_PIECES:
            self._code(self._base + found.start, end, found.info, found.body)

    def _code(self, start: int, end: int, info: str, body: str) -> None:
        """Take a block of code that means an action."""
        language, _, rest = info.partition(" ")
        language = language.lower()
        named = self._named(language, rest.strip(), body)
        if named:
            self._pieces.append(_Piece(start, end, named))
            return

        calls = foreign.calls_in_block(language, body)
        blocks = self._blocks(calls)
        if blocks:
            self._pieces.append(_Piece(start, end, blocks, last=True, calls=calls))
        elif calls and not self._text[end:].strip():
            self.unknown.append(FoundCalls(start, end, calls, foreign.FORMS[-1]))

    def _named(self, language: str, rest: str, body: str) -> str:
        """The action block that a block of code means with the name of an action behind its language, or in its first
        line; empty if it means none."""
        if language not in _CODE:
            return ""
        if rest and self._is_name(rest.split(None, 1)[0]):
            return block(rest, body)

        first, _, lines = body.partition("\n")
        if first.strip() and self._is_name(first.split(None, 1)[0]):
            return block(first.strip(), lines)
        return ""

    def _is_name(self, word: str) -> bool:
        return isinstance(self._registry.find(word), ActionSpec)

    def _accepted(self) -> list[_Piece]:
        """The pieces that count, in order. Of calls that could be examples only those at the end do.

        An action behind such a call shows what was meant: the call before it is how it would be written elsewhere.
        """
        if not self._pieces:
            return []

        rest = self._text[max(self._pieces[-1].end, self._acted) :]
        invented = foreign.INVENTED.match(rest.lstrip("\n"))
        at_end = not rest.strip() or invented is not None

        surely = [piece for piece in self._pieces if not piece.last]
        if not at_end:
            return surely
        acted = max([self._acted, *(piece.end for piece in surely)])
        return [piece for piece in self._pieces if not piece.last or piece.start >= acted]


class _Quotes:
    """Finds which lines belong to a quote above them. Asked from the first line of a text to the last, it reads it
    once.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._read = 0
        self._in_quote = False
        """Whether the paragraph that is read has a line that begins as a quote does."""

    def holds(self, start: int) -> bool:
        """Whether the paragraph up to the line at `start` begins as a quote, or goes on as one."""
        # Two line ends are also found if the first of them was read before.
        begin = self._read
        end = self._text.rfind("\n\n", max(self._read - 1, 0), start)
        if end >= 0:
            self._in_quote = False
            begin = end + 2

        self._in_quote = self._in_quote or _QUOTES.search(self._text, begin, start) is not None
        self._read = max(start, self._read)
        return self._in_quote


def _doubtful_from(text: str, registry: Registry) -> int:
    """Where a body may go on behind the fence that ends its block, so that lines there are perhaps not the agent's."""
    blocks = scan(text, registry.is_action).blocks
    early = unread.closed_early(text, blocks, writes=lambda block: True)
    return len(text) if early is None else blocks[early].start


def _outdented(line: str, columns: int) -> str:
    """A line without the indentation of its list item, as far as it has it."""
    blanks = len(line) - len(line.lstrip(" "))
    if line.startswith("\t"):
        line = line.expandtabs(4)
        blanks = len(line) - len(line.lstrip(" "))
    return line[min(blanks, columns) :]
