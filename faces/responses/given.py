"""What a client said about its response and the session has no use for: kept beside the journal, to be told again.

A line for each response that has something to tell. Nothing depends on it, so a session that is moved or adopted without it
tells less, and no more.
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
    """`previous`: the id of the response that this one went on from, as it was given."""

    instructions: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    previous: str | None = None


def keep(folder: Path, record: int, given: ClientFields) -> None:
    """Keep what was said of the response that began at a record of the session in `folder`. Blocks.

    Raises:
        OSError: it can't be written.
    """
    if given == ClientFields():
        return
    line = {
        "record": record, "instructions": given.instructions, "metadata": dict(given.metadata), "previous": given.previous,
    }  # fmt: skip
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def kept(folder: Path, record: int) -> ClientFields:
    """What was said of the response that began at a record. Blocks."""
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            found = [one for line in file if (one := _read(line, record)) is not None]
    except FileNotFoundError:
        return ClientFields()
    return found[-1] if found else ClientFields()


def _read(line: str, record: int) -> ClientFields | None:
    """What a line says of this response; None: it is of another, or a crash cut it off."""
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
