"""Whether the user wrote a value. The same value may have another form in a sentence. Pure.

A literal counts as the user's if it occurs as a whole in what they wrote, never as a part of a longer word. Numbers,
dates, times and addresses have written forms besides the one that a function takes ("May 3rd", "1,200", "10:00 am").
Those forms are listed here, and no others: a form that a model has to interpret is not the user's word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_IDENTIFIER: Final = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>\"')]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s<>\"')]*)?|\b[A-Z]{2}\d{2}[A-Z0-9]{8,30}\b|\b(?!\d{4}-\d\d-\d\d\b)\d(?:[ -]?\d){8,}\b",
    re.IGNORECASE,
)
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::\d\d)?)?")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SCHEME: Final = re.compile(r"https?://")


def identifiers(text: str) -> list[str]:
    """Links, mail addresses, host names, and numbers of accounts, cards and telephones in a text."""
    return [match.group() for match in _IDENTIFIER.finditer(text)]


def wrote(said: str, value: str) -> bool:
    """Whether `value` occurs in what the user wrote, in one of its written forms."""
    bare = value.strip().rstrip(".,;:!?")
    if not bare or _stands(said, bare):
        return True

    if date := _ISO.fullmatch(bare):
        return _wrote_date(said, date)

    # A user who wrote https:// is not led to http://, and one who wrote neither may be led to both.
    if scheme := _SCHEME.match(bare):
        without_scheme = bare[scheme.end() :].rstrip("/")
        return _stands(said, bare.rstrip("/"), "/") or _stands(said, without_scheme, "/")

    return any(_stands(said, form) for form in _amounts(bare))


def could_have(lower: str, value: str) -> bool:
    """Whether `wrote` could be true of a text in `lower`, several texts in lower case. A cheap check of all."""
    bare = value.strip().rstrip(".,;:!?")
    if not bare or _ISO.fullmatch(bare):
        return True

    if scheme := _SCHEME.match(bare):
        return bare[scheme.end() :].rstrip("/").lower() in lower
    return bare.lower() in lower or any(form in lower for form in _amounts(bare))


def _stands(said: str, text: str, more: str = "") -> bool:
    """Whether `text` occurs as a whole. `more`: characters that may not be next to it either."""
    if not text or text.lower() not in said.lower():
        return False
    around = rf"(?<![\w@.+{more}-]){re.escape(text)}(?![\w@+-]|{more or '@'}\w|\.\w)"
    return re.search(around, said, re.IGNORECASE) is not None


def _amounts(value: str) -> Iterator[str]:
    """Other ways to write an amount."""
    if re.fullmatch(r"-?\d+\.\d+", value):
        amount = float(value)
        yield from (f"{amount:.2f}", f"{amount:,.2f}")
        if amount.is_integer():
            yield from (f"{amount:.0f}", f"{amount:,.0f}")
    elif re.fullmatch(r"-?\d{4,15}", value):
        yield f"{int(value):,}"


def _wrote_date(said: str, date: re.Match[str]) -> bool:
    """Whether the user wrote a date, and the time if there is one. A year that they left out is any year."""
    year, month, day, hour, minute = date.groups()
    if not 1 <= int(month) <= 12:
        return False

    years = set(re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", said))
    if years and year not in years:
        return False

    name = _MONTHS[int(month) - 1]
    month_name = rf"{name[:3]}(?:{name[3:]}|t)?\.?"
    ordinal = rf"0?{int(day)}(?:st|nd|rd|th)?(?!\d)"
    forms = [
        rf"\b{month_name}\s+{ordinal}",
        rf"(?<!\d){ordinal}(?:\s+of)?\s+{month_name}",
        rf"{year}-{month}-{day}(?!\d)",
    ]
    if not any(re.search(form, said, re.IGNORECASE) for form in forms):
        return False

    # A date without a time means midnight.
    if hour is None or (hour, minute) == ("00", "00"):
        return True
    return any(re.search(form, said, re.IGNORECASE) for form in _clock(int(hour), minute))


def _clock(hour: int, minute: str) -> Iterator[str]:
    """Patterns of a time of day."""
    half = "a" if hour < 12 else "p"
    hour_of_half = hour % 12 or 12

    yield rf"(?<!\d)0?{hour}:{minute}(?!\d)"
    yield rf"(?<!\d)0?{hour_of_half}:{minute}\s*{half}\.?m\b"
    if minute == "00":
        yield rf"(?<!\d)0?{hour_of_half}\s*{half}\.?m\b"
    if (hour, minute) == (12, "00"):
        yield r"\bnoon\b"
