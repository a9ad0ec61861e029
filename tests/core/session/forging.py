"""Forgeries of records: each with one thing said otherwise, in all ways that its class allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar, get_args, get_origin

from iact.core.errors import JournalError, ReplayMismatch
from iact.core.ports import JSON
from iact.core.records.codec import Field, layout_of, members_of
from iact.core.records.content import Content, Unknown
from iact.core.records.record import Record
from iact.core.tree.apply import migrated_at, read_tree

_Part = TypeVar("_Part")
Blobs = Callable[[str], bytes]


def name_of(content: Content, field: str) -> str:
    """How a field is told of: kind, operation, field."""
    kind = f"{content.KIND} {content.OP}" if content.OP else content.KIND
    return f"{kind}.{field}"


def forged(record: Record, *, derived: bool) -> Iterator[tuple[str, Record]]:
    """The record with one field, or its body, said otherwise: those that are derived, or those that are outcomes."""
    content = record.content
    if isinstance(content, Unknown):
        return
    for field, value, put in _fields(content):
        assert field.mark is not None
        if field.mark.derived is derived:
            for other in others(field.hint, value):
                yield name_of(content, field.key), dataclasses.replace(record, content=put(other))
    if content.BODY is not None and content.BODY.derived is derived:
        yield name_of(content, "body"), dataclasses.replace(record, body=record.body + " And more.")
        if record.body:
            yield name_of(content, "body"), dataclasses.replace(record, body="")


def _fields(content: Content) -> Iterator[tuple[Field, object, Callable[[object], Content]]]:
    """Each field, what it holds, and how the content is with another value in its place."""
    for field in layout_of(type(content)).fields:
        value = getattr(content, field.name)
        if field.group is None:
            yield field, value, partial(_with, content, field.name)
        elif value is not None:
            for inner in field.group.fields:
                yield inner, getattr(value, inner.name), partial(_within, content, field.name, inner.name)


def _with(content: Content, name: str, value: object) -> Content:
    return _changed(content, name, value)


def _within(content: Content, group: str, name: str, value: object) -> Content:
    return _changed(content, group, _changed(getattr(content, group), name, value))


def _changed(part: _Part, name: str, value: object) -> _Part:
    """The same with another value in one field."""
    held = {field.name: getattr(part, field.name) for field in layout_of(type(part)).fields}
    return type(part)(**{**held, name: value})


def others(hint: object, value: object) -> Iterator[object]:
    """Other values of the same type, of every sort that it has."""
    members = members_of(hint)
    if {*get_args(JSON)} <= {*members}:
        yield from (one for one in ("another", None) if one != value)
        return
    for member in members:
        for other in _others(member, value):
            if other != value or type(other) is not type(value):
                yield other


def _others(hint: object, value: object) -> Iterator[object]:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is type(None):
        yield None
    elif hint is bool:
        yield not value
    elif hint is str:
        yield from (f"{value}x" if isinstance(value, str) else "x", "")
    elif hint in (int, float):
        yield value + 1 if isinstance(value, int | float) else 1
        yield 0
    elif origin is Literal:
        yield from inner
    elif origin is tuple:
        yield from _other_lists(inner[0], value)
    elif origin is not None:
        yield from _other_mappings(inner[1], value)
    elif isinstance(hint, type):
        yield from _other_parts(hint, value)


def _other_lists(hint: object, value: object) -> Iterator[object]:
    one = plainest(hint)
    if not isinstance(value, tuple):
        yield (one,)
        return
    yield (*value, one)
    if value:
        yield value[:-1]
        for other in others(hint, value[0]):
            yield (other, *value[1:])


def _other_mappings(hint: object, value: object) -> Iterator[object]:
    if not isinstance(value, Mapping):
        yield {"x": plainest(hint)}
        return
    yield {**value, "x": plainest(hint)}
    for name in list(value)[:2]:
        yield {one: value[one] for one in value if one != name}
        for other in others(hint, value[name]):
            yield {**value, name: other}


def _other_parts(hint: type, value: object) -> Iterator[object]:
    if not isinstance(value, hint):
        yield plainest(hint)
        return
    for field in layout_of(hint).fields:
        for other in others(field.hint, getattr(value, field.name)):
            yield _changed(value, field.name, other)


def plainest(hint: object) -> object:
    """Something of this type."""
    members = members_of(hint)
    member = members[0]
    origin = get_origin(member)
    if origin is Literal:
        return get_args(member)[0]
    if origin is tuple:
        return ()
    if origin is not None or member is dict:
        return {}
    plain: Mapping[object, object] = {str: "x", int: 1, float: 1, bool: True, type(None): None}
    if member in plain:
        return plain[member]
    assert isinstance(member, type)
    return member(**{one.name: plainest(one.hint) for one in layout_of(member).fields if one.required})


def named(records: Sequence[Record], at: int, forgery: Record, blobs: Blobs, *, whole: bool) -> int:
    """The record that a verification names if record number `at` of a journal is this; 0 if none. `whole`: to its end."""
    changed = [*records[: at - 1], forgery, *(records[at:] if whole else ())]
    if migrated_at(changed) != migrated_at(records[: len(changed)]):
        return at  # what stands before the last migration is not verified, so a forged one is none any more
    try:
        read_tree(changed, blobs, strict=True)
    except ReplayMismatch as error:
        return error.n
    except JournalError as error:
        return getattr(error, "n", at)
    return 0
