"""The matrix of faces and refusals: which cells are tested, and why some make no sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from tests.acceptance.talks import HTTP, STDIO, HttpFace, StdioFace

Refusal: TypeAlias = Literal[
    "above the intent", "outside the scope", "denied by the person", "another user's session",
    "a token without the scope", "a revoked token", "a quota used up",
]  # fmt: skip
REFUSALS: Final[Sequence[Refusal]] = get_args(Refusal)
FACES: Final[Sequence[HttpFace | StdioFace]] = [*HTTP, *STDIO]

_BY_TOKEN: Final = "no token: the client's user started the process"
NOT_HELD: Final[Mapping[tuple[HttpFace | StdioFace, Refusal], str]] = {
    **{
        (face, refusal): _BY_TOKEN
        for face in STDIO
        for refusal in ("a token without the scope", "a revoked token")
    },
    **{(face, "a quota used up"): "no account, and so no quota" for face in STDIO},
}
"""Cells without a test, with the reason."""


def table() -> str:
    """The matrix as Markdown."""
    head = "| | " + " | ".join(FACES) + " |"
    line = "|---" * (len(FACES) + 1) + "|"
    rows = [
        f"| {refusal} | " + " | ".join(NOT_HELD.get((face, refusal), "refused") for face in FACES) + " |"
        for refusal in REFUSALS
    ]
    return "\n".join([head, line, *rows])
