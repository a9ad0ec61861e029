"""Fields of a client's request that the session does not use, stored next to the journal to be returned later.

There is a line for each response that has such fields. Nothing depends on them: a session that is moved or adopted without
this file only returns less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = "responses.jsonl"


@dataclass(frozen=True, slots=True)
class ClientFields:
    """The stored fields. `previous`: the id of the previous response, as the client sent it."""

    instructions: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    previous: str | None = None


def keep(folder: Path, record: int, given: ClientFields) -> None:
    """Store the fields of the response that began at a record of the session in `folder`. Blocks.

    Raises:
        OSError: the file can't be written.
    """
    if given == ClientFields():
        return
    line = {
        "record": record, "instructions": given.instructions, "metadata": dict(given.metadata), "previous": given.previous,
    }  # fmt: skip
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def kept(folder: Path, record: int) -> ClientFields:
    """Read the fields of the response that began at a record. Blocks."""
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            found = [one for line in file if (one := _read(line, record)) is not None]
    except FileNotFoundError:
        return ClientFields()
    return found[-1] if found else ClientFields()


def _read(line: str, record: int) -> ClientFields | None:
    """The fields in a line, or None if it belongs to another response or was cut off by a crash."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get("record") != record:
        return None
    instructions, metadata, previous = told.get("instructions"), told.get("metadata"), told.get("previous")
    return ClientFields(
        instructions if isinstance(instructions, str) else None,
        {str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
        previous if isinstance(previous, str) else None,
    )
