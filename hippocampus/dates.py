"""Times that people name, as spans of days: the times that a question asks about, and those that a memory mentions.

A memory's own time says when it was said; "yesterday" or "in May" in its text says when it happened. Memories of a time
help a question that names that time; memories that name a time help a question that asks for one. Only English is
understood; with other languages only this help is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS: Final = {
    word: count
    for count, words in enumerate(
        ("", "a an one", "two couple", "three few", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
    for word in words.split()
}
_MONTH: Final = "(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in MONTHS) + r")\b\.?"
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"

_ISO: Final = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")
_DAY_MONTH: Final = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?(?:\s+(?P<year>(?:19|20)\d\d))?", re.I)
_MONTH_DAY: Final = re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!\d)(?:,?\s+(?P<year>(?:19|20)\d\d))?", re.I)
_MONTH_YEAR: Final = re.compile(rf"\b{_MONTH},?\s+(?P<year>(?:19|20)\d\d)", re.I)
_MONTH_ALONE: Final = re.compile(
    rf"\b(?:in|since|during|last|this|early|late|mid|of|until|by)[\s-]+{_MONTH}(?!\s*\d)", re.I
)
_YEAR: Final = re.compile(r"\b(?:in|since|during|of|from)\s+(?P<year>(?:19|20)\d\d)\b", re.I)
_AGO: Final = re.compile(
    r"\b(?P<count>\d{1,3}|"
    + "|".join(_COUNTS)
    + r")(?:\s+of)?\s+(?P<unit>day|week|month|year)s?\s+(?:ago|before|back)\b",
    re.I,
)
_NEAR: Final = re.compile(
    r"\b(?P<which>last|this|next|past)\s+(?P<unit>week(?:end)?|month|year|night|" + "|".join(_DAYS) + r")\b",
    re.I,
)
_PLAIN: Final = re.compile(
    r"\b(?P<which>yesterday|today|tonight|tomorrow|this morning|the other day|recently)\b", re.I
)
_ASKS: Final = re.compile(
    r"\bwhen\b|\b(?:what|which)\s+(?:day|date|month|year|week|weekday|time)\b|\bhow\s+(?:long|recently|many\s+(?:days|weeks|months|years))\b",
    re.I,
)
_NEWEST: Final = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|these days|nowadays|right now|last time|still)\b",
    re.I,
)
_OLDEST: Final = re.compile(
    r"\b(?:originally|initially|at first|in the beginning|first time|earliest|used to)\b", re.I
)


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Days from `start` up to, but not including, `end`."""

    start: datetime
    end: datetime

    def near(self, other: TimeSpan) -> float:
        """1 where the spans meet, falling to 0 as the gap grows to the length of the longer one plus a week."""
        gap = max(self.start, other.start) - min(self.end, other.end)
        if gap <= timedelta(0):
            return 1.0
        reach = max(self.end - self.start, other.end - other.start) + timedelta(days=7)
        return max(0.0, 1.0 - gap / reach)


def day_of(time: datetime) -> TimeSpan:
    """The day that contains a time."""
    start = time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return TimeSpan(start, start + timedelta(days=1))


def asks_when(text: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS.search(text) is not None


def leaning(text: str) -> Literal["newest", "oldest", ""]:
    """Whether a question asks for the newest or the oldest information."""
    if _NEWEST.search(text):
        return "newest"
    return "oldest" if _OLDEST.search(text) else ""


def spans(text: str, said: datetime) -> list[TimeSpan]:
    """The times that a text names, which was said at `said`; without a year, the latest such time up to then."""
    today = day_of(said)
    found = list(_absolute(text, today))
    found.extend(_relative(text, today))
    return found


def tells_when(text: str) -> bool:
    """Whether a text names a time."""
    return bool(spans(text, datetime(2000, 6, 15, tzinfo=UTC)))


def _absolute(text: str, today: TimeSpan) -> Iterator[TimeSpan]:
    taken: list[tuple[int, int]] = []
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY, _MONTH_YEAR, _MONTH_ALONE, _YEAR):
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            span = _from_parts(match.groupdict(), today)
            if span is not None:
                taken.append(match.span())
                yield span


def _from_parts(parts: dict[str, str | None], today: TimeSpan) -> TimeSpan | None:
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    try:
        if month is None:
            return _year(int(year or 0))
        number = int(month) if month.isdigit() else _month_number(month)
        if year is None:
            here = today.start.year
            later = datetime(here, number, int(day or 1), tzinfo=UTC) > today.start
            return _span(here - 1 if later else here, number, day)
        return _span(int(year), number, day)
    except ValueError:
        return None


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _year(year: int) -> TimeSpan:
    return TimeSpan(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))


def _span(year: int, month: int, day: str | None) -> TimeSpan:
    if day is not None:
        return day_of(datetime(year, month, int(day), tzinfo=UTC))
    following = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return TimeSpan(datetime(year, month, 1, tzinfo=UTC), following)


def _relative(text: str, today: TimeSpan) -> Iterator[TimeSpan]:
    day = timedelta(days=1)
    for match in _AGO.finditer(text):
        count = match["count"].lower()
        number = int(count) if count.isdigit() else _COUNTS[count]
        unit = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"].lower()]
        blur = timedelta(days=0 if unit == 1 else unit // 2)
        middle = today.start - timedelta(days=number * unit)
        yield TimeSpan(middle - blur, middle + blur + day)
    for match in _NEAR.finditer(text):
        yield _named(match["which"].lower(), match["unit"].lower(), today)
    for match in _PLAIN.finditer(text):
        which = match["which"].lower()
        if which in ("recently", "the other day"):
            yield TimeSpan(today.start - 14 * day, today.end)
        else:
            shift = {"yesterday": -day, "tomorrow": day}.get(which, timedelta(0))
            yield TimeSpan(today.start + shift, today.end + shift)


def _named(which: str, unit: str, today: TimeSpan) -> TimeSpan:
    """`last week`, `this month`, `next Friday`."""
    day = timedelta(days=1)
    direction = {"last": -1, "past": -1, "this": 0, "next": 1}[which]
    if unit == "night":
        return TimeSpan(today.start - day, today.end - day)
    if unit in _DAYS:
        back = (today.start.weekday() - _DAYS.index(unit)) % 7
        if direction == 1 or (direction == 0 and back):
            start = today.start + (7 - back) * day
        else:
            start = today.start - (back or 7 * -direction) * day
        return TimeSpan(start, start + day)
    monday = today.start - today.start.weekday() * day
    if unit == "weekend":
        start = monday + (5 + 7 * direction) * day
        return TimeSpan(start, start + 2 * day)
    if unit == "week":
        return TimeSpan(monday + 7 * direction * day, monday + 7 * (direction + 1) * day)
    if unit == "month":
        index = today.start.year * 12 + today.start.month - 1 + direction
        return _span(index // 12, index % 12 + 1, None)
    return _year(today.start.year + direction)
