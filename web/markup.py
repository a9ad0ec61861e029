"""HTML that is made on the server, as a type: values that are inserted into it are text unless known to be HTML.

A `Markup` (markupsafe) is a string that is HTML. There are three ways to make one: `html` fills a template that is
written in the source; `plain` and the functions like it convert text; and `trusted` takes the output of a library that
escapes on its own. A `str` that is inserted into a template is escaped automatically, and mypy tells the two types
apart where HTML is passed on. `tests/web/test_markup.py` reads the sources: all HTML in them is in such templates.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, LiteralString, TypeAlias

from markupsafe import Markup

from iact.web.safe_text import exact, visible, without_escapes

Value: TypeAlias = str | int
"""What can be inserted into a template: HTML as it is, any other text escaped, and numbers."""

NOTHING: Final = Markup()


def html(template: LiteralString, /, *values: Value, attributes: Markup = NOTHING, **named: Value) -> Markup:
    """HTML from a template with placeholders as in `str.format`. Values that are not `Markup` become `plain`.

    In a tag, a placeholder is in double quotes. Only `{attributes}`, which must be HTML, is not.
    """
    for name, value in named.items():
        named[name] = _inside(value)
    return trusted(template.format(*map(_inside, values), attributes=attributes, **named))


def joined(parts: Iterable[Markup]) -> Markup:
    """Join pieces of HTML."""
    return trusted("".join(parts))


def escaped(text: str) -> Markup:
    """Text as HTML that is not yet `legible`."""
    return trusted(escape(text))


def plain(text: str) -> Markup:
    """Untrusted text as one piece of HTML text: without terminal sequences, and with deceptive characters replaced by
    names."""
    if not (text.isascii() and text.isprintable()):
        text = visible(without_escapes(text))
    return trusted(escape(text))


def in_full(text: str) -> Markup:
    """The same for a person who decides by it: nothing is removed, and nothing is invisible."""
    return trusted(escape(exact(text)))


def legible(markup: Markup) -> Markup:
    """HTML whose text was only escaped, with its deceptive characters replaced by names."""
    seen = visible(markup)
    return markup if seen is markup else trusted(seen)


def trusted(text: str) -> Markup:
    """HTML from a source that escapes on its own; each caller says which."""
    # The class's constructor first checks for other kinds of HTML, which costs as much as a small template.
    return str.__new__(Markup, text)


def _inside(value: Value) -> Value:
    return value if isinstance(value, _AS_THEY_ARE) else plain(value)


_AS_THEY_ARE: Final = (Markup, int)
