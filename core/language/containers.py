"""Which Markdown block the next line of a text would be in, as far as fences need to know.

A fence inside a list item or an HTML block is not a top-level block. This is the block phase of CommonMark 0.31.2
(appendix, "A parsing strategy"), reduced to what decides that: a stack of open containers (quotes and list items) and
the one open leaf (a paragraph, a fenced block or an HTML block; everything else ends with its line). Text is never
kept. Each line costs its length: a list item is only passed by a line that is indented for it, and blank lines after a
blank line change nothing.

Link reference definitions count as paragraphs, as CommonMark treats them while lines are read.
"""

from __future__ import annotations

import re
from typing import Final

BULLET: Final = r"(?:[-+*]|\d{1,9}[.)])"
"""A pattern of the mark of a list item."""

IN_LIST: Final = rf"[ \t]*(?:{BULLET}[ \t]+)*"
"""A pattern of what may stand before the content of a line: blanks, and the marks of the items that begin there."""

_ITEM: Final = re.compile(r"(?:[-+*]|(\d{1,9})[.)])( +|$)")
_THEMATIC: Final = re.compile(r"(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_HEADING: Final = re.compile(r"#{1,6}(?: |$)")
_SETEXT: Final = re.compile(r"(?:=+|-+) *")
_FENCE: Final = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_QUOTE: Final = 0
_MARKS: Final = frozenset("#>`~<-+*_0123456789=")
"""Characters that can begin something other than a paragraph."""

_HTML_NAMES: Final = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|"
    "link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|"
    "th|thead|title|tr|track|ul"
)
_ATTRIBUTE: Final = (
    r"""(?:\s++[a-zA-Z_:][a-zA-Z0-9_:.-]*+(?:\s*+=\s*+(?:[^"'=<>`\x00-\x20]++|'[^']*+'|"[^"]*+"))?+)"""
)
_BLANK: Final = re.compile(r"^ *$")
_HTML: Final[tuple[tuple[re.Pattern[str], re.Pattern[str], bool], ...]] = tuple(
    (
        re.compile(start, re.IGNORECASE | re.ASCII),
        re.compile(end, re.IGNORECASE) if end else _BLANK,
        interrupts,
    )
    for start, end, interrupts in (
        (r"<(?:script|pre|style|textarea)(?=[\s>]|$)", r"</(?:script|pre|style|textarea)>", True),
        (r"<!--", r"-->", True),
        (r"<\?", r"\?>", True),
        (r"<![A-Z]", r">", True),
        (r"<!\[CDATA\[", r"\]\]>", True),
        (rf"</?(?:{_HTML_NAMES})(?=\s|/?>|$)", "", True),
        (rf"(?:<[a-z][a-z0-9-]*+{_ATTRIBUTE}*+\s*+/?>|</[a-z][a-z0-9-]*+\s*+>)\s*$", "", False),
    )
)
"""CommonMark 4.6, kinds 1 to 7: start, end, whether it may interrupt a paragraph."""


