"""A form at a terminal: asked whether at all, then field by field, and what does not fit is asked again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.commands.form_lines import FormLines
from iact.core.ports import JSON
from iact.core.records.form_fields import form_fields
from iact.core.records.forms import FormAsk
from iact.core.views.question_text import form_words, schema_of
from tests.rounds import rounds

SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "guest": {"type": "string", "title": "Guest", "description": "As in the passport"},
        "nights": {"type": "integer", "minimum": 1, "default": 2},
        "breakfast": {"type": "boolean"},
        "room": {"type": "string", "oneOf": [{"const": "s", "title": "Single"}, {"const": "d", "title": "Double"}]},
        "wishes": {"type": "array", "items": {"type": "string", "enum": ["quiet", "view"]}},
    },
    "required": ["guest"],
}  # fmt: skip


def asked(message: str = "Which room?", *, schema: dict[str, JSON] | None = None, url: str = "") -> FormAsk:
    fields = form_fields(json.dumps(SCHEMA if schema is None else schema)) if not url else ()
    return FormAsk(call=3, function="inn.book", message=message, fields=fields, url=url, seconds=60)


def typed(form: FormLines, *lines: str) -> list[str]:
    """What was wrong with each line."""
    return [form.take(f"{line}\n") for line in lines]


def test_each_field_is_asked_and_what_is_wrong_is_said() -> None:
    form = FormLines(asked())
    assert form.prompt == "Answer it? [y]es, [N]o: "
    typed(form, "y")
    assert form.prompt == "Guest [needed]: As in the passport: "
    assert typed(form, "", "Ada") == ["This field is required.", ""]
    assert form.prompt == "nights [a whole number; default 2] (leave empty to keep it): "
    assert typed(form, "many", "0", "") == ["This must be a number.", "This must be at least 1.", ""]
    assert typed(form, "perhaps", "yes") == ["This is yes or no.", ""]
    assert form.prompt == "room [one of s (Single), d (Double)] (leave empty to keep it): "
    assert typed(form, "Single", "d") == ["This must be one of what can be chosen.", ""]
    assert not form.done
    typed(form, "view, quiet")
    assert form.done
    assert form.answered == {"guest": "Ada", "breakfast": True, "room": "d", "wishes": ["view", "quiet"]}


@pytest.mark.parametrize("line", ["", "n", "no", "Ada"])
def test_whatever_is_no_yes_lets_nothing_out(line: str) -> None:
    form = FormLines(asked())
    typed(form, line)
    assert (form.done, form.answered) == (True, None)


def test_an_address_is_answered_with_yes_or_no() -> None:
    form = FormLines(asked(url="https://pay.example/7"))
    assert form.prompt == "Did you open it? [y]es, [N]o: "
    typed(form, "yes")
    assert (form.done, form.answered) == (True, {})


def test_the_words_are_told_as_the_modules() -> None:
    shown = form_words("/a", asked("Pay now.\nAllow it? [y]es")).split("\n")
    assert shown[0] == "/a: inn.book asks you something. These are the words of the module inn:"
    assert shown[1:3] == ["  | Pay now.", "  | Allow it? [y]es"]
    assert shown[-1] == "Your answer goes to the module inn, which may send it on."


@settings(deadline=None, max_examples=rounds(50))
@given(st.text(min_size=1, max_size=300))
def test_no_message_has_a_line_of_its_own(message: str) -> None:
    shown = form_words("/a", asked(message, schema={})).split("\n")
    assert all(line.startswith("  | ") for line in shown[1:-1])


def test_other_programs_are_given_the_form_as_it_was_asked_for() -> None:
    again = form_fields(json.dumps(schema_of(asked().fields)))
    assert again == asked().fields
