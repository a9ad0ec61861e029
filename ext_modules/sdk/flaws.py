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
    sentences: list[str] = []

    def rule(holds: bool, sentence: str) -> None:
        if not holds:
            sentences.append(sentence)

    # The module.
    is_name = re.fullmatch(r"[a-z][a-z0-9_]{0,31}", manifest.name) is not None
    rule(manifest.ByteSize() <= 1 << 20, "The manifest has more than 1 MiB.")
    rule(manifest.protocol == 1, f"The protocol is {manifest.protocol}; it must be 1.")
    rule(is_name, f"The name {manifest.name!r} is not one.")
    rule(len(manifest.version) <= 64, "The version has more than 64 characters.")
    rule(one_line(manifest.purpose, 600), "The purpose is not one line of at most 600 characters.")
    rule(len(manifest.keywords) <= 100, "There are more than 100 keywords.")
    for word in manifest.keywords:
        is_keyword = word != "" and one_line(word, 40) and word == word.lower()
        rule(is_keyword, f"The keyword {word!r} is not one.")

    # Its functions and states, as lists.
    count = len(manifest.functions)
    rule(1 <= count <= 100, f"There are {count} functions; there must be 1 to 100.")
    names = [function.name for function in manifest.functions]
    rule(len(set(names)) == len(names), "Two functions have the same name.")
    aliases = [function.alias for function in manifest.functions if function.alias]
    rule(len(set(aliases)) == len(aliases), "Two functions have the same alias.")
    states = [state.name for state in manifest.states]
    rule(len(set(states)) == len(states), "Two states have the same name.")

    # Each of them.
    for state in manifest.states:
        rule(_NAME.fullmatch(state.name) is not None, f"The state {state.name!r} has no proper name.")
        is_summary = one_line(state.summary, 200)
        rule(is_summary, f"The summary of state {state.name} is not one line of at most 200.")
    for function in manifest.functions:
        sentences += [f"{function.name}: {flaw}" for flaw in _function_flaws(function, states)]
    return sentences


def _function_flaws(function: pb.Function, states: Sequence[str]) -> list[str]:
    """The errors in a function's entry, each in words that follow its name."""
    flaws: list[str] = []
    if not _NAME.fullmatch(function.name):
        flaws.append("its name is not one.")
    if function.alias and not re.fullmatch(r"[A-Z][A-Z0-9_]{1,31}", function.alias):
        flaws.append(f"its alias {function.alias!r} is not one.")
    if not one_line(function.summary, 200):
        flaws.append("its summary is not one line of at most 200 characters.")
    if function.documentation.count("\n") >= 20 or len(function.documentation.encode()) > 4096:
        flaws.append("its documentation has more than 20 lines or 4 KiB.")
    if function.impact not in (0, 1, 2):
        flaws.append(f"its impact is {function.impact}; it must be 0, 1 or 2.")
    unknown = [state for state in function.states if state not in states]
    flaws += [f"it is offered in {state!r}, which is no state." for state in unknown]

    # Its parameters.
    properties = properties_of(function)
    if properties is None:
        flaws.append('its schema is not a JSON object of type "object" with "properties", of at most 16 KiB.')
        return flaws
    if any(not _PARAMETER.fullmatch(name) for name in properties):
        flaws.append("a parameter's name is not one.")
    body = properties.get(function.body_parameter)
    takes_text = isinstance(body, dict) and body.get("type") == "string"
    if function.body_parameter and not takes_text:
        flaws.append(f"its body parameter {function.body_parameter!r} is not one of type string.")
    return flaws


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
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        properties = {}
    required = schema.get("required")
    if not isinstance(required, list):
        required = []
    return {str(name): sample(properties.get(str(name))) for name in required}
