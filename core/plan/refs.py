"""Data flow: resolves a node's refs against the outputs of earlier nodes.

A path that leads nowhere fails loudly, naming the missing key and the existing keys. A planner that guessed a field
name can then correct it, whereas a model that is given `null` invents (KAIJU's runs with silent nulls ended in made-up
addresses).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from iact.core.plan.model import WINNER, PlanNode, Ref
from iact.core.ports import JSON

PLAIN: Final = frozenset({"stdout", "output", "text", "result", "content"})
"""The names that planners use for all of a result that is text."""


class MissingField(Exception):
    """A ref can't be resolved; `str()` is one sentence for the planner."""


def select(output: JSON, path: str) -> JSON:
    """Return the value at `path` in `output`. Text that holds JSON is parsed, and plain text is its own `output`.

    Raises:
        MissingField: names the missing part of the path.
    """
    value = output
    parts = path.split(".") if path else []
    for depth, part in enumerate(parts):
        if isinstance(value, str):
            value = _opened(value)
            if isinstance(value, str) and part in PLAIN:
                continue
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            raise MissingField(f"has no {'.'.join(parts[: depth + 1])!r} ({_there(value)})")
    return value


def picks(output: JSON, path: str) -> bool:
    """Whether `path` takes one element of a list of several; False if it leads nowhere."""
    parts = path.split(".") if path else []
    for depth, part in enumerate(parts):
        try:
            value = select(output, ".".join(parts[:depth]))
        except MissingField:
            return False
        value = _opened(value) if isinstance(value, str) else value
        if isinstance(value, list) and len(value) > 1 and part.lstrip("-").isdigit():
            return True
    return False


def fill(template: str, value: JSON) -> str:
    """Return `template` with `{}` replaced by the value: text unchanged, anything else as JSON."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return template.replace("{}", shown)


def resolve(node: PlanNode, outputs: Mapping[str, JSON], winner: str | None = None) -> dict[str, JSON]:
    """Return the node's arguments with every ref replaced by its value.

    Raises:
        MissingField: names the parameter, the step and the field.
    """
    if not node.refs:
        return dict(node.params)
    values: dict[str, JSON] = dict(node.params)
    for name, ref in node.refs.items():
        values[name] = _value(node, name, ref, outputs, winner)
    return values


def _value(node: PlanNode, name: str, ref: Ref, outputs: Mapping[str, JSON], winner: str | None) -> JSON:
    step = winner if ref.step == WINNER else ref.step
    if step is None or step not in outputs:
        raise MissingField(f"parameter {name!r} of {node.id!r} refers to {ref.step!r}, which has no output")
    try:
        value = select(outputs[step], ref.field)
    except MissingField as error:
        raise MissingField(f"parameter {name!r} of {node.id!r}: the output of {step!r} {error}") from None
    return fill(ref.template, value) if ref.template else value


def _opened(text: str) -> JSON:
    if len(text) > 1 << 20 or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        data: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return data


def _there(value: JSON) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(str(key)[:40]) for key in list(value)[:12])
        return f"there is {keys}" if keys else "it is empty"
    if isinstance(value, list):
        return f"it is a list of {len(value)}"
    return f"it is {'text' if isinstance(value, str) else json.dumps(value)[:40]}"
