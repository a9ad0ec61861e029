"""Converts the JSON Schema of an MCP tool to one that the contract allows.

The core evaluates the schemas of modules, so it accepts only what can be evaluated in bounded time. Anything else in a
server's schema is left out here, which makes the schema wider: the server checks its arguments itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import jsonschema

from ext_modules.sdk.values import JSON

LARGEST: Final = 12 << 10
"""The most bytes of a schema; a larger one is reduced to names and types."""
_DEEPEST: Final = 16
_MOST: Final = 1000
"""The most parts of a schema once its references are followed."""
_REFUSED: Final = frozenset({
    "pattern", "patternProperties", "$schema", "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$comment",
    "$recursiveRef", "$recursiveAnchor", "$vocabulary", "$defs", "definitions", "dependentSchemas", "title", "$ref",
    "unevaluatedProperties", "unevaluatedItems", "uniqueItems",
})  # fmt: skip
_DATA: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose value is data, not a schema."""
_DEEPEST_DATA: Final = 4
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def allowed(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Convert `schema` to what the contract accepts: references are replaced by their targets, cycles are cut."""
    narrowed = _Narrowing(schema).narrow(dict(schema), (), 0)
    if not isinstance(narrowed, dict):
        narrowed = {}

    result: dict[str, JSON] = {**narrowed, "type": "object"}
    if not isinstance(result.get("properties"), dict):
        result["properties"] = {}
    return result if _fits(result) else _reduced(result)


def visible(text: str) -> str:
    """Replace control, bidirectional and other invisible characters in `text` by spaces, except for line ends."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


class _Narrowing:
    """One pass over the schema `root`."""

    def __init__(self, root: Mapping[str, JSON]) -> None:
        self._root = root
        self._left = _MOST

    def narrow(self, node: JSON, open_: tuple[str, ...], depth: int) -> JSON:
        """Return the allowed part of `node`; `open_`: the references that led here."""
        self._left -= 1
        if isinstance(node, str):
            return visible(node)
        if not isinstance(node, (dict, list)):
            return node
        if depth > _DEEPEST or self._left < 0:
            return {}

        if isinstance(node, list):
            return [self.narrow(item, open_, depth + 1) for item in node]
        target = node.get("$ref")
        if isinstance(target, str):
            return self._followed(node, target, open_, depth)

        narrowed: dict[str, JSON] = {}
        for key, value in node.items():
            if key == "properties":
                narrowed[key] = self._properties(value, open_, depth)
            elif key in _DATA and not _deep(value, _DEEPEST_DATA):
                narrowed[key] = _shown(value)
            elif key not in _REFUSED and key not in _DATA:
                narrowed[visible(key)] = self.narrow(value, open_, depth + 1)
        return narrowed

    def _followed(self, node: dict[str, JSON], target: str, open_: tuple[str, ...], depth: int) -> JSON:
        """The target of a reference, with what is said beside it; anything in place of a cycle, or of nothing."""
        if target in open_:
            return {}
        resolved = self._resolved(target)
        if not resolved:
            return {}
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return self.narrow({**resolved, **beside}, (*open_, target), depth + 1)

    def _properties(self, value: JSON, open_: tuple[str, ...], depth: int) -> JSON:
        """Keep all names, since names of properties are free."""
        if not isinstance(value, dict):
            return {}
        return {visible(name): self.narrow(schema, open_, depth + 1) for name, schema in value.items()}

    def _resolved(self, target: str) -> dict[str, JSON] | None:
        """The target of the reference "#/…"."""
        if not target.startswith("#/"):
            return None

        node: JSON = dict(self._root)
        for part in target[2:].split("/"):
            if not isinstance(node, dict):
                return None
            node = node.get(part.replace("~1", "/").replace("~0", "~"))
        return node if isinstance(node, dict) else None


def _deep(data: JSON, most: int) -> bool:
    """Whether `data` is nested more than `most` levels deep."""
    inner: list[JSON] = []
    if isinstance(data, dict):
        inner = list(data.values())
    elif isinstance(data, list):
        inner = data
    if not inner:
        return False
    return most == 0 or any(_deep(item, most - 1) for item in inner)


def _shown(data: JSON) -> JSON:
    """Replace invisible characters in all texts of `data`."""
    if isinstance(data, dict):
        return {visible(key): _shown(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_shown(item) for item in data]
    return visible(data) if isinstance(data, str) else data


def _fits(schema: dict[str, JSON]) -> bool:
    if len(json.dumps(schema).encode()) > LARGEST:
        return False
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


def _reduced(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Keep only the parameters' names and simple types, and which are required."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    plain: dict[str, JSON] = {}
    for name, value in properties.items():
        kind = value.get("type") if isinstance(value, dict) else None
        plain[name] = {"type": kind} if isinstance(kind, str) and kind in _TYPES else {}

    listed = schema.get("required")
    if not isinstance(listed, list):
        listed = []
    required: list[JSON] = [name for name in plain if name in listed]
    return {"type": "object", "properties": plain, "required": required}
