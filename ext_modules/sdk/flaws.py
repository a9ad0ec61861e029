"""Finds errors in a manifest, and makes up arguments that fit a schema. Pure; used when checking a module."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ext_modules.sdk.values import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def flaws(manifest: pb.Manifest) -> list[str]:
    """The errors in a manifest, one sentence each."""
    found: list[str] = []

    def rule(holds: bool, sentence: str) -> None:
        if not holds:
            found.append(sentence)

    rule(manifest.ByteSize() <= 1 << 20, "The manifest has more than 1 MiB.")
    rule(manifest.protocol == 1, f"The protocol is {manifest.protocol}; it must be 1.")
    rule(
        bool(re.fullmatch(r"[a-z][a-z0-9_]{0,31}", manifest.name)), f"The name {manifest.name!r} is not one."
    )
    rule(len(manifest.version) <= 64, "The version has more than 64 characters.")
    rule(one_line(manifest.purpose, 600), "The purpose is not one line of at most 600 characters.")
    rule(len(manifest.keywords) <= 100, "There are more than 100 keywords.")
    for word in manifest.keywords:
        rule(
            0 < len(word) <= 40 and one_line(word, 40) and word == word.lower(),
            f"The keyword {word!r} is not one.",
        )
    rule(
        1 <= len(manifest.functions) <= 100,
        f"There are {len(manifest.functions)} functions; there must be 1 to 100.",
    )
    names = [function.name for function in manifest.functions]
    rule(len(set(names)) == len(names), "Two functions have the same name.")
    aliases = [function.alias for function in manifest.functions if function.alias]
    rule(len(set(aliases)) == len(aliases), "Two functions have the same alias.")
    states = [state.name for state in manifest.states]
    rule(len(set(states)) == len(states), "Two states have the same name.")
    for state in manifest.states:
        rule(bool(_NAME.fullmatch(state.name)), f"The state {state.name!r} has no proper name.")
        rule(
            one_line(state.summary, 200),
            f"The summary of state {state.name} is not one line of at most 200.",
        )
    for function in manifest.functions:
        found += [f"{function.name}: {flaw}" for flaw in _function_flaws(function, states)]
    return found


def _function_flaws(function: pb.Function, states: Sequence[str]) -> list[str]:
    found = []
    if not _NAME.fullmatch(function.name):
        found.append("its name is not one.")
    if function.alias and not re.fullmatch(r"[A-Z][A-Z0-9_]{1,31}", function.alias):
        found.append(f"its alias {function.alias!r} is not one.")
    if not one_line(function.summary, 200):
        found.append("its summary is not one line of at most 200 characters.")
    if function.documentation.count("\n") >= 20 or len(function.documentation.encode()) > 4096:
        found.append("its documentation has more than 20 lines or 4 KiB.")
    if function.impact not in (0, 1, 2):
        found.append(f"its impact is {function.impact}; it must be 0, 1 or 2.")
    found += [
        f"it is offered in {state!r}, which is no state." for state in function.states if state not in states
    ]
    properties = properties_of(function)
    if properties is None:
        return [
            *found,
            'its schema is not a JSON object of type "object" with "properties", of at most 16 KiB.',
        ]
    if any(not _PARAMETER.fullmatch(name) for name in properties):
        found.append("a parameter's name is not one.")
    body = properties.get(function.body_parameter)
    if function.body_parameter and not (isinstance(body, dict) and body.get("type") == "string"):
        found.append(f"its body parameter {function.body_parameter!r} is not one of type string.")
    return found


def one_line(text: str, most: int) -> bool:
    """Whether a text is one line of at most `most` characters, all of them printable."""
    return len(text) <= most and all(char.isprintable() for char in text)


def schema_of(function: pb.Function) -> Mapping[str, JSON]:
    """The schema of a function's parameters; empty if it is not valid."""
    try:
        schema = json.loads(function.parameters_schema)
    except ValueError:
        return {}
    return schema if isinstance(schema, dict) else {}


def properties_of(function: pb.Function) -> Mapping[str, JSON] | None:
    """The schemas of a function's parameters by name, or None if they are not valid."""
    if len(function.parameters_schema.encode()) > 16 << 10:
        return None
    schema = schema_of(function)
    properties = schema.get("properties")
    return properties if schema.get("type") == "object" and isinstance(properties, dict) else None


def sample(schema: JSON) -> JSON:
    """Make up a value that fits a simple JSON Schema."""
    if not isinstance(schema, dict):
        return "x"
    for name in ("anyOf", "oneOf"):
        choices = schema.get(name)
        if isinstance(choices, list) and choices:
            return sample(choices[0])
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return listed[0]
    match schema.get("type"):
        case "integer" | "number":
            least = schema.get("minimum")
            return least if isinstance(least, (int, float)) else 1
        case "boolean":
            return False
        case "array":
            return []
        case "object":
            return fitting(schema)
        case "null":
            return None
        case _:
            return "x"


def fitting(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Make up arguments that fit a schema: a sample of each required property."""
    properties, required = schema.get("properties"), schema.get("required")
    given = properties if isinstance(properties, dict) else {}
    return {
        str(name): sample(given.get(str(name))) for name in (required if isinstance(required, list) else [])
    }
