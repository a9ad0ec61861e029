"""The form of an answer that the user's program can read: one JSON object, by a JSON Schema if it gives one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import jsonschema

from iact.core.errors import UsageError
from iact.core.modules.schema import check_schema
from iact.core.objects import objects
from iact.core.ports import JSON

_AS_JSON: Final = "Answer with one JSON object and nothing else: no text before or after it, and no fence."
_BY_SCHEMA: Final = "It must follow this JSON Schema:"
_AGAIN: Final = (
    "Your answer was not what the program needs: {fault} Answer again, with the JSON object alone."
)
_LONGEST: Final = 500
"""The most characters of what is wrong."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer. `schema`: its JSON Schema; None for any JSON object."""

    schema: Mapping[str, JSON] | None = None

    @property
    def words(self) -> str:
        """What the root is told with the message."""
        if self.schema is None:
            return _AS_JSON
        return f"{_AS_JSON} {_BY_SCHEMA}\n\n{json.dumps(self.schema, ensure_ascii=False)}"

    def read(self, text: str) -> tuple[str, str]:
        """The JSON in an answer, and what is wrong with it as a sentence; one of them is empty."""
        found = next(objects(text), None)
        if found is None:
            return "", "It holds no JSON object."
        if self.schema is not None:
            validator = jsonschema.Draft202012Validator(self.schema)
            error = next(validator.iter_errors(found), None)
            if error is not None:
                place = "".join(f"[{part!r}]" for part in error.absolute_path)
                return "", f"At {place or 'its top'}, {error.message[:_LONGEST]}."
        return json.dumps(found, ensure_ascii=False), ""

    @staticmethod
    def again(fault: str) -> str:
        """The message that asks for the answer once more. `fault`: what is wrong with it, as a sentence."""
        return _AGAIN.format(fault=fault)


def answer_form(schema: object) -> AnswerForm:
    """Return the form with a JSON Schema that somebody else wrote.

    Raises:
        UsageError: the schema can't safely be evaluated, or is not one of an object; the message says why.
    """
    try:
        return AnswerForm(check_schema(json.dumps(schema)))
    except ValueError as error:
        raise UsageError(f"The answer's schema can't be used: {error}.") from error
