"""A function in one line, as a model reads it: what it takes, with the defaults, and what it does.

    shell.run <command> timeout=120 language=bash|python background=false

`<command>` is the body of the block; `path` alone must be given; `timeout=120` may be. Models guess a call from such a
line, and can't from a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from iact.core.language.actions import ActionSpec
from iact.core.language.labels import inline
from iact.core.ports import JSON

LEGEND: Final = "`<x>` is the block's body, a bare name must be given, name=default may be"
"""What a reader of signatures must know."""

_UNSAID: Final = "…"
"""Stands for a value that is not shown: there is none, it is long, or nobody has approved its words."""

_LONGEST_VALUE: Final = 24
"""The most characters of a default, or of a choice."""

_MOST_PARAMETERS: Final = 12
"""The most parameters of a signature."""
_MOST_CHOICES: Final = 8
_SIGNS: Final = frozenset(" \"'`|,=")
"""What would end a word in a signature."""
_LONGEST_SUMMARY: Final = 200


def signature(spec: ActionSpec, *, most: int = _MOST_PARAMETERS) -> str:
    """Return an action's name and parameters: the body first, then what is required, then what is optional.

    `most`: how many parameters are shown.
    """
    required = list[str]()
    optional = list[str]()
    for name, schema in spec.properties.items():
        if name == spec.body:
            continue

        if name in spec.required:
            required.append(_required(name, schema, vouched=spec.vouched))
        elif name == spec.rest:
            # Words without a name stand where what is required does.
            required.append(f"[{name}]")
        else:
            optional.append(f"{name}={_default(schema, vouched=spec.vouched)}")

    parameters = [*_body(spec), *required, *optional]
    if len(parameters) > most:
        parameters = [*parameters[:most], _UNSAID]
    return " ".join([spec.name, *parameters])


def line(spec: ActionSpec) -> str:
    """Return an action's line in a list: its signature, and what it does."""
    summary = inline(spec.summary, _LONGEST_SUMMARY).removesuffix(".")
    shown = f"- `{signature(spec)}`"
    return f"{shown} · {summary}" if summary else shown


def lines(specs: Iterable[ActionSpec]) -> list[str]:
    """Return the lines of several actions."""
    return [line(spec) for spec in specs]


def _body(spec: ActionSpec) -> list[str]:
    if spec.body is None:
        return []
    if spec.body in spec.required:
        return [f"<{spec.body}>"]
    if spec.body == spec.rest:
        # It is mostly written on the first line.
        return [f"[{spec.body}]"]
    return [f"[<{spec.body}>]"]


def _required(name: str, schema: Mapping[str, JSON], *, vouched: bool) -> str:
    choices = _choices(schema, vouched=vouched)
    return f"{name}={choices}" if choices else name


def _default(schema: Mapping[str, JSON], *, vouched: bool) -> str:
    """What stands for the value of an optional parameter: its choices, the default first, or the default alone."""
    choices = _choices(schema, vouched=vouched)
    if choices:
        return choices
    default = schema.get("default")
    if default not in (None, ""):
        return _value(default, vouched=vouched)

    # There is no default to show, so it shows the form of a value.
    if "contentMediaType" in schema:
        return "$x"
    types = _types(schema)
    if "array" in types:
        return "[]"
    if "object" in types:
        return "{}"
    return _UNSAID


def _choices(schema: Mapping[str, JSON], *, vouched: bool) -> str:
    """The values that a parameter may have, the default first; empty if any may be given."""
    options = schema.get("enum")
    if not isinstance(options, list) or not vouched:
        return ""

    default = schema.get("default")
    in_order = sorted(options, key=lambda option: option != default)
    shown = [_value(option, vouched=vouched) for option in in_order[:_MOST_CHOICES]]
    if len(options) > _MOST_CHOICES:
        shown.append(_UNSAID)
    return "|".join(shown)


def _value(value: JSON, *, vouched: bool) -> str:
    """A value as an agent would write it. A text that nobody has approved is left out, since every agent reads it."""
    if value is None:
        return _UNSAID
    if isinstance(value, str):
        if not value or not vouched:
            return _UNSAID
        shown = inline(value, _LONGEST_VALUE + 1)
        is_word = shown == value and len(shown) <= _LONGEST_VALUE and not set(shown) & _SIGNS
        return shown if is_word else _UNSAID

    shown = json.dumps(value, ensure_ascii=True)
    return shown if len(shown) <= _LONGEST_VALUE else _UNSAID


def _types(schema: Mapping[str, JSON]) -> set[str]:
    """The types that a parameter may have."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return {declared}
    union = schema.get("anyOf")
    options = union if isinstance(union, list) else []
    return {str(option.get("type")) for option in options if isinstance(option, dict)}
