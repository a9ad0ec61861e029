"""Syntax highlighting: the tokens of code as spans of a few classes, which the page's style sheet colours.

It is optional decoration: it is only done while there is time to spare (`web.parser.in_spare_time`), which only a
render process has, and code without it is the same code. Languages are those that Pygments ships; plugins are not
searched.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from iact.web.markup import escaped, html, joined
from iact.web.parser import in_spare_time

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LONGEST: Final = 60_000
_CLASSES: Final = (
    ("Token.Comment", "hl-c"),
    ("Token.Keyword", "hl-k"),
    ("Token.Literal.String", "hl-s"),
    ("Token.Literal.Number", "hl-n"),
    ("Token.Name.Function", "hl-f"),
    ("Token.Name.Class", "hl-f"),
    ("Token.Name.Decorator", "hl-f"),
    ("Token.Name.Builtin", "hl-b"),
    ("Token.Name.Tag", "hl-k"),
    ("Token.Name.Attribute", "hl-b"),
    ("Token.Name.Variable", "hl-b"),
    ("Token.Operator.Word", "hl-k"),
    ("Token.Generic.Inserted", "hl-new"),
    ("Token.Generic.Deleted", "hl-old"),
    ("Token.Generic.Heading", "hl-c"),
    ("Token.Generic.Subheading", "hl-k"),
    ("Token.Generic.Prompt", "hl-c"),
    ("Token.Generic.Output", "hl-c"),
)

_DIFF: Final = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_DIFF_LINES: Final = (
    ("+++ ", "hl-c"), ("--- ", "hl-c"), ("diff ", "hl-c"), ("@@ ", "hl-k"), ("+", "hl-new"), ("-", "hl-old"),
)  # fmt: skip


def load() -> None:
    """Spend the time now that the first text would otherwise need."""
    _by_alias()


def coloured(text: str, language: str) -> Markup:
    """Code as HTML, highlighted if the language is known and there is time to spare; not yet `legible`."""
    if not language or len(text) > _LONGEST:
        return escaped(text)
    if language in ("diff", "patch"):
        return diff(text)

    highlighted = in_spare_time(lambda: _highlighted(text, language))
    return escaped(text) if highlighted is None else highlighted


def holds_diff(text: str) -> bool:
    """Whether a tool's output is a diff."""
    return text.startswith(("diff --git ", "--- ", "Index: ")) and _DIFF.search(text) is not None


def diff(text: str) -> Markup:
    """A diff as HTML with added and removed lines marked. Costs as little as plain text."""
    return joined(map(_diff_line, text.splitlines(keepends=True)))


def _diff_line(line: str) -> Markup:
    return _span(line, next((cls for begin, cls in _DIFF_LINES if line.startswith(begin)), ""))


def language_of(path: str) -> str:
    """The language of a file according to its name; "" if that does not say."""
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    return _by_ending().get(ending.lower(), "") if dot else ""


def _highlighted(text: str, language: str) -> Markup | None:
    """The tokens of code as spans, or None if its language is not known, or its lexer changed it."""
    lexer = _lexer(language)
    if lexer is None:
        return None

    tokens = list(lexer.get_tokens(text))
    whole = "".join(value for _, value in tokens)
    if whole != text and whole != f"{text}\n":
        return None  # lexers may add a final line feed; one that changed anything else is not used

    # Tokens of the same class are one span, with the blanks between them.
    spans: list[Markup] = []
    span = ""
    cls = ""
    left = len(text)
    for kind, value in tokens:
        piece = value[:left]  # without a line feed that the lexer added
        left -= len(piece)

        piece_cls = _class(str(kind))
        if piece_cls != cls and piece.strip():
            spans.append(_span(span, cls))
            span = ""
            cls = piece_cls
        span += piece

    return joined((*spans, _span(span, cls)))


def _span(text: str, cls: str) -> Markup:
    return html('<span class="{}">{}</span>', cls, escaped(text)) if cls and text else escaped(text)


@cache
def _class(kind: str) -> str:
    return next((cls for name, cls in _CLASSES if kind == name or kind.startswith(f"{name}.")), "")


@cache
def _by_alias() -> dict[str, str]:
    """The name under which each alias of a language is found."""
    from pygments.lexers import get_all_lexers

    return {alias: aliases[0] for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases}


@cache
def _by_ending() -> dict[str, str]:
    """A language for each file name extension; the first of several."""
    from pygments.lexers import get_all_lexers

    languages = {
        "md": "markdown",
        "txt": "",
        "html": "html",
        "sql": "sql",
        "js": "javascript",
        "ts": "typescript",
    }
    for _, aliases, patterns, _ in get_all_lexers(plugins=False):
        for pattern in patterns:
            ending = pattern.removeprefix("*.")
            if aliases and pattern.startswith("*.") and ending.isalnum():
                languages.setdefault(ending, aliases[0])

    return languages


@cache
def _lexer(language: str) -> Lexer | None:
    name = _by_alias().get(language.lower())
    if name is None:
        return None
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name, stripnl=False, ensurenl=True)
