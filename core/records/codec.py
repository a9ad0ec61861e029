"""Converts between record classes and the JSON of their headers. Strict, and prepared once for each class.

A field that is missing or has the wrong type is an error that names the field. A field that the class does not have is
kept separately, so that a reader can skip what a newer minor version added. Fields with their default value are omitted
when a record is written.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

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
"""The most characters of a value, or of a name, that an error repeats."""

_Part = TypeVar("_Part")

Read = Callable[[JSON], object]
Write = Callable[[object], JSON]


class Misfit(Exception):
    """A field that can't be read. `why`: the end of the sentence "its field …"; empty: it is missing."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"its field {field!r} {why}" if why else f"it has no field {field!r}")
        self.field = field
        """Its name, with those of the objects that hold it: `bounds.plans.calls`."""
        self.why = why

    def below(self, name: str) -> Misfit:
        """The same error, reported for the object that holds the field as `name`."""
        inner = f".{self.field}" if self.field else ""
        return Misfit(f"{name}{inner}", self.why)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class."""

    name: str
    """The attribute."""
    key: str
    """Its name in the header: the attribute's, without the `_` that sets it apart from a word of Python."""
    default: object
    mark: Mark | None
    """Whether it is an outcome or derived; None in a part, which is what the whole is."""
    since: str
    """The first format that has it; empty: all have."""
    group: Layout | None
    """The class whose fields are in the header in its place (`mark.Group`)."""
    hint: object
    """Its type, without the notes about it."""
    plain: frozenset[type]
    """The JSON types that are taken as they are."""
    read: Read | None
    """Converts values of the other types; None if there are none."""
    write: Write | None
    """The reverse; None if the value is written as it is."""

    @property
    def required(self) -> bool:
        """Whether the field must be present."""
        return self.default is MISSING


@dataclass(frozen=True, slots=True)
class Layout:
    """The JSON form of one class."""

    cls: type
    whole: bool
    """Whether fields are written even with their default value, except those of a later format that are None."""
    fields: tuple[Field, ...]
    own: Mapping[str, Field]
    """The fields that are in the header under their own key, by it."""
    required: frozenset[str]
    """The names of the fields that must be present."""
    groups: tuple[Field, ...]
    """The fields whose own fields are in the header."""
    written: tuple[tuple[object, Field], ...]
    """Each field with its default, for fast access."""
    values_of: Callable[[object], Sequence[Any]]
    """The values of an object's fields, in the same order."""


# --- prepared once --------------------------------------------------------------------------------------------


def layout_of(cls: type) -> Layout:
    """Return the JSON form of a class."""
    layout = _LAYOUTS.get(cls)
    if layout is None:
        layout = _lay_out(cls)
        _LAYOUTS[cls] = layout
    return layout


_LAYOUTS: Final[dict[type, Layout]] = {}


def _getter(names: Sequence[str]) -> Callable[[object], Sequence[Any]]:
    """A function that gives the values of these attributes. Where there are several, it needs no call for each."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _lay_out(cls: type) -> Layout:
    assert dataclasses.is_dataclass(cls)
    fields = tuple(_field(field) for field in dataclasses.fields(cls))
    own = {field.key: field for field in fields if field.group is None}
    return Layout(
        cls,
        whole=getattr(cls, "WHOLE", False),
        fields=fields,
        own=own,
        required=frozenset(field.name for field in own.values() if field.required),
        groups=tuple(field for field in fields if field.group is not None),
        written=tuple((field.default, field) for field in fields),
        values_of=_getter([field.name for field in fields]),
    )


def _field(field: dataclasses.Field[object]) -> Field:
    """How one field is read and written, from its type and the notes in it."""
    hint, notes = _unwrapped(field.type)
    mark = next((note for note in notes if isinstance(note, Mark)), None)
    since = next((note.format for note in notes if isinstance(note, Since)), "")
    key = field.name.rstrip("_")

    is_group = any(isinstance(note, Group) for note in notes)
    if is_group:
        classes = [member for member in members_of(hint) if isinstance(member, type)]
        inner = next(cls for cls in classes if cls is not type(None))
        group = layout_of(inner)
        return Field(field.name, key, field.default, mark, since, group, hint, frozenset(), None, None)

    plain, read, write = _shape(hint)
    return Field(field.name, key, field.default, mark, since, None, hint, plain, read, write)


def _unwrapped(hint: object) -> tuple[object, tuple[object, ...]]:
    """A type without the notes about it, and these notes."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return inner, tuple(notes)
    return hint, ()


