"""Fields of a client's request that the session does not use, stored next to the journal to be returned later.

There is a line for each response that has such fields. Nothing depends on them: a session that is moved or adopted without
this file only returns less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = "responses.jsonl"


@dataclass(frozen=True, slots=True)
class ClientFields:
    """The stored fields."""

    instructions: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    previous: str | None = None
    """The id of the previous response, as the client sent it."""
    by_call: bool = False
    """Whether the client is asked by calls."""
    in_form: bool = False
    """Whether the client wants the answer in a form."""
    again: int = 0
    """The record of the message that asked for the answer once more, because it was not of the wanted form."""
    answer: str = ""
    """The answer in the form that the client wanted, if it wanted one."""
    fault: str = ""
    """Why the answer was not of that form."""
    longest: int | None = None
    """The most characters of the answer."""
    asked: str = ""
    """The id of the question that the response ended with in words, if it did."""


def keep(folder: Path, record: int, given: ClientFields) -> None:
    """Store the fields of the response that began at a record of the session in `folder`. Blocks.

    Raises:
        OSError: the file can't be written.
    """
    if given == ClientFields():
        return
    line = {"record": record, **asdict(given), "metadata": dict(given.metadata)}
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def kept(folder: Path, record: int) -> ClientFields:
    """Read the fields of the response that began at a record. Blocks."""
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            # Only the lines of this response are parsed: a session that goes on for long has thousands of others.
            own = (line for line in file if line.startswith(f'{{"record": {record},'))
            found = [one for line in own if (one := _read(line, record)) is not None]
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
    metadata, again, longest = told.get("metadata"), told.get("again"), told.get("longest")
    return ClientFields(
        instructions=_text(told.get("instructions")),
        metadata={str(key): str(value) for key, value in metadata.items()}
        if isinstance(metadata, dict)
        else {},
        previous=_text(told.get("previous")),
        by_call=told.get("by_call") is True,
        in_form=told.get("in_form") is True,
        again=again if isinstance(again, int) else 0,
        answer=_text(told.get("answer")) or "",
        fault=_text(told.get("fault")) or "",
        longest=longest if isinstance(longest, int) else None,
        asked=_text(told.get("asked")) or "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
