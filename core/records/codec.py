"""Converts between record classes and the JSON of their headers. Strict, and prepared once for each class.

A field that is missing or has the wrong type is an error that names the field. A field that the class does not have is
kept separately, so that a reader can skip what a newer minor version added. Fields with their default value are omitted
when a record is written.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Final, Literal, TypeVar, Union, get_args, get_origin

from iact.core.ports import JSON
from iact.core.records.content import Content, Unknown
from iact.core.records.kinds import BY_NAME, CLASSES, WITH_OPERATIONS
from iact.core.records.mark import Group, Mark, Since

_JSON: Final = frozenset(get_args(JSON))
_ANY: Final = (str, int, float, bool, type(None), list, dict)
_NAMES: Final = {
    str: "a text", int: "a number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
    type(None): "nothing",
}  # fmt: skip
_SHOWN: Final = 60

_Part = TypeVar("_Part")

Read = Callable[[JSON], object]
Write = Callable[[object], JSON]


class Misfit(Exception):
    """A field that can't be read. `field`: its name, with its parents; `why`: the end of the sentence "its field …"."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"its field {field!r} {why}" if why else f"it has no field {field!r}")
        self.field = field
        self.why = why

    def below(self, name: str) -> Misfit:
        """The same error, reported for the object that holds the field as `name`."""
        return Misfit(f"{name}.{self.field}" if self.field else name, self.why)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class. `key`: its name in the header.

    `plain`: the JSON types that are taken as they are. `read`: converts the others. `write`: the reverse; None if the
    value is written as it is.
    """

    name: str
    key: str
    default: object
    mark: Mark | None
    since: str
    group: Layout | None
    hint: object
    plain: frozenset[type]
    read: Read | None
    write: Write | None

    @property
    def required(self) -> bool:
        """Whether the field must be present."""
        return self.default is MISSING


@dataclass(frozen=True, slots=True)
class Layout:
    """The JSON form of one class.

    `whole`: fields are written even with their default value, except fields of a later format that are None.
    """

    cls: type
    whole: bool
    fields: tuple[Field, ...]
    own: Mapping[str, Field]
    required: frozenset[str]
    groups: tuple[Field, ...]
    written: tuple[tuple[str, object, Field], ...]
    """Each field with its name and default, for fast access."""


# --- prepared once --------------------------------------------------------------------------------------------


def layout_of(cls: type) -> Layout:
    """Return the JSON form of a class."""
    found = _LAYOUTS.get(cls)
    if found is None:
        found = _LAYOUTS[cls] = _lay_out(cls)
    return found


_LAYOUTS: Final[dict[type, Layout]] = {}


def _lay_out(cls: type) -> Layout:
    assert dataclasses.is_dataclass(cls)
    fields = tuple(_field(one) for one in dataclasses.fields(cls))
    own = {one.key: one for one in fields if one.group is None}
    required = frozenset(one.name for one in own.values() if one.required)
    return Layout(
        cls,
        getattr(cls, "WHOLE", False),
        fields,
        own,
        required,
        tuple(one for one in fields if one.group is not None),
        tuple((one.name, one.default, one) for one in fields),
    )


def _field(field: dataclasses.Field[object]) -> Field:
    hint, notes = _unwrapped(field.type)
    default = field.default
    mark = next((one for one in notes if isinstance(one, Mark)), None)
    since = next((one.format for one in notes if isinstance(one, Since)), "")
    key = field.name.rstrip("_")
    if any(isinstance(one, Group) for one in notes):
        inner = next(one for one in members_of(hint) if isinstance(one, type) and one is not type(None))
        return Field(field.name, key, default, mark, since, layout_of(inner), hint, frozenset(), None, None)
    plain, read, write = _shape(hint)
    return Field(field.name, key, default, mark, since, None, hint, plain, read, write)


def _unwrapped(hint: object) -> tuple[object, tuple[object, ...]]:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return inner, tuple(notes)
    return hint, ()


def members_of(hint: object) -> tuple[object, ...]:
    """The alternatives of a union, or the one type that it is."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _shape(hint: object) -> tuple[frozenset[type], Read | None, Write | None]:
    """The JSON types that a field takes as they are, and how the others are read and written."""
    members = members_of(hint)
    if frozenset(members) >= _JSON:
        return frozenset(_ANY), None, None
    plain: set[type] = set()
    reads: dict[type, Read] = {}
    writes: list[tuple[type, Write]] = []
    for member in members:
        if member in (str, int, bool, type(None)):
            plain.add(member)
        elif member is float:
            plain |= {int, float}
        else:
            kind, read, (made, write) = _made(member)
            assert kind not in reads, f"one JSON type, two meanings: {hint}"
            reads[kind] = read
            if write is not None:
                writes.append((made, write))
    wanted = " or ".join(dict.fromkeys(_NAMES[one] for one in (*_ANY, dict) if one in plain or one in reads))
    return frozenset(plain), _reader(reads, wanted), _writer(writes)


def _reader(reads: Mapping[type, Read], wanted: str) -> Read:
    def read(value: JSON) -> object:
        make = reads.get(type(value))
        if make is None:
            raise Misfit("", f"is {_NAMES[type(value)]}, and should be {wanted}")
        return make(value)

    return read


def _writer(writes: list[tuple[type, Write]]) -> Write | None:
    if not writes:
        return None

    def write(value: object) -> JSON:
        for made, one in writes:
            if isinstance(value, made):
                return one(value)
        return value  # type: ignore[return-value]

    return write


