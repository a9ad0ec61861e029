"""A reply while a model writes it, as HTML: its finished blocks, and apart from them the block that is still open.

The client sends the text that it has not been given as finished HTML, and gets both parts. It keeps the first for good,
and replaces the second with every answer. So a long reply is parsed once in all, except for its last block, and at the
end nothing moves: the finished blocks are what the record of the reply looks like, because one parser made both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markdown_it.token import Token

from iact.core.views.text import IsAction
from iact.web.render import Known, blocks, reply_with_actions

_ENDS_WITH_ITS_LINE: Final = frozenset({"heading_open", "hr"})
_ENDS_WITH_A_BLANK_LINE: Final = frozenset({"paragraph_open", "table_open", "blockquote_open"})


@dataclass(frozen=True, slots=True)
class DraftHtml:
    """The HTML of an unfinished reply. All is empty for one that takes too long to format."""

    closed: int = 0
    """How many characters of it are in finished blocks."""
    html: str = ""
    """The HTML of these."""
    open: str = ""
    """The HTML of the rest."""


def formatted(text: str, is_action: IsAction, known: Known) -> DraftHtml:
    """The HTML of an unfinished reply, or of what the client has not been given of it as finished."""
    closed = finished(text)
    rest = text[closed:]
    html = reply_with_actions(text[:closed], is_action, known)
    return DraftHtml(closed, html, reply_with_actions(rest, is_action, known))


def finished(text: str) -> int:
    """How many characters of an unfinished reply are in blocks that nothing can change any more.

    Only whole lines count: a line that begins with `#` may become a heading or go on with the paragraph above it.
    """
    whole = text[: text.rfind("\n") + 1]
    lines = whole.split("\n")[:-1]
    top = [token for token in blocks(whole) if token.level == 0 and token.map is not None]
    if not top:
        return 0

    last = top[-1]
    assert last.map is not None
    begin, end = last.map
    until = end if _is_finished(last, lines, end) else begin
    return sum(len(line) + 1 for line in lines[:until])


def _is_finished(last: Token, lines: Sequence[str], end: int) -> bool:
    """Whether the last block has ended, although no other has begun."""
    if last.type == "fence":
        assert last.map is not None
        # A fence without an end reaches to the end of the text.
        return end - last.map[0] > 1 and lines[end - 1].strip().startswith(last.markup)

    if last.type in _ENDS_WITH_ITS_LINE:
        return True

    # A list and an indented block go on after blank lines.
    is_followed_by_a_blank_line = end < len(lines) or (end > 0 and not lines[end - 1].strip())
    return last.type in _ENDS_WITH_A_BLANK_LINE and is_followed_by_a_blank_line
