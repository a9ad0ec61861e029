"""The matrix of provenance: what a clean agent finds of a tainted agent's data, by their ways of writing and reading.

"label": the data has the label, so a person is asked about the agent's next call of impact 2. "hidden": it is not
shown. "either": it depends on what memory recalls; it is never shown without its label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

Cell = Literal["label", "hidden", "either"]

WRITERS: Final[Sequence[str]] = (
    "files", "temporary files", "variables", "jobs", "process lists", "environment", "module state", "versions",
    "memory",
)  # fmt: skip
READERS: Final = WRITERS

_FILES: Final[Sequence[Cell]] = (
    "label", "label", "hidden", "label", "label", "label", "label", "label", "either",
)  # fmt: skip
"""After a file was touched, every call of a module may have read it. Variables and memory contain nothing of it."""
_NOWHERE: Final[Sequence[Cell]] = ("hidden",) * 8 + ("either",)

MATRIX: Final[Mapping[str, Sequence[Cell]]] = {
    "files": _FILES,
    "temporary files": _NOWHERE,
    # A small value stands in the message that hands it over, so every reader has read it.
    "variables": ("label",) * 9,
    "jobs": _FILES,
    "process lists": _FILES,
    "environment": _NOWHERE,
    "module state": _FILES,
    "versions": _FILES,
    "memory": tuple("label" if one == "memory" else "either" for one in READERS),
}

SIGNS: Final[Mapping[Cell, str]] = {
    "label": "label arrives",
    "hidden": "not shown",
    "either": "label, or not shown",
}


def table() -> str:
    """The matrix as Markdown."""
    head = "| written by ↓, read by → | " + " | ".join(READERS) + " |"
    line = "|---" * (len(READERS) + 1) + "|"
    rows = [f"| {way} | " + " | ".join(SIGNS[cell] for cell in MATRIX[way]) + " |" for way in WRITERS]
    return "\n".join([head, line, *rows])
