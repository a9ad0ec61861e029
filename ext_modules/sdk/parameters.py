"""From a function's signature to its JSON Schema, and from arguments back to Python values.

Both directions read the same annotations, so a function receives exactly what its schema promises.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import keyword
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Union, get_args, get_origin

from ext_modules.sdk import nested
from ext_modules.sdk.call import Call
from ext_modules.sdk.nested import Given
from ext_modules.sdk.values import JSON, Value

Schema = dict[str, JSON]

_SIMPLE: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BY_VALUE: Schema = {"type": "string", "contentMediaType": "application/octet-stream"}


class BadArguments(Exception):
    """The arguments do not fit the function; the message names the parameter and what it accepts."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that callers can pass."""

    name: str
    argument: str
    """Its name in Python, which ends in _ where `name` is a keyword."""
    annotation: object
    required: bool
    schema: Schema


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function."""

    listed: tuple[Parameter, ...]
    call: str | None
    """The name of the parameter that receives the `Call`, if there is one."""

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [parameter.name for parameter in self.listed]

    def schema(self) -> Schema:
        """The JSON Schema, of type object."""
        properties: dict[str, JSON] = {parameter.name: parameter.schema for parameter in self.listed}
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required: list[JSON] = [parameter.name for parameter in self.listed if parameter.required]
        if required:
            schema["required"] = required
        return schema

    def bind(self, arguments: Mapping[str, JSON], values: Mapping[str, Value]) -> dict[str, object]:
        """Return the keyword arguments for the function. `values`: content passed by value, by parameter, or by JSON
        Pointer for content inside of an argument.

        Raises:
            BadArguments: an argument is missing, unknown, given twice or of the wrong type.
        """
        written, values = nested.put_in(arguments, values)
        known = {parameter.name: parameter for parameter in self.listed}
        for name in [*written, *values]:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise BadArguments(f"There is no parameter {name!r}; the parameters are: {takes}.")

        bound: dict[str, object] = {}
        for name, parameter in known.items():
            if name in values and name in written:
                raise BadArguments(f"The parameter {name!r} is given twice; give it once.")

            if name in values:
                value = from_value(values[name], parameter)
                bound[parameter.argument] = _convert(value, parameter.annotation, name)
            elif name in written:
                bound[parameter.argument] = _convert(written[name], parameter.annotation, name)
            elif parameter.required:
                raise BadArguments(
                    f"The parameter {name!r} is missing; it takes {_kind(parameter.annotation)}."
                )
        return bound


def parameters_of(function: Callable[..., object]) -> Parameters:
    """Derive the parameters from `function`'s signature.

    Raises:
        TypeError: a parameter has no annotation, or one without a JSON Schema.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    listed: list[Parameter] = []
    call: str | None = None
    for index, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        where = f"parameter {name!r} of {getattr(function, '__name__', 'the function')}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"The {where} must be an ordinary one that can be given by name.")
        if name not in hints:
            raise TypeError(f"The {where} needs a type annotation, from which its schema is derived.")

        annotation = hints[name]
        if annotation is Call:
            if index:
                raise TypeError(f"The {where} takes the Call and must be the first parameter.")
            call = name
            continue

        schema = schema_of(annotation, where)
        is_required = parameter.default is inspect.Parameter.empty
        has_json_default = not is_required and not isinstance(parameter.default, (bytes, Value))
        if has_json_default:
            schema = {**schema, "default": parameter.default}
        listed.append(Parameter(_called(name), name, annotation, is_required, schema))
    return Parameters(tuple(listed), call)


def _called(name: str) -> str:
    """How callers name a parameter: `from_` is `from`, which Python does not allow as a name."""
    stem = name.removesuffix("_")
    return stem if keyword.iskeyword(stem) else name


def schema_of(annotation: object, where: str = "annotation") -> Schema:
    """Return the JSON Schema of an annotation.

    Raises:
        TypeError: the annotation has none.
    """
    # Simple ones.
    if annotation is typing.Any or annotation is object:
        return {}
    if annotation is None or annotation is type(None):
        return {"type": "null"}
    if annotation in (bytes, Value):
        return dict(_BY_VALUE)
    if isinstance(annotation, type) and annotation in _SIMPLE:
        return {"type": _SIMPLE[annotation]}

    # Those with others inside.
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Annotated:
        return _annotated(inner, where)
    if origin is Literal:
        return _literal(inner, where)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(choice, where) for choice in inner]}
    if _is_list(annotation):
        return {"type": "array", "items": schema_of(inner[0], where)} if inner else {"type": "array"}
    if _is_dict(annotation):
        if not inner:
            return {"type": "object"}
        if inner[0] is not str:
            raise TypeError(f"The {where} is a dict whose keys are not str, which JSON has not.")
        return {"type": "object", "additionalProperties": schema_of(inner[1], where)}

    raise TypeError(
        f"The {where} is annotated {annotation!r}, which has no JSON Schema; use str, int, float, bool, "
        "list, dict, Literal, Optional, bytes or Value."
    )