class Containers:
    """Open blocks after the lines read so far. New at the start of a text and after a top-level block."""

    def __init__(self) -> None:
        self._frames: list[int] = []
        """The open containers, outermost first: `_QUOTE`, or how far an item's content is indented."""
        self._bare = False
        """Whether the innermost frame is an item that has no content yet."""

        self._paragraph = False
        """Whether the open leaf is a paragraph."""
        self._fence = ""
        """The mark of the open fence, if that is the open leaf."""
        self._html: re.Pattern[str] | None = None
        """What ends the open HTML block, if that is the open leaf."""
        self._was_blank = False
        """Whether the line before was blank."""

    @property
    def plain(self) -> bool:
        """Whether no container and no HTML block is open."""
        return not self._frames and self._html is None

    @property
    def unending(self) -> bool:
        """Whether a top-level block is open that no blank line ends, so that it takes everything that follows."""
        return not self._frames and (bool(self._fence) or self._html not in (None, _BLANK))

    def takes_fence(self, indent: int) -> bool:
        """Whether a fence indented by `indent` (0 to 3) spaces would open a top-level block now."""
        if not self._frames:
            return self._html is None and not self._fence
        return indent < self._frames[0] or self._frames[0] == _QUOTE

    def read(self, lines: str) -> None:
        """Read whole lines, separated by "\\n"."""
        for line in lines.removesuffix("\n").split("\n") if lines else ():
            blank = not line or not line.strip(" \t")
            if not (blank and self._was_blank):
                self._line(line.expandtabs(4))
            self._was_blank = blank

    def _line(self, line: str) -> None:
        """Read one line, whose tabs are spaces."""
        matched, at = self._match(line)
        rest = line[at:]
        if matched == len(self._frames) and self._leaf(rest):
            return

        # A paragraph goes on in a line that lacks the marks of its containers, if that begins nothing else (5.1).
        lazy = self._paragraph and matched < len(self._frames)
        may_continue = self._paragraph

        # Each round opens one container. What it holds is then the rest of the line.
        while rest:
            text = rest.lstrip(" ")
            indent = len(rest) - len(text)
            is_code = indent > 3
            if is_code or not text or text[0] not in _MARKS:
                break

            if text[0] == ">":
                self._push(_QUOTE, matched)
                rest = text[1:].removeprefix(" ")
            elif self._starts_leaf(text, matched, paragraph=may_continue, lazy=lazy):
                return
            else:
                content = self._item(text, indent, matched, interrupts=may_continue and not lazy)
                if content is None:
                    break
                rest = content

            matched = len(self._frames)
            lazy = False
            may_continue = False

        self._rest(rest, matched, lazy=lazy)

    def _match(self, line: str) -> tuple[int, int]:
        """How many open containers continue with this line, and the offset after their marks."""
        end = len(line.rstrip(" "))
        at = 0
        for depth, frame in enumerate(self._frames):
            start = at
            while at < end and line[at] == " " and (frame == _QUOTE or at - start < frame):
                at += 1

            if frame == _QUOTE:
                # However far it is indented, as in markdown-it.
                continues = at < end and line[at] == ">"
                at += 1
                if line.startswith(" ", at):
                    at = min(at + 1, end)
            elif at == end:
                # 5.2: a blank line belongs to every item but one that has no content yet.
                continues = not (self._bare and depth == len(self._frames) - 1)
            else:
                continues = at - start >= frame

            if not continues:
                return depth, start
        return len(self._frames), at

    def _leaf(self, rest: str) -> bool:
        """Whether the open fenced or HTML block takes the line."""
        if self._fence:
            text = rest.strip(" ")
            closes = text.startswith(self._fence) and not text.strip(self._fence[0])
            if closes and not rest.startswith("    "):
                self._fence = ""
            return True

        if self._html is not None:
            if self._html.search(rest):
                self._html = None
            return True

        return False

    def _starts_leaf(self, text: str, matched: int, *, paragraph: bool, lazy: bool) -> bool:
        """Whether the line is a heading, a thematic break, a fence or HTML; `text` begins with one of the marks."""
        if paragraph and not lazy and text[0] in "=-" and _SETEXT.fullmatch(text):
            self._end_leaf(matched)
            return True

        if _HEADING.match(text) or _THEMATIC.fullmatch(text):
            self._end_leaf(matched)
            return True

        fence = _FENCE.match(text)
        if fence is not None:
            self._end_leaf(matched)
            self._fence = fence.group()
            return True

        if text[0] != "<":
            return False
        for start, end, interrupts in _HTML:
            may_begin = interrupts or not paragraph
            if may_begin and start.match(text):
                self._end_leaf(matched)
                ends_at_once = end.search(text) is not None
                self._html = None if ends_at_once else end
                return True
        return False

    def _item(self, text: str, indent: int, matched: int, *, interrupts: bool) -> str | None:
        """Begin a list item if the line does. Returns the text after its marker."""
        match = _ITEM.match(text)
        if match is None:
            return None
        number, spaces = match.groups()
        rest = text[match.end() :]

        # 5.2: only a filled item, numbered 1 if at all, can interrupt a paragraph.
        begins_late = number is not None and int(number) != 1
        if interrupts and (not rest or begins_late):
            return None

        # More than four blanks are one blank and indented code.
        marker = match.start(2)
        padding = 1
        if rest and len(spaces) <= 4:
            padding = len(spaces)

        self._push(indent + marker + padding, matched)
        self._bare = not rest
        return text[marker + padding :]

    def _push(self, frame: int, matched: int) -> None:
        self._end_leaf(matched)
        self._frames.append(frame)

    def _end_leaf(self, matched: int) -> None:
        """Close the open leaf and the containers that did not continue with this line."""
        del self._frames[matched:]
        self._bare = False
        self._paragraph = False
        self._fence = ""
        self._html = None

    def _rest(self, rest: str, matched: int, *, lazy: bool) -> None:
        """Handle the rest of a line that begins no block: nothing, indented code or a paragraph."""
        text = rest.lstrip(" ")
        if not text:
            still_bare = self._bare and matched == len(self._frames)
            self._end_leaf(matched)
            self._bare = still_bare
            return

        if lazy:
            return
        is_code = len(rest) - len(text) > 3
        still_paragraph = self._paragraph or not is_code
        self._end_leaf(matched)
        self._paragraph = still_paragraph
