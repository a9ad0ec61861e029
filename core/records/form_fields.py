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
LONGEST_SCHEMA: Final = 64 << 10
LONGEST_MESSAGE: Final = 4000
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
        told = json.loads(schema)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("type", "object") != "object":
        raise FormError("A form must be a JSON Schema of type object.")
    properties, required = told.get("properties", {}), told.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise FormError("A form's properties must be an object, and what is required a list.")
    if len(properties) > MOST_FIELDS:
        raise FormError(f"A form has at most {MOST_FIELDS} fields; this one has {len(properties):,}.")
    return tuple(_field(name, one, name in required) for name, one in properties.items())


def _field(name: str, told: JSON, required: bool) -> FormField:
    if not name or len(name) > _LONGEST_NAME or ODD.search(name):
        raise FormError(
            f"The name of a field must have 1 to {_LONGEST_NAME} visible characters; {_named(name[:80])} has not."
        )
    if not isinstance(told, dict):
        raise FormError(f"The field {name!r} of a form must be {_SIMPLE}.")
    if _is_secret(name, told):
        # MCP says so of its servers: "MUST NOT use form mode elicitation to request sensitive information".
        raise FormError(
            f"The field {name!r} asks for a secret. What is filled into a form stands in the session's journal, so "
            "let the person store it as a secret of the module, or ask with an address to open."
        )
    kind, choices, titles = _kind(name, told)
    least, most = {
        "text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems"),
    }.get(kind, ("minimum", "maximum"))  # fmt: skip
    field = FormField(
        name=name,
        kind=kind,
        title=_words(told, "title", _LONGEST_TITLE, name),
        description=_words(told, "description", _LONGEST_DESCRIPTION, name),
        required=required,
        format=_FORMATS.get(str(told.get("format", "")), "") if kind == "text" else "",
        least=_bound(told.get(least)),
        most=_bound(told.get(most)),
        choices=choices,
        titles=titles,
    )
    default = told.get("default")
    # A default that does not fit would be an answer that can't be given: the person is shown an empty field.
    return _with_default(field, default) if default is not None and wrong(field, default) is None else field


def _is_secret(name: str, told: Mapping[str, JSON]) -> bool:
    """Whether a field is marked as a secret or named like one."""
    if told.get("format") == "password" or told.get("writeOnly") is True:
        return True
    title = told.get("title")
    called = (name, title if isinstance(title, str) else "")
    return any(_SECRET.search(_CAMEL.sub(" ", one).replace("_", " ").replace("-", " ")) for one in called)


def _with_default(field: FormField, default: JSON) -> FormField:
    if isinstance(default, str) and ODD.search(default):
        raise FormError(f"The default of the field {field.name!r} has characters that nobody sees.")
    return replace(field, default=default)


def _kind(name: str, told: Mapping[str, JSON]) -> tuple[FieldKind, tuple[str, ...], tuple[str, ...]]:
    match told.get("type"):
        case "string" if "enum" in told or "oneOf" in told:
            return "choice", *_choices(name, told)
        case "string":
            return "text", (), ()
        case "number":
            return "number", (), ()
        case "integer":
            return "integer", (), ()
        case "boolean":
            return "boolean", (), ()
        case "array" if isinstance(items := told.get("items"), dict):
            return "choices", *_choices(name, items)
    raise FormError(f"The field {name!r} of a form must be {_SIMPLE}.")


def _choices(name: str, told: Mapping[str, JSON]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values, and the text shown for each (older revisions use `enumNames` for it)."""
    listed = told.get("oneOf") or told.get("anyOf")
    if isinstance(listed, list):
        pairs = [
            (one.get("const"), one.get("title")) if isinstance(one, dict) else (None, None) for one in listed
        ]
    else:
        values, names = told.get("enum"), told.get("enumNames")
        values = values if isinstance(values, list) else []
        names = names if isinstance(names, list) and len(names) == len(values) else [None] * len(values)
        pairs = list(zip(values, names, strict=True))
    found: dict[str, str] = {}
    for value, title in pairs:
        if not isinstance(value, str) or len(value) > _LONGEST_TITLE or ODD.search(value):
            raise FormError(
                f"What can be chosen in the field {name!r} must be texts of at most {_LONGEST_TITLE} visible characters."
            )
        found[value] = escaped(title[:_LONGEST_TITLE], every=True) if isinstance(title, str) else ""
    if not 1 <= len(found) <= MOST_CHOICES:
        raise FormError(
            f"The field {name!r} must give 1 to {MOST_CHOICES} texts to choose from; it gives {len(found)}."
        )
    return tuple(found), tuple(found.values()) if any(found.values()) else ()


def _words(told: Mapping[str, JSON], key: str, most: int, name: str) -> str:
    found = told.get(key, "")
    if not isinstance(found, str) or len(found) > most:
        raise FormError(f"The {key} of the field {name!r} must be a text of at most {most:,} characters.")
    return escaped(found, every=True)


def _bound(told: JSON) -> float | None:
    if isinstance(told, bool) or not isinstance(told, (int, float)) or not abs(told) <= LARGEST:
        return None
    return float(told)


def _named(text: str) -> str:
    return repr(escaped(text, every=True))
