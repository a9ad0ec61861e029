"""Schemas follow from signatures, and arguments become what the signature says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest

from ext_modules.sdk import Call, Value
from ext_modules.sdk.parameters import BadArguments, Parameters, parameters_of, schema_of
from ext_modules.sdk.values import JSON

BY_VALUE = {"type": "string", "contentMediaType": "application/octet-stream"}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (bytes, BY_VALUE),
        (Value, BY_VALUE),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict, {"type": "object"}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (str | list[str], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Any, {}),
    ],
)
def test_schema_of(annotation: object, schema: dict[str, JSON]) -> None:
    derived = schema_of(annotation)
    assert derived == schema
    jsonschema.Draft202012Validator.check_schema(derived)


@pytest.mark.parametrize("annotation", [complex, set[int], dict[int, str], Literal[b"x"], tuple[int, int]])
def test_what_has_no_schema_is_refused_where_it_is_written(annotation: object) -> None:
    with pytest.raises(TypeError, match="The annotation"):
        schema_of(annotation)


def forecast(
    call: Call, place: str, days: int = 3, *, unit: Literal["C", "F"] = "C", note: str | None = None
) -> str:
    return place


def test_a_signature_becomes_an_object_schema_without_the_call() -> None:
    parameters = parameters_of(forecast)
    assert parameters.call == "call"
    assert parameters.schema() == {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "additionalProperties": False,
        "required": ["place"],
    }


def unannotated(place) -> None:  # type: ignore[no-untyped-def]
    """No annotation."""


def starred(*places: str) -> None:
    """No names."""


def late(place: str, call: Call) -> None:
    """The call comes too late."""


@pytest.mark.parametrize("function", [unannotated, starred, late])
def test_improper_signatures_are_refused(function: Callable[..., None]) -> None:
    with pytest.raises(TypeError):
        parameters_of(function)


NOTHING = Value(b"")


def everything(
    text: str = "", number: int = 0, real: float = 0, flag: bool = False, items: list[int] | None = None,
    table: dict[str, str] | None = None, raw: bytes = b"", value: Value = NOTHING, either: int | str = 0,
    choice: Literal["a", 1] = "a",
) -> None:  # fmt: skip
    """One parameter of each kind."""


EVERYTHING: Parameters = parameters_of(everything)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("text", "x", "x"),
        ("number", 3, 3),
        ("number", 3.0, 3),
        ("real", 3, 3.0),
        ("flag", True, True),
        ("items", [1, 2], [1, 2]),
        ("items", None, None),
        ("table", {"a": "b"}, {"a": "b"}),
        ("raw", "x", b"x"),
        ("value", "x", Value(b"x", "text/plain")),
        ("either", "x", "x"),
        ("either", 1, 1),
        ("choice", 1, 1),
    ],
)
def test_arguments_become_what_the_annotation_says(name: str, given: JSON, expected: object) -> None:
    bound = EVERYTHING.bind({name: given}, {})[name]
    assert bound == expected
    assert type(bound) is type(expected)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("text", 1), ("text", None), ("number", "1"), ("number", 1.5), ("number", True), ("real", "x"),
        ("real", False), ("flag", 1), ("flag", "true"), ("items", ["x"]), ("items", {}), ("table", {"a": 1}),
        ("raw", 1), ("value", []), ("either", []), ("choice", "c"), ("choice", True),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_with_what_it_takes_and_what_was_given(name: str, given: JSON) -> None:
    with pytest.raises(BadArguments, match=rf"The parameter '{name}.*' takes .*, not .+\."):
        EVERYTHING.bind({name: given}, {})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("text", b"caf\xc3\xa9 \xff", "café �"),
        ("number", b"42", 42),
        ("items", b"[1, 2]", [1, 2]),
        ("table", b'{"a": "b"}', {"a": "b"}),
        ("raw", b"\x00\xff", b"\x00\xff"),
        ("value", b"\x00", Value(b"\x00", "image/png", "shot")),
        ("either", b"7", "7"),
    ],
)
def test_what_is_passed_by_value_becomes_what_the_parameter_takes(
    name: str, content: bytes, expected: object
) -> None:
    assert EVERYTHING.bind({}, {name: Value(content, "image/png", "shot")})[name] == expected


@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({}, {}, "'place' is missing; it takes"),
        ({"place": "x", "town": "y"}, {}, "no parameter 'town'; the parameters are: place, days, unit, note"),
        ({"place": "x"}, {"place": Value(b"y")}, "'place' is given twice"),
        ({"place": "x"}, {"days": Value(b"{")}, "the value is not JSON"),
        ({"place": "x"}, {"days": Value(b"[" * 100_000)}, "the value is not JSON"),
        ({"place": "x", "call": "y"}, {}, "no parameter 'call'"),
    ],
)
def test_arguments_that_do_not_fit(
    arguments: dict[str, JSON], values: dict[str, Value], message: str
) -> None:
    with pytest.raises(BadArguments, match=message):
        parameters_of(forecast).bind(arguments, values)
