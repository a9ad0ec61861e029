"""Records for tests, by kind and header fields, including records that the program never writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args, get_origin

from iact.core.ports import JSON
from iact.core.records.codec import Misfit, decode, encode_fields, layout_of, members_of
from iact.core.records.content import Unknown
from iact.core.records.kinds import BY_NAME, FORMAT
from iact.core.records.parts import Bounds, GrantTerms
from iact.core.records.record import GENESIS, Record
from iact.core.records.session import Open


def raw_record(
    n: int,
    at: str,
    kind: str,
    agent: str,
    step: int,
    body: str = "",
    fields: Mapping[str, JSON] | None = None,
    prev: str = GENESIS,
    digest: str = "",
    seal: str = "",
) -> Record:
    """A record with exactly this header, even if its kind does not allow these fields."""
    try:
        content, extra = decode(kind, fields or {})
    except Misfit:
        content, extra = Unknown(kind, fields or {}), {}
    return Record(n, at, agent, step, content, body, prev, digest, seal, extra)


def with_fields(record: Record, fields: Mapping[str, JSON]) -> Record:
    """The same record with these fields."""
    made = raw_record(record.n, record.at, record.kind, record.agent, record.step, fields=fields)
    return replace(record, content=made.content, extra=made.extra)


def opening(format: str = FORMAT, session: str = "20260101-000000-aaaaaaaa") -> Open:
    """The opening of a session in which every optional field is missing."""
    grant = GrantTerms(scope="default", allow=(("*",),), caps={}, intent=1, user="local")
    return Open(
        format=format, session=session, models={}, grant=grant, bounds=Bounds(), tail="changes", workspace="scratch"
    )  # fmt: skip


def opening_fields(format: str = FORMAT) -> dict[str, JSON]:
    """The fields of such an opening, as in its header."""
    return encode_fields(opening(format))


NOTICE: dict[str, JSON] = {"level": "warning", "code": "test"}
"""The header fields of a notice."""


def least(kind: str, op: str = "", **given: JSON) -> dict[str, JSON]:
    """The fewest header fields that a record of this kind can have, including the given ones."""
    fields: dict[str, JSON] = {"op": op} if op else {}
    layout = layout_of(BY_NAME[kind, op])
    for one in (layout, *(field.group for field in layout.groups if field.group and field.required)):
        fields |= {field.key: plainest(field.hint) for field in one.own.values() if field.required}
    return fields | given


def plainest(hint: object) -> JSON:
    """A JSON value that is valid for a field of this type."""
    member = members_of(hint)[0]
    origin = get_origin(member)
    if origin is Literal:
        found: JSON = get_args(member)[0]
        return found
    if origin is tuple:
        return []
    if origin is not None or member in (dict, list):
        return {}
    plain: dict[object, JSON] = {str: "x", int: 1, float: 1, bool: True, type(None): None}
    if member in plain:
        return plain[member]
    assert isinstance(member, type)
    return {one.key: plainest(one.hint) for one in layout_of(member).fields if one.required}
