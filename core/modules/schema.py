"""Decides whether a JSON Schema written by a hostile party can safely be evaluated.

Validating arguments must take bounded time: no reference leaves the schema, forms a cycle or multiplies, no regular
expression runs here, and no keyword is evaluated that takes more than one pass over a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import jsonschema

from iact.core.characters import HIDDEN
from iact.core.ports import JSON

_SCHEMA_BYTES: Final = 16 << 10
_SCHEMA_DEPTH: Final = 24
_SCHEMA_NODES: Final = 2000
_REFUSED: Final = frozenset(
    {"pattern", "patternProperties", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
     "$vocabulary", "id", "unevaluatedProperties", "unevaluatedItems", "uniqueItems"}
)  # fmt: skip
"""The keywords that are not evaluated. `unevaluatedProperties` and `unevaluatedItems` evaluate the schemas inside them
again at every level, so their cost doubles with the depth; `uniqueItems` compares every item with every other."""
_NAMED: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps free names to schemas."""
_DATA: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose value is data, not a schema."""
_DIALECT: Final = jsonschema.Draft202012Validator.META_SCHEMA["$id"]
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def clean(text: str) -> str:
    """Return `text`, if it contains no invisible character.

    Raises:
        ValueError: it contains one.
    """
    invisible = HIDDEN.search(text)
    if invisible:
        raise ValueError(f"it holds the invisible character U+{ord(invisible[0]):04X}")
    return text


def check_schema(text: str) -> dict[str, JSON]:
    """The parameter schema in `text`, if it can safely be evaluated; it has "properties".

    Raises:
        ValueError: it can't; the message says why.
    """
    schema = _parsed(text)

    # The order matters: how deep it is bounds all that follows, and what is no schema has no parts to count.
    _check_depth(schema, 0)
    if schema.get("$schema", _DIALECT) != _DIALECT:
        raise ValueError("the parameter schema is not of JSON Schema 2020-12")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"the parameter schema is not valid ({error.message[:200]})") from error

    properties = schema.setdefault("properties", {})
    assert isinstance(properties, dict)
    for name in properties:
        if not _PARAMETER.fullmatch(name):
            raise ValueError(f"the parameter name {name[:80]!r} is not allowed")
    _check_size(schema)
    return schema


def _parsed(text: str) -> dict[str, JSON]:
    """The object in a text that a schema may be."""
    if len(text.encode("utf-8", "replace")) > _SCHEMA_BYTES:
        raise ValueError("the parameter schema has more than 16 KiB")
    try:
        schema = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("the parameter schema is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the parameter schema is not JSON ({error})") from error

    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError('the parameter schema is not a JSON Schema of type "object"')
    return schema


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: object, depth: int) -> None:
    """Refuse what is nested too deeply, and every text with an invisible character."""
    if depth > _SCHEMA_DEPTH:
        raise ValueError("the parameter schema is nested too deeply")

    if isinstance(value, str):
        clean(value)
    elif isinstance(value, list):
        for item in value:
            _check_depth(item, depth + 1)
    elif isinstance(value, dict):
        for child in value.values():
            _check_depth(child, depth + 1)
        for key in value:
            clean(key)


def _check_size(schema: dict[str, JSON]) -> None:
    """Refuse keywords that the core does not evaluate, and references that leave the schema, form cycles or
    multiply."""
    definitions = schema.get("$defs", {})
    assert isinstance(definitions, dict)
    parts = _Parts(definitions)
    parts.count(schema, ())
    for name, definition in definitions.items():
        parts.count(definition, (name,))


class _Parts:
    """Counts the parts of a schema with these definitions, its references followed; each definition is counted once."""

    def __init__(self, definitions: dict[str, JSON]) -> None:
        self._definitions = definitions
        self._sizes: dict[str, int] = {}
        """The parts of the definitions that were counted."""

    def count(self, node: JSON, open_: tuple[str, ...]) -> int:
        """The parts of a node inside of the definitions `open_`."""
        total = 1
        if isinstance(node, dict):
            for keyword, part in node.items():
                total += self._keyword(keyword, part, open_)

        if total > _SCHEMA_NODES:
            raise ValueError(
                f"the parameter schema has more than {_SCHEMA_NODES} parts when its references are followed"
            )
        return total

    def _keyword(self, keyword: str, part: JSON, open_: tuple[str, ...]) -> int:
        if keyword in _REFUSED:
            raise ValueError(
                f"the parameter schema uses {keyword!r}, which the core does not evaluate; leave it out"
            )
        if keyword == "$defs":
            return 0
        if keyword == "$ref":
            return self._referenced(part, open_)
        return sum(self.count(child, open_) for child in _subschemas(keyword, part))

    def _referenced(self, target: JSON, open_: tuple[str, ...]) -> int:
        """The parts of the definition that a reference is to."""
        name = target.removeprefix("#/$defs/") if isinstance(target, str) else ""
        if target != f"#/$defs/{name}" or name not in self._definitions:
            raise ValueError(
                f"the parameter schema refers to {str(target)[:80]!r}; it may only refer to its own $defs"
            )
        if name in open_:
            raise ValueError(f"the parameter schema refers to {name!r} in a circle")

        if name not in self._sizes:
            self._sizes[name] = self.count(self._definitions[name], (*open_, name))
        return self._sizes[name]


def _subschemas(keyword: str, part: JSON) -> Iterator[JSON]:
    if keyword in _DATA:
        return
    if keyword in _NAMED and isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list):
        yield from part
    elif isinstance(part, dict):
        yield part
