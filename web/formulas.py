r"""Formulas in Markdown: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` on lines of their own, as MathML.

Browsers render MathML natively, so the page needs no script and no fonts for it. The output is rebuilt from an
allow-list of elements and attributes, whatever the converter made of a text; what it can't convert is shown as written.
`$name` of a variable, `$HOME` and prices are no formulas: a formula begins and ends next to a non-blank character, and
no letter follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Final, Protocol

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markupsafe import Markup

from iact.web.markup import escaped, html, joined

_DOLLARS: Final = re.compile(r"\$((?:[^\\$]|\\[\s\S])++)\$(?![\w$])")
_DISPLAYED: Final = re.compile(r"\$\$((?:[^\\$]|\\[\s\S])++)\$\$(?!\$)")
_ROUND: Final = re.compile(r"\\\(((?:[^\\]|\\(?!\)))++)\\\)")
_SQUARE: Final = re.compile(r"\\\[((?:[^\\]|\\(?!\]))++)\\\]")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_LONGEST: Final = 2_000
_MACROS: Final = re.compile(r"\\(?:(?:re)?new|provide)command|\\(?:def|let)(?![a-z])")
"""Macros, which can make a short text a long one."""

_TAG: Final = re.compile(
    "math|m(row|i|n|o|s|text|space|frac|sqrt|root|style|padded|phantom|error|enclose|sub|sup|subsup|under|over|underover|"
    "multiscripts|prescripts|table|tr|td)"
)
_PARTS: Final = {
    "mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3,
}  # fmt: skip
"""How many children an element must have; the converter leaves some out of an incomplete formula."""
_ATTRIBUTE: Final = re.compile(
    "display|mathvariant|stretchy|fence|separator|form|accent|accentunder|linethickness|columnalign|columnspacing|"
    "rowspacing|width|height|depth|lspace|rspace|voffset|minsize|maxsize|movablelimits|symmetric|largeop|scriptlevel|"
    "displaystyle"
)
_VALUE: Final = re.compile(r"[\w.%+ -]{1,40}")
_UNSEEN: Final = re.compile("[\u2061-\u2064]")
"""Invisible MathML characters that are meant for programs. They are removed, since people would see their names
instead."""


class _Element(Protocol):
    """The parts of an XML element that are used."""

    tag: str
    text: str | None

    def items(self) -> Iterable[tuple[str, str]]: ...
    def __iter__(self) -> Iterator[_Element]: ...


def add_to(parser: MarkdownIt) -> None:
    """Make a parser recognise formulas: tokens of the type `formula`, with `block` as their `info` for displayed
    ones."""
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before(
        "fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def might_hold(text: str) -> bool:
    """Whether a text may contain a formula."""
    return "\\(" in text or "\\[" in text or "$$" in text or _DOLLARS.search(text) is not None


def load() -> None:
    """Spend the time now that the first formula would otherwise need."""
    mathml("x", block=False)


def mathml(source: str, *, block: bool) -> Markup | None:
    """A formula as MathML, or None if it is none, or can't be converted."""
    if len(source) > _LONGEST or _MACROS.search(source):
        return None

    # Not imported at the start of a process: it reads a table of symbols, and most texts have no formula.
    from latex2mathml.converter import convert_to_element

    try:
        return _written(convert_to_element(source, display="block" if block else "inline"))
    except Exception:  # whatever text the converter fails on, it can be shown as written
        return None


def as_written(source: str) -> Markup:
    """A formula that can't be converted."""
    return html('<code class="formula">{}</code>', escaped(source))


def _written(element: _Element) -> Markup:
    if _TAG.fullmatch(element.tag) is None:
        raise ValueError(f"{element.tag} is no element of a formula")
    parts = [_written(child) for child in element]
    if len(parts) != _PARTS.get(element.tag, len(parts)):
        raise ValueError(f"a part of {element.tag} is missing")

    return html(
        "<{tag}{attributes}>{text}{parts}</{tag}>",
        tag=element.tag,
        attributes=joined(
            html(' {name}="{value}"', name=name, value=value)
            for name, value in element.items()
            if _ATTRIBUTE.fullmatch(name) and _VALUE.fullmatch(value)
        ),
        text=_UNSEEN.sub("", unescape(element.text or "")),
        parts=joined(parts),
    )


# --- where they are in a text -----------------------------------------------------------------------


def _inline(state: StateInline, silent: bool) -> bool:
    formula = _at(state)
    if formula is None:
        return False

    match, is_displayed = formula
    if not silent:
        token = state.push("formula", "math", 0)
        token.content = match.group(1).strip()
        token.markup = match.group()
        token.info = "block" if is_displayed else ""

    state.pos = match.end()
    return True


def _at(state: StateInline) -> tuple[re.Match[str], bool] | None:
    """The formula that begins at the state's position, and whether it is displayed on its own lines."""
    text = state.src
    place = state.pos
    if text[place] == "\\":
        return _after_backslash(state)
    if text[place] != "$":
        return None

    # A dollar within a word, or after another one, begins no formula.
    before = text[place - 1] if place else ""
    if before and (before.isalnum() or before in "_$\\"):
        return None

    match = _DISPLAYED.match(text, place, state.posMax)
    if match is not None:
        return match, True

    match = _DOLLARS.match(text, place, state.posMax)
    if match is None:
        return None
    formula = match.group(1)
    if formula[0].isspace() or formula[-1].isspace():
        return None

    # `$name` is a mention of a variable, whatever follows.
    name = _NAME.match(formula)
    is_variable = name is not None and name.group() in state.env.get("known", ())
    return None if is_variable else (match, False)


def _after_backslash(state: StateInline) -> tuple[re.Match[str], bool] | None:
    for pattern, is_displayed in ((_ROUND, False), (_SQUARE, True)):
        match = pattern.match(state.src, state.pos, state.posMax)
        if match is not None and match.group(1).strip():
            return match, is_displayed
    return None


_CLOSERS: Final = {"$$": "$$", "\\[": "\\]"}


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    line = _line(state, start)
    close = _CLOSERS.get(line[:2])
    if close is None:
        return False

    # Don't repeat a failed search from the lines in between, or the time would be quadratic.
    searched: dict[str, tuple[int, int]] = state.env.setdefault("formulas", {})
    first, last = searched.get(close, (0, 0))
    if first <= start < last:
        return False

    lines = [line[2:]]
    number = start
    while not lines[-1].rstrip().endswith(close):
        number += 1
        is_outside = number >= end or state.sCount[number] < state.blkIndent
        if is_outside or not _line(state, number).strip():
            searched[close] = (start, number)
            return False
        lines.append(_line(state, number))

    content = "\n".join(lines).rstrip()[:-2].strip()
    if not content:
        return False
    if silent:
        return True

    token = state.push("formula", "math", 0)
    token.block = True
    token.content = content
    token.info = "block"
    token.markup = f"{line[:2]}{content}{close}"
    token.map = [start, number + 1]
    state.line = number + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    """A line of the text, without its indentation."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
