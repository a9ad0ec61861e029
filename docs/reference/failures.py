"""Write the table of failures into the guide of each face: python -m docs.reference.generated

The rows are the kinds of `iact.faces.failure`; a column says in what form each is told on that face.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from iact.faces.failure import CANCELLED, FAILURES, INVALID, STOPPED, FailureKind

GUIDES: Final = Path(__file__).parents[1] / "how-to"

_BEGIN: Final = "<!-- Written by docs/reference/failures.py from faces/failure.py; run: python -m docs.reference.generated -->"
_END: Final = "<!-- The end of what is written. -->"
_PART: Final = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)


def _in_responses(kind: FailureKind) -> str:
    again = "" if kind.again else ", `x-should-retry: false`"
    return f"{kind.status}{again}"


def _in_a2a(kind: FailureKind) -> str:
    if kind is CANCELLED:
        return "`TASK_STATE_CANCELED`"
    if kind is INVALID:
        return "JSON-RPC error -32602"
    if kind is STOPPED:
        return "JSON-RPC error -32603"
    return "`TASK_STATE_FAILED`, the code in `metadata.error`"


def _in_ag_ui(kind: FailureKind) -> str:
    if kind is CANCELLED:
        return "`RUN_FINISHED` with the outcome `cancelled`"
    if kind is INVALID:
        return "HTTP 400 before the run begins"
    return "`RUN_ERROR` with this code"


def _in_acp(kind: FailureKind) -> str:
    if kind is CANCELLED:
        return "`stopReason: cancelled`"
    if kind is INVALID:
        return "error -32602"
    if kind is STOPPED:
        return "error -32603"
    return "error -32603, the code in `data`"


def _in_mcp(kind: FailureKind) -> str:
    if kind is CANCELLED:
        return "`isError` with `status: cancelled`"
    if kind in (INVALID, STOPPED):
        return "`isError` with the sentence"
    return "`isError`, the code in `structuredContent.error`"


FORMS: Final[Mapping[str, tuple[str, Callable[[FailureKind], str]]]] = {
    "responses.md": ("HTTP status", _in_responses),
    "a2a.md": ("told as", _in_a2a),
    "ag-ui.md": ("told as", _in_ag_ui),
    "editors.md": ("told as", _in_acp),
    "mcp-server.md": ("told as", _in_mcp),
}
"""For each guide, the title of its column, and its text for a kind."""


def table(guide: str) -> str:
    """The table of a guide, between its marks."""
    title, form = FORMS[guide]
    rows = [f"| `{kind.code}` | {kind.when} | {form(kind)} |" for kind in FAILURES]
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
