"""The fields of a form that a module wants a person to fill in, read from a flat JSON Schema.

All of it is untrusted text that a person will see. So everything is bounded, and any field that is not one of a few
simple kinds is refused, with one sentence. In words that are only displayed, invisible characters are escaped. Names
and values, which are returned to the module, must not contain invisible characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iact.core.characters import ODD, escaped
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.form_values import LARGEST, FieldFormat, FieldKind, FormField, wrong

MOST_FIELDS: Final = 50
MOST_CHOICES: Final = 200
"""The most values that can be chosen in one field."""
LONGEST_SCHEMA: Final = 64 << 10
"""The most characters of a form's schema."""
LONGEST_MESSAGE: Final = 4000
"""The most characters of a question."""
_LONGEST_NAME: Final = 100
_LONGEST_TITLE: Final = 200
_LONGEST_DESCRIPTION: Final = 1000
_LONGEST_ADDRESS: Final = 2000

_FORMATS: Final[Mapping[str, FieldFormat]] = {
    "email": "email", "uri": "uri", "date": "date", "date-time": "date-time",
}  # fmt: skip
_ADDRESS: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:[/?#][!-~]*)?")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET: Final = re.compile(
    r"\b(pass ?(word|phrase|code)|passwd|secret|credentials?|(api|private|secret|access) ?key|(access|auth|api|bearer|refresh) ?token)s?\b",
    re.IGNORECASE,
)
"""The names and titles of fields that ask for a secret."""
_SIMPLE: Final = (
    "a text, a number, yes or no, one of a list of texts, or some of them: without anything nested"
)


class FormError(UsageError):
    """A form that can't be shown to a person."""


def shown_message(message: str) -> str:
    """Return the text of a question, with invisible characters escaped.

    Raises:
        FormError: the text is empty or too long.
    """
    if not message.strip() or len(message) > LONGEST_MESSAGE:
        raise FormError(f"A question to a person needs a message of 1 to {LONGEST_MESSAGE:,} characters.")
    return escaped(message, every=True)


def address(url: str) -> str:
    """Return an address that a person may be asked to open: https, with no characters that could be misread.

    Raises:
        FormError: it is not such an address.
    """
    if len(url) > _LONGEST_ADDRESS or _ADDRESS.fullmatch(url) is None:
        raise FormError(
            f"An address for a person to open must begin with https:// and a host, and be plain ASCII of at most "
            f"{_LONGEST_ADDRESS:,} characters, without a user name; {_named(url[:80])} is not."
        )
    return url


def form_fields(schema: str) -> tuple[FormField, ...]:
    """Read the fields of a flat JSON Schema, given as JSON. An empty text has no fields.

    Raises:
        FormError: the schema is not of a kind that can be shown to a person.
    """
    if not schema:
        return ()

    try:
        form = json.loads(schema)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict) or form.get("type", "object") != "object":
        raise FormError("A form must be a JSON Schema of type object.")

    properties = form.get("properties", {})
    required = form.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise FormError("A form's properties must be an object, and what is required a list.")
    if len(properties) > MOST_FIELDS:
        raise FormError(f"A form has at most {MOST_FIELDS} fields; this one has {len(properties):,}.")
    return tuple(_field(name, field, name in required) for name, field in properties.items())


_BOUNDS: Final[Mapping[FieldKind, tuple[str, str]]] = {
    "text": ("minLength", "maxLength"),
    "choices": ("minItems", "maxItems"),
}
"""The names of the least and the most in a schema, where they aren't those of a number."""