def _is_list(annotation: object) -> bool:
    return annotation is list or get_origin(annotation) in (list, collections.abc.Sequence)


def _is_dict(annotation: object) -> bool:
    return annotation is dict or get_origin(annotation) in (dict, collections.abc.Mapping)


def _annotated(inner: tuple[object, ...], where: str) -> Schema:
    """The schema of a type with notes, of which the first text describes it."""
    schema = schema_of(inner[0], where)
    notes = [note for note in inner[1:] if isinstance(note, str)]
    return {**schema, "description": notes[0]} if notes else schema


def _literal(choices: tuple[object, ...], where: str) -> Schema:
    listed: list[JSON] = []
    for choice in choices:
        if not isinstance(choice, (str, int, type(None))):
            raise TypeError(f"The {where} has the literal {choice!r}, which JSON has not.")
        listed.append(choice)

    kinds = {type(choice) for choice in choices}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": _SIMPLE[kind], "enum": listed} if kind in _SIMPLE else {"enum": listed}


def from_value(value: Value, parameter: Parameter) -> JSON | Value:
    """Convert an argument passed by value for `parameter`: the value itself, its text, or the JSON it contains.

    Raises:
        BadArguments: it is not the JSON that the parameter accepts.
    """
    kinds = _leaves(parameter.annotation)
    if Value in kinds or bytes in kinds:
        return value
    if str in kinds or object in kinds or typing.Any in kinds:
        return value.text()

    try:
        parsed: JSON = json.loads(value.data)
    except (ValueError, RecursionError) as error:
        takes = _kind(parameter.annotation)
        raise BadArguments(
            f"The parameter {parameter.name!r} takes {takes}, but the value is not JSON: {error}."
        ) from error
    return parsed


def _leaves(annotation: object) -> tuple[object, ...]:
    """The types that an annotation allows."""
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Annotated:
        return _leaves(inner[0])
    if origin is Literal:
        return tuple({type(choice) for choice in inner})
    if origin in (Union, types.UnionType):
        return tuple(leaf for choice in inner for leaf in _leaves(choice))
    return (annotation,)


def _kind(annotation: object) -> str:
    return json.dumps(schema_of(annotation))


def _convert(given: Given, annotation: object, name: str) -> object:
    """Convert `given` to the type that `annotation` names.

    Raises:
        BadArguments: it does not fit.
    """
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Annotated:
        return _convert(given, inner[0], name)
    if origin in (Union, types.UnionType):
        return _convert_union(given, inner, annotation, name)
    if annotation is typing.Any or annotation is object:
        return given

    if _is_list(annotation) and isinstance(given, list):
        if not inner:
            return given
        return [_convert(item, inner[0], f"{name}[{index}]") for index, item in enumerate(given)]
    if _is_dict(annotation) and isinstance(given, dict):
        if not inner:
            return given
        return {key: _convert(item, inner[1], f"{name}.{key}") for key, item in given.items()}

    fits, value = _scalar(given, annotation)
    if fits:
        return value
    raise BadArguments(f"The parameter {name!r} takes {_kind(annotation)}, not {_shown(given)}.")


def _convert_union(given: Given, choices: tuple[object, ...], annotation: object, name: str) -> object:
    for choice in choices:
        try:
            return _convert(given, choice, name)
        except BadArguments:
            continue
    raise BadArguments(f"The parameter {name!r} takes {_kind(annotation)}, not {_shown(given)}.")


def _scalar(given: Given, annotation: object) -> tuple[bool, object]:
    """Whether `given` fits a type that has no others inside, and what the function receives."""
    if annotation is None or annotation is type(None):
        return given is None, None
    if get_origin(annotation) is Literal:
        return _choice(given, get_args(annotation))

    # Content, or text in its place.
    if annotation is Value:
        if isinstance(given, str):
            return True, Value(given.encode(), "text/plain", written=True)
        return isinstance(given, Value), given
    if annotation is bytes:
        if isinstance(given, str):
            return True, given.encode()
        return (True, given.data) if isinstance(given, Value) else (False, given)
    if isinstance(given, Value) and annotation is str:
        return True, given.text()

    # In Python, a bool is an int.
    if isinstance(given, bool) or annotation is bool:
        return isinstance(given, bool) and annotation is bool, given
    if annotation is str:
        return isinstance(given, str), given
    if annotation is float and isinstance(given, (int, float)):
        return True, float(given)
    if annotation is int and isinstance(given, float) and given.is_integer():
        return True, int(given)
    return annotation is int and isinstance(given, int), given


def _choice(given: Given, choices: tuple[object, ...]) -> tuple[bool, object]:
    for choice in choices:
        # In Python, 1 equals True.
        if given == choice and isinstance(given, bool) == isinstance(choice, bool):
            return True, choice
    return False, given


def _shown(given: Given) -> str:
    text = f"{len(given.data)} bytes" if isinstance(given, Value) else json.dumps(given, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
