"""Every kind of record, with any content: as it is written it is read again, and nothing else is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iact.core.errors import JournalCorrupt
from iact.core.journal.parser import Parser
from iact.core.journal.record import encode
from iact.core.ports import JSON
from iact.core.records.codec import Field, Layout, Misfit, decode, encode_fields, layout_of, members_of
from iact.core.records.content import Content, Unknown
from iact.core.records.kinds import BY_NAME, CLASSES, KINDS
from iact.core.records.mark import Mark
from iact.core.records.record import Record
from tests.records import least, raw_record

AT = "2026-05-04T03:02:01.123456Z"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(-(10**12), 10**12)
ANY: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | NUMBER | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
every = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def values(hint: object) -> st.SearchStrategy[object]:
    """Whatever a field of this type can hold."""
    members = members_of(hint)
    if {*get_args(JSON)} <= {*members}:
        return ANY
    return st.one_of([_value(one) for one in members])


def _value(hint: object) -> st.SearchStrategy[object]:
    plain: Mapping[object, st.SearchStrategy[object]] = {
        str: TEXT, int: NUMBER, bool: st.booleans(), type(None): st.none(),
        float: st.floats(allow_nan=False, allow_infinity=False) | NUMBER,
    }  # fmt: skip
    if hint in plain:
        return plain[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is not None:
        return st.dictionaries(TEXT, values(inner[1]), max_size=3)
    assert isinstance(hint, type)
    return instances(hint)


def instances(cls: type) -> st.SearchStrategy[object]:
    """Any object of a class of records or of their parts."""
    given_: dict[str, st.SearchStrategy[object]] = {}
    for field in layout_of(cls).fields:
        if field.group is None:
            given_[field.name] = values(field.hint)
        else:
            made = instances(field.group.cls)
            given_[field.name] = made if field.required else st.none() | made
    return st.builds(cls, **given_)


def every_field(layout: Layout, *, optional: bool = False) -> Iterator[tuple[Field, bool]]:
    """The fields of a header that a class has; whether each must be there."""
    for field in layout.fields:
        if field.group is None:
            yield field, field.required and not optional
        else:
            yield from every_field(field.group, optional=not field.required)


def test_every_kind_has_a_class_and_every_class_a_kind() -> None:
    assert {cls.KIND for cls in CLASSES} == KINDS
    assert len(BY_NAME) == len(CLASSES)


@every
def test_every_field_says_whose_word_it_is(cls: type[Content]) -> None:
    for field, _ in every_field(layout_of(cls)):
        assert isinstance(field.mark, Mark), (cls, field.name)


@every
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_written_is_read_again(cls: type[Content], data: st.DataObject) -> None:
    content = data.draw(instances(cls))
    assert isinstance(content, Content)
    header = json.loads(json.dumps(encode_fields(content)))
    found, extra = decode(cls.KIND, header)
    assert found == content
    assert extra == {}
    assert encode_fields(found) == header
    record = Record(1, AT, "/a", 1, content, "text" if cls.BODY is not None else "")
    read = next(Parser().feed(encode(record)[0]))
    assert (read.content, read.kind, read.extra) == (content, cls.KIND, {})


def fields_of(cls: type[Content]) -> dict[str, JSON]:
    """A header of this kind with all its groups."""
    fields = least(cls.KIND, cls.OP)
    for group in layout_of(cls).groups:
        assert group.group is not None
        fields |= least("turn") if group.name == "generation" else {}
    return fields


@every
def test_a_missing_field_is_named(cls: type[Content]) -> None:
    whole = fields_of(cls)
    decode(cls.KIND, whole)
    for field, _ in every_field(layout_of(cls)):
        if field.required:
            refused(
                cls,
                field.key,
                {name: one for name, one in whole.items() if name != field.key},
                "has no field",
            )


@every
def test_a_mistyped_field_is_named(cls: type[Content]) -> None:
    whole = fields_of(cls)
    samples: tuple[JSON, ...] = ("?", 1, 1.5, True, None, [], {}, [None], [[{}]], {"?": None}, [True], ["?"])
    seen = 0
    for field, _ in every_field(layout_of(cls)):
        for value in samples:
            changed = {**whole, field.key: value}
            try:
                decode(cls.KIND, changed)
            except Misfit:
                refused(cls, field.key, changed, "is|has no field")
                seen += 1
            else:
                assert fits(field.hint, value), (cls, field.key, value)
    assert seen or not layout_of(cls).fields


def refused(cls: type[Content], key: str, fields: dict[str, JSON], why: str) -> None:
    """A journal with such a record is damaged, and says where."""
    data, _ = encode(raw_record(1, AT, cls.KIND, "/a", 1, "", fields))
    field = rf"field '{key}(\.[^']*)?'"
    with pytest.raises(
        JournalCorrupt, match=rf"^Record 1 \({cls.KIND}\) is damaged: (its|it) .*{field}"
    ) as raised:
        list(Parser().feed(data))
    assert raised.value.n == 1
    assert raised.value.offset == 0
    assert any(one in str(raised.value) for one in why.split("|"))


def fits(hint: object, value: object) -> bool:
    """Whether a value of JSON is one of this type, told in another way than the codec does."""
    members = members_of(hint)
    if {*get_args(JSON)} <= {*members}:
        return True
    return any(_fits(one, value) for one in members)


def _fits(hint: object, value: object) -> bool:
    if hint in (str, int, bool, type(None)):
        return type(value) is hint
    if hint is float:
        return type(value) in (int, float)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is tuple:
        return isinstance(value, list) and all(fits(inner[0], one) for one in value)
    if origin is not None:
        return isinstance(value, dict) and all(fits(inner[1], one) for one in value.values())
    assert isinstance(hint, type)
    fields = {field.key: field for field in layout_of(hint).fields}
    return (
        isinstance(value, dict)
        and all(name in value for name, field in fields.items() if field.required)
        and all(fits(fields[name].hint, one) for name, one in value.items() if name in fields)
    )


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("later", {"a": [1]}), ("control", {"op": "later", "by": "user"}), ("clearance", {"op": "x"})],
)
def test_what_a_newer_version_says_is_kept_as_it_is(kind: str, fields: dict[str, JSON]) -> None:
    found, extra = decode(kind, fields)
    assert isinstance(found, Unknown)
    assert (encode_fields(found), extra) == (fields, {})


def test_a_field_of_a_newer_version_is_kept_apart() -> None:
    found, extra = decode("say", {"mood": ["new"]})
    assert (encode_fields(found), extra) == ({}, {"mood": ["new"]})


@pytest.mark.parametrize("op", [None, 3])
def test_an_operation_is_a_text(op: JSON) -> None:
    with pytest.raises(Misfit, match="'op'"):
        decode("control", {"by": "user"} if op is None else {"by": "user", "op": op})
