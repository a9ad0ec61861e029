"""Write the table of failures into the guide of each face: python -m docs.reference.generated

The rows are the kinds of `iact.faces.failure`; a column says in what form each is told on that face.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.faces.failure import CANCELLED, FAILURES, INVALID, NOT_IN_FORM, STOPPED, FailureKind

GUIDES: Final = Path(__file__).parents[1] / "how-to"

_BEGIN: Final = "<!-- Written by docs/reference/failures.py from faces/failure.py; run: python -m docs.reference.generated -->"
_END: Final = "<!-- The end of what is written. -->"
_PART: Final = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)


def _status(kind: FailureKind) -> str:
    again = "" if kind.again else ", `x-should-retry: false`"
    status = f"{kind.status}{again}"
    return f"{status} for a chat; a response has the status `cancelled`" if kind is CANCELLED else status


@dataclass(frozen=True, slots=True)
class FaceForm:
    """In what form a face tells of failures."""

    others: str
    """How it tells of every kind that has no form of its own."""
    own: Mapping[FailureKind, str]


FORMS: Final[Mapping[str, FaceForm]] = {
    "a2a.md": FaceForm(
        "`TASK_STATE_FAILED`, the code in `metadata.error`",
        {
            CANCELLED: "`TASK_STATE_CANCELED`",
            INVALID: "JSON-RPC error -32602",
            STOPPED: "JSON-RPC error -32603",
        },
    ),
    "ag-ui.md": FaceForm(
        "`RUN_ERROR` with this code",
        {
            CANCELLED: "`RUN_FINISHED` with the outcome `cancelled`",
            INVALID: "HTTP 400 before the run begins",
        },
    ),
    "editors.md": FaceForm(
        "error -32603, the code in `data`",
        {CANCELLED: "`stopReason: cancelled`", INVALID: "error -32602", STOPPED: "error -32603"},
    ),
    "embed.md": FaceForm(
        "`failure_of(reply)` with this code",
        {
            CANCELLED: "a `Reply` with the status `cancelled`",
            NOT_IN_FORM: "does not occur: no form is asked for",
            STOPPED: "an `IactError` is raised",
            INVALID: "a `UsageError` is raised",
        },
    ),
    "mcp-server.md": FaceForm(
        "`isError`, the code in `structuredContent.error`",
        {
            CANCELLED: "`isError` with `status: cancelled`",
            INVALID: "`isError` with the sentence",
            STOPPED: "`isError` with the sentence",
        },
    ),
    "responses.md": FaceForm("", {kind: _status(kind) for kind in FAILURES}),
}
"""The form of each guide's face."""


def table(guide: str) -> str:
    """The table of a guide, between its marks."""
    form = FORMS[guide]
    title = "told as" if form.others else "HTTP status"
    rows = [f"| `{kind.code}` | {kind.when} | {form.own.get(kind, form.others)} |" for kind in FAILURES]
    return "\n".join([_BEGIN, "", f"| code | what happened | {title} |", "|---|---|---|", *rows, "", _END])


def page(guide: str) -> str:
    """A guide with its table as it is now."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    assert _PART.search(text) is not None, f"{guide} has no place for the table of failures"
    return _PART.sub(lambda _: table(guide), text)


def write() -> None:
    """Write the table into every guide."""
    for guide in FORMS:
        (GUIDES / guide).write_text(page(guide), encoding="utf-8")
