"""Writes action blocks: the one form in which the journal, the history and the prompt know an action."""

from __future__ import annotations

import json
import re
from typing import Final

from iact.core.characters import paired
from iact.core.ports import JSON

_REFERENCE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_BREAKS: Final = re.compile(r"[\r\n]")


def block(info: str, body: str | None) -> str:
    """A fenced block whose fence nothing inside can close. `info`: one line."""
    mark = "~" if "`" in info else "`"
    longest = max((len(run) for run in re.findall(f"{mark}+", body or "")), default=0)
    fence = mark * max(3, longest + 1)
    return (
        f"{fence}{paired(info)}\n{fence}" if not body else f"{fence}{paired(info)}\n{paired(body)}\n{fence}"
    )


def written(value: JSON) -> str:
    """A value in the argument grammar, which has no line ends in texts; they become spaces."""
    if isinstance(value, str) and _REFERENCE.fullmatch(value):
        return value
    if isinstance(value, str):
        text = _BREAKS.sub(" ", value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return json.dumps(value, ensure_ascii=False)
