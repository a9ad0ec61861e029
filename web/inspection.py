"""The inspector's answers as wire fields: an exact context, a table of variables, a variable's content.

Everything is sent as text, never as HTML. Hidden characters are made visible, and long texts lose their middle and say
how much is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from iact.core.stored.replay import SeenContext
from iact.core.views.consent import variable_digest
from iact.core.views.view import Variable
from iact.web.downloads import View, shown_html
from iact.web.looks import look_of, view_as
from iact.web.safe_text import shortened, visible
from iact.web.wire import answers

_CONTEXT_LIMIT: Final = 1_500_000
"""How many characters of a context are sent; beyond that, only sizes are."""

_MESSAGE_HEAD, _MESSAGE_TAIL = 60_000, 20_000
_CONTENT_HEAD, _CONTENT_TAIL = 96_000, 32_000


def context_fields(seen: SeenContext) -> answers.Context:
    """A context. If it is too long in total, the newest messages keep their text."""
    messages: list[answers.SeenMessage] = []
    room = _CONTEXT_LIMIT
    for message in reversed(seen.messages):
        text, left_out = _cut(message.content, _MESSAGE_HEAD, _MESSAGE_TAIL)
        if len(text) > room:
            text, left_out = "", len(message.content)
        room -= len(text)
        fields: answers.SeenMessage = {
            "role": message.role, "reused": message.reused, "text": text, "size": len(message.content),
        }  # fmt: skip
        if left_out:
            fields["left_out"] = left_out
        messages.append(fields)
    messages.reverse()
    return {"agent": seen.agent, "record": seen.record, "messages": messages}


def table_fields(variables: Iterable[Variable]) -> list[answers.Variable]:
    """The variables of an agent."""
    return [_described(one) for one in variables]


def content_fields(path: str, value: Variable, content: bytes) -> answers.VariableContent:
    """One variable of the agent `path` with its content, if that is text."""
    text: str | None = None
    left_out = 0
    if value.is_text or _reads_as_text(content):
        text, left_out = _cut(content.decode("utf-8", "replace"), _CONTENT_HEAD, _CONTENT_TAIL)

    digest = variable_digest(path, value.name, value.sha256, value.labels)
    return {
        **_described(value),
        "text": text,
        "left_out": left_out,
        "digest": digest,
        "look": look_of(value.name, value.media, content, is_text=text is not None),
    }


def viewed(value: Variable, content: bytes) -> tuple[View, bytes]:
    """A variable's content as it is shown in a frame.

    Raises:
        UsageError: it can't be.
    """
    look = look_of(value.name, value.media, content, is_text=_reads_as_text(content))
    view = view_as(look, len(content))
    return view, shown_html(content) if view == "html" else content


def _reads_as_text(content: bytes) -> bool:
    """Whether content is text, whatever its declared type."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except ValueError:
        return False
    return True


_SUFFIXES: Final[Mapping[str, str]] = {
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/python": ".py",
    "text/html": ".html.txt",
    "application/json": ".json",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "application/pdf": ".pdf",
}


def suffix(value: Variable) -> str:
    """The file name extension for a value of this type; "" for unknown types."""
    return _SUFFIXES.get(value.media.lower().partition(";")[0].strip(), "")


def _described(value: Variable) -> answers.Variable:
    labels = [visible(label) for label in sorted(value.labels)]
    return {
        "name": value.name,
        "media": visible(value.media),
        "size": value.size,
        "origin": visible(value.origin),
        "labels": labels,
        "sha256": value.sha256,
    }


def _cut(text: str, head: int, tail: int) -> tuple[str, int]:
    first, left_out, last = shortened(text, head=head, tail=tail)
    gap = f"\n… {left_out:,} characters are left out here …\n" if left_out else ""
    return visible(first) + gap + visible(last), left_out
