"""Converts an MCP server's description of a tool to a module's description of a function.

Everything here is untrusted text, on its way to agents and people: names are made to fit, invisible characters are
removed, and long texts are cut. The core checks all of it again.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ext_modules.sdk.values import JSON

from .schema import allowed, visible

MOST: Final = 100
"""The most functions of one module; further tools are left out."""
_LINES, _BYTES = 20, 4000
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, ready to be offered."""

    name: str
    called: str
    """Its name at the server."""
    summary: str
    documentation: str
    schema: dict[str, JSON]
    """Of its arguments."""
    impact: Literal[0, 1, 2]
    idempotent: bool


def tools_of(listed: Sequence[Mapping[str, JSON]]) -> list[Tool]:
    """Convert a server's answers to `tools/list`, giving each tool a unique name.

    Leaves out tools with a parameter whose name the contract does not allow.
    """
    tools: dict[str, Tool] = {}
    for entry in listed:
        called = entry.get("name")
        schema = entry.get("inputSchema")
        if not isinstance(called, str) or not isinstance(schema, dict):
            continue

        fitting = allowed(schema)
        properties = fitting["properties"]
        if not isinstance(properties, dict) or not all(map(_PARAMETER.fullmatch, properties)):
            continue

        name = _unused(_name(called), tools)
        tools[name] = _tool(name, called, entry, fitting)
    return list(tools.values())[:MOST]


def _tool(name: str, called: str, entry: Mapping[str, JSON], schema: dict[str, JSON]) -> Tool:
    """A tool as it is offered. `entry`: as the server lists it."""
    description = textwrap.dedent(visible(_text(entry, "description"))).strip()
    heading = visible(_text(entry, "title"))
    summary = " ".join((description.partition("\n")[0] or heading or visible(called)).split())

    hints = entry.get("annotations")
    if not isinstance(hints, dict):
        hints = {}
    impact, idempotent = _effect(hints)
    return Tool(name, called, _cut(summary, 200), _documentation(description), schema, impact, idempotent)


def _text(entry: Mapping[str, JSON], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _effect(hints: Mapping[str, JSON]) -> tuple[Literal[0, 1, 2], bool]:
    """The impact, and whether the tool may be repeated. By the specification, tools are destructive by default."""
    if hints.get("readOnlyHint") is True:
        return 0, True
    is_idempotent = hints.get("idempotentHint") is True
    if hints.get("destructiveHint") is False:
        return 1, is_idempotent
    return 2, is_idempotent


def _name(called: str) -> str:
    """Convert `getWeather`, `get-weather`, `weather/get` to a function's name."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", called).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")
    if not plain[:1].isalpha():
        plain = f"tool_{plain}".rstrip("_")
    return plain[:44]


def _unused(name: str, taken: Mapping[str, Tool]) -> str:
    if name not in taken:
        return name
    return next(other for number in range(2, 1000) if (other := f"{name}_{number}") not in taken)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _documentation(text: str) -> str:
    short = "\n".join(line.rstrip() for line in text.splitlines()[:_LINES])
    return short.encode()[:_BYTES].decode("utf-8", "ignore")