def _field(name: str, schema: JSON, required: bool) -> FormField:
    """Read one field, in whose schema whatever a person would not see rightly is refused."""
    if not name or len(name) > _LONGEST_NAME or ODD.search(name):
        raise FormError(
            f"The name of a field must have 1 to {_LONGEST_NAME} visible characters; {_named(name[:80])} has not."
        )
    if not isinstance(schema, dict):
        raise FormError(f"The field {name!r} of a form must be {_SIMPLE}.")
    if _is_secret(name, schema):
        # MCP says so of its servers: "MUST NOT use form mode elicitation to request sensitive information".
        raise FormError(
            f"The field {name!r} asks for a secret. What is filled into a form stands in the session's journal, so "
            "let the person store it as a secret of the module, or ask with an address to open."
        )

    kind, choices, titles = _kind(name, schema)
    format: FieldFormat = ""
    if kind == "text":
        format = _FORMATS.get(str(schema.get("format", "")), "")
    least, most = _BOUNDS.get(kind, ("minimum", "maximum"))
    field = FormField(
        name=name,
        kind=kind,
        title=_words(schema, "title", _LONGEST_TITLE, name),
        description=_words(schema, "description", _LONGEST_DESCRIPTION, name),
        required=required,
        format=format,
        least=_bound(schema.get(least)),
        most=_bound(schema.get(most)),
        choices=choices,
        titles=titles,
    )

    # A default that does not fit would be an answer that can't be given: the person is shown an empty field.
    default = schema.get("default")
    if default is None or wrong(field, default) is not None:
        return field
    return _with_default(field, default)


def _is_secret(name: str, schema: Mapping[str, JSON]) -> bool:
    """Whether a field is marked as a secret or named like one."""
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return True

    title = schema.get("title")
    if isinstance(title, str) and _SECRET.search(_as_words(title)):
        return True
    return _SECRET.search(_as_words(name)) is not None


def _as_words(name: str) -> str:
    """A name with blanks where another word begins: `apiKey`, `api_key` and `api-key` are "api Key" or "api key"."""
    return _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")


def _with_default(field: FormField, default: JSON) -> FormField:
    if isinstance(default, str) and ODD.search(default):
        raise FormError(f"The default of the field {field.name!r} has characters that nobody sees.")
    return replace(field, default=default)


def _kind(name: str, schema: Mapping[str, JSON]) -> tuple[FieldKind, tuple[str, ...], tuple[str, ...]]:
    """A field's kind, what can be chosen, and the text shown for each choice."""
    match schema.get("type"):
        case "string" if "enum" in schema or "oneOf" in schema:
            return "choice", *_choices(name, schema)
        case "string":
            return "text", (), ()
        case "number":
            return "number", (), ()
        case "integer":
            return "integer", (), ()
        case "boolean":
            return "boolean", (), ()
        case "array" if isinstance(items := schema.get("items"), dict):
            return "choices", *_choices(name, items)
    raise FormError(f"The field {name!r} of a form must be {_SIMPLE}.")


def _choices(name: str, schema: Mapping[str, JSON]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values, and the text shown for each; no texts at all if none has one."""
    titles: dict[str, str] = {}
    for value, title in _values_and_titles(schema):
        if not isinstance(value, str) or len(value) > _LONGEST_TITLE or ODD.search(value):
            raise FormError(
                f"What can be chosen in the field {name!r} must be texts of at most {_LONGEST_TITLE} visible characters."
            )
        titles[value] = ""
        if isinstance(title, str):
            titles[value] = escaped(title[:_LONGEST_TITLE], every=True)

    if not 1 <= len(titles) <= MOST_CHOICES:
        raise FormError(
            f"The field {name!r} must give 1 to {MOST_CHOICES} texts to choose from; it gives {len(titles)}."
        )
    if not any(titles.values()):
        return tuple(titles), ()
    return tuple(titles), tuple(titles.values())


def _values_and_titles(schema: Mapping[str, JSON]) -> list[tuple[JSON, JSON]]:
    """What can be chosen, in the form of today or of older revisions, which have `enum` and `enumNames`."""
    options = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(options, list):
        # What is no object has no value, and is then refused as one.
        objects = [option if isinstance(option, dict) else {} for option in options]
        return [(option.get("const"), option.get("title")) for option in objects]

    values = schema.get("enum")
    if not isinstance(values, list):
        return []
    names = schema.get("enumNames")
    if not isinstance(names, list) or len(names) != len(values):
        return [(value, None) for value in values]
    return list(zip(values, names, strict=True))


def _words(schema: Mapping[str, JSON], key: str, most: int, name: str) -> str:
    """A text of a field that is only displayed."""
    text = schema.get(key, "")
    if not isinstance(text, str) or len(text) > most:
        raise FormError(f"The {key} of the field {name!r} must be a text of at most {most:,} characters.")
    return escaped(text, every=True)


def _bound(value: JSON) -> float | None:
    """A bound; None if there is none, or none that means anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= LARGEST else None


def _named(text: str) -> str:
    return repr(escaped(text, every=True))
