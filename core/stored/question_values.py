"""The long values of a call that a person is asked about: they are kept beside the journal, and opened where it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.core.records.calls import ClearanceAsk
from iact.core.records.record import Record
from iact.core.stored.blobs import blob

LARGEST: Final = 2_000_000
"""The largest value that is opened, in bytes. A larger one is named by its size and digest only."""


def question_values(folder: Path, question: Record) -> dict[str, str]:
    """Return the texts of a question's long values, by parameter. Blocks.

    `folder`: that of the session. A value that is no text, is too large, or can't be read is left out.
    """
    asked = question.content
    if not isinstance(asked, ClearanceAsk):
        return {}

    found: dict[str, str] = {}
    for name, value in (asked.attached or {}).items():
        content = blob(folder, value.sha256, most=LARGEST) if value.sha256 else None
        if content is None:
            continue
        try:
            found[name] = content.decode()
        except UnicodeDecodeError:
            continue
    return found