def members_of(hint: object) -> tuple[object, ...]:
    """The alternatives of a union, or the one type that it is."""
    is_union = get_origin(hint) in (Union, types.UnionType)
    return get_args(hint) if is_union else (hint,)


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
            # What is read must be told apart by its JSON type alone.
            json_type, read, (made, write) = _made(member)
            assert json_type not in reads, f"one JSON type, two meanings: {hint}"
            reads[json_type] = read
            if write is not None:
                writes.append((made, write))

    taken = [json_type for json_type in (*_ANY, dict) if json_type in plain or json_type in reads]
    wanted = " or ".join(dict.fromkeys(_NAMES[json_type] for json_type in taken))
    return frozenset(plain), _reader(reads, wanted), _writer(writes)


def _reader(reads: Mapping[type, Read], wanted: str) -> Read:
    """Reads a value by its JSON type. `wanted`: the types that there are, in words."""

    def read(value: JSON) -> object:
        make = reads.get(type(value))
        if make is None:
            raise Misfit("", f"is {_NAMES[type(value)]}, and should be {wanted}")
        return make(value)

    return read


def _writer(writes: list[tuple[type, Write]]) -> Write | None:
    """Writes a value by its Python type; None if all are written as they are."""
    if not writes:
        return None

    def write(value: object) -> JSON:
        for made, write_it in writes:
            if isinstance(value, made):
                return write_it(value)
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
    listed = ", ".join(sorted(repr(word) for word in allowed))

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
        return tuple([_taken(plain, read, item, str(place)) for place, item in enumerate(value)])

    def put(value: object) -> JSON:
        assert isinstance(value, tuple)
        if write is None:
            return list(value)
        return [write(item) for item in value]

    return take, (tuple, put)


def _mapping(hint: object) -> tuple[Read, tuple[type, Write | None]]:
    plain, read, write = _shape(_unwrapped(hint)[0])

    def take(value: JSON) -> object:
        assert isinstance(value, dict)
        if plain.issuperset(map(type, value.values())):
            return value
        return {name: _taken(plain, read, item, name[:_SHOWN]) for name, item in value.items()}

    def put(value: object) -> JSON:
        assert isinstance(value, Mapping)
        if write is None:
            return dict(value)
        return {name: write(item) for name, item in value.items()}

    return take, (Mapping, put)


def _taken(plain: frozenset[type], read: Read | None, value: JSON, name: str) -> object:
    """Read one value. `name`: where it is in the object or the list that holds it, for an error."""
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
        missing = layout.required - given.keys()
        first = next(field for field in layout.fields if field.name in missing)
        raise Misfit(first.key, "")
    return given, rest


def _written(layout: Layout, value: object) -> dict[str, JSON]:
    """The fields of an object as JSON."""
    fields: dict[str, JSON] = {}
    whole = layout.whole
    for (default, field), part in zip(layout.written, layout.values_of(value), strict=True):
        # Most fields of most records; skips the comparisons.
        if part is default and not whole:
            continue

        if field.group is not None:
            if part is not None:
                fields.update(_written(field.group, part))
            continue

        # 1 and True are equal, and are not the same in JSON.
        is_default = part == default and type(part) is type(default)
        is_later = part is None and bool(field.since)
        if is_default and (is_later or not whole):
            continue
        fields[field.key] = part if field.write is None else field.write(part)
    return fields


# --- between contents and headers ----------------------------------------------------------------------------


def decode(kind: str, header: Mapping[str, JSON]) -> tuple[Content, Mapping[str, JSON]]:
    """Read a record's content from its header. Also returns the fields that its class does not have.

    Raises:
        Misfit: a field is missing or has the wrong type.
    """
    has_operations = kind in WITH_OPERATIONS
    op = header.get("op") if has_operations else ""
    if has_operations and not isinstance(op, str):
        raise Misfit("op", "" if op is None else f"is {_NAMES[type(op)]}, and should be {_NAMES[str]}")
    cls = BY_NAME.get((kind, str(op)))
    if cls is None:
        return Unknown(kind, header), {}

    layout = layout_of(cls)
    given, rest = _given(layout, header)
    if op:
        del rest["op"]

    # A group takes its fields out of what is left.
    for field in layout.groups:
        assert field.group is not None
        keys = field.group.own.keys()
        if field.required or not keys.isdisjoint(rest):
            inner, rest = _given(field.group, rest)
            given[field.name] = field.group.cls(**inner)
    return cls(**given), rest


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
    parts = [_taken(plain, read, item, str(place)) for place, item in enumerate(data)]
    return tuple(part for part in parts if isinstance(part, kind))


for _cls in CLASSES:
    layout_of(_cls)
