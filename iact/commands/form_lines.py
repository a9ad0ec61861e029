"""A module's form, asked at a terminal: first whether to answer at all, then field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from iact.core.ports import JSON
from iact.core.records.form_values import FormField, wrong
from iact.core.records.forms import FormAsk
from iact.core.views.question_text import field_words

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})


class FormLines:
    """A form that a person answers line by line.

    `answered`: the values, or None if the person declined. It is valid once `done` is true.
    """

    def __init__(self, asked: FormAsk) -> None:
        self._url = asked.url
        self._skill = asked.skill is not None
        self._by_plan = asked.by_plan
        self._accepts = asked.accepts
        self._left = list(asked.fields)
        self._begun = False
        self._values: dict[str, JSON] = {}
        self.done = False
        self.answered: Mapping[str, JSON] | None = None

    @property
    def prompt(self) -> str:
        """The prompt for the next line."""
        if not self._begun and self._skill:
            return "Approve it? [y]es, [N]o: "
        if not self._begun and self._by_plan:
            return "Answer it? [y]es, [N]o: " if self._accepts else "Did you do it? [y]es, [N]o: "
        if not self._begun:
            return "Did you open it? [y]es, [N]o: " if self._url else "Answer it? [y]es, [N]o: "
        field = self._left[0]
        left_out = "" if field.required and field.default is None else " (leave empty to keep it)"
        return f"{field_words(field)}{left_out}: "

    def take(self, line: str) -> str:
        """Process the next line. Returns what is wrong with it, or an empty string."""
        said = line.strip()
        if not self._begun:
            self._begun = said.lower() in _YES
            self.done = not self._begun or not self._left
        else:
            field = self._left[0]
            value = _value(field, said)
            why = wrong(field, value) if value is not None else _missing(field)
            if why is not None:
                return why
            if value is not None:
                self._values[field.name] = value
            self._left.pop(0)
            self.done = not self._left
        if self.done and self._begun:
            self.answered = self._values
        return ""


def _missing(field: FormField) -> str | None:
    return "This field is required." if field.required and field.default is None else None


def _value(field: FormField, said: str) -> JSON:
    """The value of a field in a line, or None if the line is empty."""
    if not said:
        return None
    match field.kind:
        case "boolean" if said.lower() in _YES | _NO:
            return said.lower() in _YES
        case "number" | "integer":
            try:
                number: JSON = json.loads(said)
            except ValueError:
                return said
            return number
        case "choices":
            return [one.strip() for one in said.split(",")]
        case _:
            return said
