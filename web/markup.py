"""HTML that is made on the server, as a type: what is put into it is text unless it is known to be HTML.

A `Markup` (markupsafe) is a string that is HTML. There are three ways to one: a template that is written in the source,
filled by `html`; text, by `plain` and its like; and what a library wrote that escapes by itself, by `trusted`. A `str`
that is put into a template is escaped without anybody having to think of it, and mypy tells the two apart where HTML is
handed on. `tests/web/test_markup.py` reads the sources: no HTML in them is anywhere but in such a template.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, LiteralString, TypeAlias

from markupsafe import Markup

from iact.web.safe_text import exact, visible, without_escapes

Value: TypeAlias = str | int
"""What can be put into a template: HTML as it is, any other text escaped, and numbers."""

NOTHING: Final = Markup()


def html(template: LiteralString, /, *values: Value, attributes: Markup = NOTHING, **named: Value) -> Markup:
    """HTML from a template with places as in `str.format`. What is not `Markup` becomes `plain`.

    In a tag, a place is in double quotes. Only `{attributes}`, which must be HTML, is not.
    """
    for name, value in named.items():
        named[name] = _inside(value)
    return trusted(template.format(*map(_inside, values), attributes=attributes, **named))


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces of HTML, one after the other."""
    return trusted("".join(parts))


def escaped(text: str) -> Markup:
    """Text as HTML that is not yet `legible`."""
    return trusted(escape(text))


def plain(text: str) -> Markup:
    """Untrusted text as one piece of HTML text: without sequences of terminals, what deceives by its name."""
    if not (text.isascii() and text.isprintable()):
        text = visible(without_escapes(text))
    return trusted(escape(text))


def in_full(text: str) -> Markup:
    """The same for somebody who decides by it: nothing is taken out, nothing is unseen."""
    return trusted(escape(exact(text)))


def legible(markup: Markup) -> Markup:
    """HTML whose text was only escaped, with what deceives by its name."""
    seen = visible(markup)
    return markup if seen is markup else trusted(seen)


def trusted(text: str) -> Markup:
    """HTML that something wrote which escapes by itself; whoever calls this says what."""
    # The class's own way looks for other kinds of HTML first, which costs as much as a small template.
    return str.__new__(Markup, text)


def _inside(value: Value) -> Value:
    return value if isinstance(value, _AS_THEY_ARE) else plain(value)


_AS_THEY_ARE: Final = (Markup, int)
