"""Writes the messages between a client and the product, short enough to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from docs.sessions.tap import Message
from iact.core.ports import JSON

LONGEST: Final = 48
"""The most characters of a text."""
DEEPEST: Final = 5
"""The most levels of nested data."""
WIDEST: Final = 3
"""The most members of a list."""
ASIDE: Final = {"_meta"}
"""Fields that say nothing about the session."""


def shortened(value: JSON, depth: int = 0) -> JSON:
    """The value without long, deep or wide parts. `…` marks what is left out."""
    if isinstance(value, str):
        return _cut(value)
    if not isinstance(value, dict | list) or not value:
        return value
    if depth == DEEPEST:
        return "{…}" if isinstance(value, dict) else "[…]"
    if isinstance(value, dict):
        return {
            name: "{…}" if name in ASIDE else shortened(one, depth + 1)
            for name, one in value.items()
            if one is not None
        }
    kept = [shortened(one, depth + 1) for one in value[:WIDEST]]
    return kept if len(value) <= WIDEST else [*kept, f"{len(value) - WIDEST} more"]


def _cut(text: str) -> str:
    """Cut a text at the end of a word. An address, which is a single word, may be twice as long."""
    if len(text) <= LONGEST * (1 if " " in text else 2):
        return text
    return f"{text[: max(text.rfind(' ', 0, LONGEST), LONGEST // 2)]} …"


def kind(message: Message) -> str:
    """The kind of a message: the method, address or command, and for an event its type."""
    data = message.data
    inner = data.get("update", data) if isinstance(data, dict) else {}
    found = inner if isinstance(inner, dict) else {}
    names = (found.get(name) for name in ("method", "sessionUpdate", "type") if found.get(name))
    return " ".join([message.arrow, *filter(None, [message.about]), *map(str, names)])


def lines(messages: Sequence[Message]) -> Iterator[str]:
    """One line for each message. Of consecutive messages of the same kind, only the first one."""
    for _, group in groupby(messages, key=kind):
        first, *more = group
        yield _line(first)
        if more:
            yield f"  … {len(more)} more of this kind"


def _line(message: Message) -> str:
    start = f"{message.arrow} {message.about}".rstrip()
    match message.data:
        case None:
            return start
        case str() as text:
            return "\n".join([start, *(f"  {line}".rstrip() for line in text.rstrip().splitlines())])
        case dict() as data:
            rpc = "jsonrpc" in data
            told = {name: one for name, one in data.items() if not (rpc and name in ("jsonrpc", "id"))}
            return f"{start} {json.dumps(shortened(told), ensure_ascii=False)}"
        case data:
            return f"{start} {json.dumps(shortened(data), ensure_ascii=False)}"
