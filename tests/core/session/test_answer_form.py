"""The form of an answer that a program wants: which schemas are evaluated at all."""

from __future__ import annotations

import pytest

from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.session.answer_form import answer_form


def nested(levels: int) -> dict[str, JSON]:
    """A schema whose every level is evaluated again for each level around it."""
    inner: dict[str, JSON] = {}
    for _ in range(levels):
        inner = {"if": inner, "unevaluatedProperties": {}}
    return {"type": "object", **inner}


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        (nested(10), "unevaluatedProperties"),
        ({"type": "object", "properties": {"a": {"unevaluatedItems": False}}}, "unevaluatedItems"),
        ({"type": "object", "properties": {"a": {"uniqueItems": True}}}, "uniqueItems"),
    ],
)
def test_a_schema_whose_evaluation_could_take_for_ever_is_refused(
    schema: dict[str, JSON], keyword: str
) -> None:
    with pytest.raises(UsageError, match=keyword):
        answer_form(schema)
