"""Variables inside of a JSON argument: `names={"df": $orders}`.

The argument itself holds null where the variable goes, and the variable travels beside it under the JSON Pointer of
that place (RFC 6901: `/names/df`). A parameter is never called so, since a pointer begins with a slash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.ports import JSON

MOST: Final = 32
"""The most variables in one argument."""
_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<rest>[^"$\[\]{}]+)'
)
_WHOLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_MARK: Final = "\0"
"""What begins the text that stands for a variable while JSON is read; JSON itself can write it only as an escape."""
_ESCAPED_MARK: Final = "\\u0000"


@dataclass(frozen=True, slots=True)
class Nested:
    """A JSON argument with the variables that are named in it."""

    value: JSON
    """The argument, with null where a variable goes."""
    names: Mapping[str, str]
    """The variable's name, by the JSON Pointer of its place."""


def end_of(text: str, start: int) -> int | None:
    """Where the JSON list or object that begins at `start` ends, if it holds `$name` outside of its texts."""
    depth = 0
    position = start
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        depth += bool(token["open"]) - bool(token["close"])
        if depth:
            continue

        if read(text[start:position]) is None:
            return None
        return position
    return None


def read(text: str, *, quoted: bool = False) -> Nested | None:
    """Read JSON in which a value may be `$name`. None: it is not that.

    `quoted`: a text that is exactly "$name" names a variable, too, as models write it that write nothing but JSON.
    """
    if _ESCAPED_MARK in text:
        return None
    try:
        decoded = json.loads(_TOKEN.sub(_marked, text))
    except (ValueError, RecursionError):
        return None

    names: dict[str, str] = {}
    value = _taken_out(decoded, "", names, quoted=quoted)
    return Nested(value, names) if len(names) <= MOST else None


def _marked(token: re.Match[str]) -> str:
    """A token of the JSON, in which a variable is a text that JSON itself can't hold."""
    if not token["name"]:
        return token.group()
    return f'"{_ESCAPED_MARK}{token["name"]}"'


def _taken_out(value: JSON, pointer: str, names: dict[str, str], *, quoted: bool) -> JSON:
    """The value at `pointer` with null for each variable, whose names are added to `names`."""
    match value:
        case str() if value.startswith(_MARK):
            names[pointer] = value.removeprefix(_MARK)
            return None
        case str() if quoted and (whole := _WHOLE.fullmatch(value)):
            names[pointer] = whole[1]
            return None
        case list():
            return [
                _taken_out(item, f"{pointer}/{index}", names, quoted=quoted)
                for index, item in enumerate(value)
            ]
        case dict():
            return {
                key: _taken_out(item, f"{pointer}/{_escaped(key)}", names, quoted=quoted)
                for key, item in value.items()
            }
        case _:
            return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def parameter_of(name: str) -> str:
    """The parameter to which something that is passed by name belongs: `names` for `/names/df`."""
    if not name.startswith("/"):
        return name
    return _unescaped(name.split("/")[1])


def put_in(arguments: Mapping[str, JSON], texts: Mapping[str, JSON]) -> dict[str, JSON]:
    """The arguments with `texts` where they belong, by the name of a parameter or a JSON Pointer into one."""
    filled = dict(arguments)
    for name, text in texts.items():
        if not name.startswith("/"):
            filled[name] = text
            continue

        parameter, *place = [_unescaped(part) for part in name.split("/")[1:]]
        filled[parameter] = _with(filled.get(parameter), place, text)
    return filled


def _with(value: JSON, place: list[str], text: JSON) -> JSON:
    """A copy of `value` that holds `text` at the place to which the keys and numbers in `place` lead."""
    if not place:
        return text

    first, *rest = place
    if isinstance(value, list):
        items = list(value)
        index = int(first)
        if 0 <= index < len(items):
            items[index] = _with(items[index], rest, text)
        return items

    fields = value if isinstance(value, dict) else {}
    return {**fields, first: _with(fields.get(first), rest, text)}
