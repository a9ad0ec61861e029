"""One field of a form, the values that a person may enter, and the sentence that says why a value is refused."""

# Annotations are objects here, and not strings: the codec reads them.

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from iact.core.errors import UsageError
from iact.core.ports import JSON

LONGEST_TEXT: Final = 10_000
"""The most characters that a person can enter in one field."""
LONGEST_RESULT: Final = 100_000
"""The most characters of the result of a front end's tool, which a program writes."""
LARGEST: Final = 1e15
"""The greatest number, up to which whole numbers are exact everywhere."""
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")

FieldKind: TypeAlias = Literal["text", "number", "integer", "boolean", "choice", "choices"]
FieldFormat: TypeAlias = Literal["", "email", "uri", "date", "date-time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form."""

    name: str
    """Under which its value is returned to the module."""
    kind: FieldKind
    title: str = ""
    """What a person reads in place of the name, if there is one."""
    description: str = ""
    required: bool = False
    default: JSON = None
    """The value if nobody changes it; None: no value."""
    format: FieldFormat = ""
    """What a text must be."""
    least: float | None = None
    """The least value of a number, length of a text, or number of choices; None: no bound."""
    most: float | None = None
    """The greatest; None: no bound."""
    choices: tuple[str, ...] = ()
    """The values that can be chosen."""
    titles: tuple[str, ...] = ()
    """The texts shown for them; empty: the values themselves."""


def filled(
    fields: tuple[FormField, ...], values: Mapping[str, JSON], *, longest: int = LONGEST_TEXT
) -> dict[str, JSON]:
    """Return what is sent to the module: the values, and the defaults of the fields that were left out.

    `longest`: the most characters of a text.

    Raises:
        UsageError: a value does not fit its field, a field is unknown, or a required one is missing.
    """
    names = {field.name for field in fields}
    unknown = next((name for name in values if name not in names), None)
    if unknown is not None:
        raise UsageError(f"The form has no field {unknown[:80]!r}.")

    complete: dict[str, JSON] = {}
    for field in fields:
        value = values.get(field.name)
        if value is None:
            value = field.default

        if value is None:
            if field.required:
                raise UsageError(f"{field.title or field.name}: this is needed.")
            continue
        why = wrong(field, value, longest=longest)
        if why is not None:
            raise UsageError(f"{field.title or field.name}: {why}")
        complete[field.name] = value
    return complete


def wrong(field: FormField, value: JSON, *, longest: int = LONGEST_TEXT) -> str | None:
    """Why a value is not valid for a field, as a sentence; None if it is valid. `longest`: as for `filled`."""
    match field.kind:
        case "boolean":
            return None if isinstance(value, bool) else "This is yes or no."
        case "number" | "integer":
            return _wrong_number(field, value)
        case "choice":
            return None if value in field.choices else "This must be one of what can be chosen."
        case "choices":
            if not isinstance(value, list) or any(item not in field.choices for item in value):
                return "These must be some of what can be chosen."
            if len(set(map(str, value))) < len(value):
                return "Each can be chosen once."
            return _out_of_bounds(field, len(value), "choices")
        case "text":
            return _wrong_text(field, value, longest)


def _wrong_number(field: FormField, value: JSON) -> str | None:
    # To Python, yes and no are numbers, too.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "This must be a number."
    if not math.isfinite(value):
        return "This must be a number."
    if field.kind == "integer" and not float(value).is_integer():
        return "This must be a whole number."
    if abs(value) > LARGEST:
        return f"This must be between {-LARGEST:g} and {LARGEST:g}."
    return _out_of_bounds(field, value, "")


def _wrong_text(field: FormField, value: JSON, longest: int) -> str | None:
    if not isinstance(value, str):
        return "This must be a text."
    if len(value) > longest:
        return f"This can have at most {longest:,} characters."

    match field.format:
        case "email" if not _is_email(value):
            return "This must be an e-mail address."
        case "uri" if not _is_uri(value):
            return "This must be an address such as https://example.org."
        case "date" if not _is_date(value):
            return "This must be a date such as 2026-11-25."
        case "date-time" if not _is_time(value):
            return "This must be a time such as 2026-11-25T16:00:00Z."
    return _out_of_bounds(field, len(value), "characters")


def _out_of_bounds(field: FormField, value: float, what: str) -> str | None:
    if field.least is not None and value < field.least:
        return f"This must be at least {field.least:.15g} {what}".rstrip() + "."
    if field.most is not None and value > field.most:
        return f"This can be at most {field.most:.15g} {what}".rstrip() + "."
    return None


def _is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False
