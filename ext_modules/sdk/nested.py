"""Content passed by value inside of an argument: `names={"df": $orders}`.

The argument holds null where the content goes, and the content comes beside it under the JSON Pointer of that place
(RFC 6901: `/names/df`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ext_modules.sdk.values import JSON, Value

Given: TypeAlias = bool | int | float | str | Value | Sequence["Given"] | Mapping[str, "Given"] | None
"""An argument as it arrives: JSON, in which any value may be content."""


def put_in(
    arguments: Mapping[str, JSON], values: Mapping[str, Value]
) -> tuple[Mapping[str, Given], Mapping[str, Value]]:
    """Return the arguments with the content that belongs inside of them, and the content that is an argument itself."""
    whole: dict[str, Given] = dict(arguments)
    for pointer, value in values.items():
        if not pointer.startswith("/"):
            continue
        parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
        name = parts[0]
        whole[name] = _with(whole.get(name), parts[1:], value)

    itself = {name: value for name, value in values.items() if not name.startswith("/")}
    return whole, itself


def _with(given: Given, parts: Sequence[str], value: Value) -> Given:
    """A copy of `given` that holds `value` at the place that `parts` lead to."""
    if not parts:
        return value

    first = parts[0]
    rest = parts[1:]
    if isinstance(given, list):
        copy = list(given)
        for index, item in enumerate(given):
            if str(index) == first:
                copy[index] = _with(item, rest, value)
        return copy

    fields = given if isinstance(given, dict) else {}
    return {**fields, first: _with(fields.get(first), rest, value)}