def _made(hint: object) -> tuple[type, Read, tuple[type, Write | None]]:
    """How a type that is not a JSON type is read and written: its JSON type, and the Python type made from it."""
    origin = get_origin(hint)
    if origin is Literal:
        return str, _literal(frozenset(get_args(hint))), (str, None)
    if origin is tuple:
        return list, *_list(get_args(hint)[0])
    if origin is not None and issubclass(origin, Mapping):
        return dict, *_mapping(get_args(hint)[1])
    assert isinstance(hint, type), hint
    layout = layout_of(hint)
    return dict, lambda value: _object(layout, value), (hint, lambda value: _written(layout, value))


def _literal(allowed: frozenset[str]) -> Read:
    listed = ", ".join(sorted(repr(one) for one in allowed))

    def read(value: JSON) -> object:
        if value not in allowed:
            raise Misfit("", f"is {str(value)[:_SHOWN]!r}, and should be one of {listed}")
        return value

    return read


def _list(hint: object) -> tuple[Read, tuple[type, Write | None]]:
    plain, read, write = _shape(_unwrapped(hint)[0])

    def take(value: JSON) -> object:
        assert isinstance(value, list)
        if plain.issuperset(map(type, value)):
            return tuple(value)
        return tuple([_taken(plain, read, one, str(place)) for place, one in enumerate(value)])

    def put(value: object) -> JSON:
        assert isinstance(value, tuple)
        return list(value) if write is None else [write(one) for one in value]

    return take, (tuple, put)


def _mapping(hint: object) -> tuple[Read, tuple[type, Write | None]]:
    plain, read, write = _shape(_unwrapped(hint)[0])

    def take(value: JSON) -> object:
        assert isinstance(value, dict)
        if plain.issuperset(map(type, value.values())):
            return value
        return {name: _taken(plain, read, one, name[:_SHOWN]) for name, one in value.items()}

    def put(value: object) -> JSON:
        assert isinstance(value, Mapping)
        return dict(value) if write is None else {name: write(one) for name, one in value.items()}

    return take, (Mapping, put)


def _taken(plain: frozenset[type], read: Read | None, value: JSON, name: str) -> object:
    if type(value) in plain:
        return value
    assert read is not None
    try:
        return read(value)
    except Misfit as misfit:
        raise misfit.below(name) from None


def _object(layout: Layout, value: JSON) -> object:
    assert isinstance(value, dict)
    given, _ = _given(layout, value)
    return layout.cls(**given)


def _given(layout: Layout, header: Mapping[str, JSON]) -> tuple[dict[str, object], dict[str, JSON]]:
    """The arguments for a class, and the parts of the header that are not its own fields."""
    own = layout.own
    given: dict[str, object] = {}
    rest: dict[str, JSON] = {}
    for key, value in header.items():
        field = own.get(key)
        if field is None:
            rest[key] = value
        elif type(value) in field.plain:
            given[field.name] = value
        else:
            given[field.name] = _taken(field.plain, field.read, value, key)
    if not layout.required <= given.keys():
        missing = next(one for one in layout.fields if one.name in layout.required - given.keys())
        raise Misfit(missing.key, "")
    return given, rest


def _written(layout: Layout, value: object) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    whole = layout.whole
    for name, default, field in layout.written:
        one = getattr(value, name)
        if one is default and not whole:  # most fields of most records; skips the comparison
            continue
        if field.group is not None:
            if one is not None:
                found.update(_written(field.group, one))
        elif (
            (whole and not (field.since and one is None)) or one != default or type(one) is not type(default)
        ):
            found[field.key] = one if field.write is None else field.write(one)
    return found


# --- between contents and headers ----------------------------------------------------------------------------


def decode(kind: str, header: Mapping[str, JSON]) -> tuple[Content, Mapping[str, JSON]]:
    """Read a record's content from its header. Also returns the fields that its class does not have.

    Raises:
        Misfit: a field is missing or has the wrong type.
    """
    op = header.get("op") if kind in WITH_OPERATIONS else ""
    cls = BY_NAME.get((kind, op)) if isinstance(op, str) else None
    if cls is None:
        if kind in WITH_OPERATIONS and not isinstance(op, str):
            raise Misfit("op", "" if op is None else f"is {_NAMES[type(op)]}, and should be {_NAMES[str]}")
        return Unknown(kind, header), {}
    layout = layout_of(cls)
    given, rest = _given(layout, header)
    if op:
        del rest["op"]
    for field in layout.groups:
        assert field.group is not None
        keys = field.group.own.keys()
        if field.required or not keys.isdisjoint(rest):
            made, rest = _given(field.group, rest)
            given[field.name] = field.group.cls(**made)
    found = cls(**given)
    return found, rest


def encode_fields(content: Content) -> dict[str, JSON]:
    """Return the header fields of a record that are specific to its kind."""
    if isinstance(content, Unknown):
        return dict(content.fields)
    fields = _written(layout_of(type(content)), content)
    return {"op": content.OP, **fields} if content.OP else fields


def encode_part(part: object) -> dict[str, JSON]:
    """Return a part of a record as it is written in a header."""
    return _written(layout_of(type(part)), part)


def decode_list(kind: type[_Part], data: JSON) -> tuple[_Part, ...]:
    """Read a list of parts, or of strings, that is stored in a blob.

    Raises:
        Misfit: the data is not such a list.
    """
    if not isinstance(data, list):
        raise Misfit("", f"is {_NAMES[type(data)]}, and should be a list")
    plain, read, _ = _shape(kind)
    found = [_taken(plain, read, one, str(place)) for place, one in enumerate(data)]
    return tuple(one for one in found if isinstance(one, kind))


for _cls in CLASSES:
    layout_of(_cls)
