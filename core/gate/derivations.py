"""Values composed from what the user wrote: a list, a path, a filled template, a sum, an end. Pure.

The theory. Let S be the values that these five derivations can make from the user's words (and from the sets that a
policy names). S is finite and follows from these alone: S is fixed before any byte from a model, a tool or a page is
looked at. A value is covered if it is *in* S, compared exactly, never because it resembles something. So anyone who
controls the model and every module can choose among what the user could have meant, but can add nothing.

A choice can also carry a message if its alphabet is fine enough: with single letters, anything can be spelled.
Therefore:

- **No derivation joins two pieces directly.** Between any two pieces there is a separator (`/`, `, `) or the text of
  the user's own template, so that each piece is complete, as the user wrote it.
- **A piece is a name, never a word of prose.** It is text that the user put into quotation marks or backticks, or it
  has a form that prose does not have (a dot, a slash or an underscore inside). Only the slots of a template accept any
  word of the same message, because the user asked for that. A piece has at least three characters and occurs at most
  once in a value. A value has at most four pieces.
- **Numbers are not chosen.** A sum is that of *all* amounts of one currency in a sentence that mentions a total, never
  of some of them. An end is the only time of day in a sentence plus the only duration in it.
- **A path goes down.** No piece contains `.` or `..` as a step, and only the first piece can be absolute.

So |S| is at most n⁴ for n names, and it grows only with what the user wrote. The remaining risk is the same as for a
literal of the user: a wrong choice among the right values. `docs/design/derivations.md` describes the rejected
alternatives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from iact.core.gate.user_values import wrote

_SHORTEST: Final = 3
"""The fewest characters of a piece."""
_MOST: Final = 4
"""The most pieces of a value."""
_LONGEST: Final = 2_000
"""The most characters of a value that is examined."""
_LONGEST_NAME: Final = 200
_LONGEST_FILLING: Final = 60
_MANY: Final = 256
"""The most names that are examined. A text with more of them is a document, not a request."""

_QUOTED: Final = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|(?<!\w)'([^'\n]{1,200})'(?!\w)"
)
_TOKEN: Final = re.compile(r"[^\s,;()<>\[\]{}\"“”`']+")
_NAME: Final = re.compile(r"[~/]?[\w@-][\w@.:/-]*[._/][\w@.:/-]*")
"""A form that prose does not have. Abbreviations ("e.g.") have it too, but are too short without their last dot."""
_LETTER: Final = re.compile(r"[^\W_]")
_SLOT: Final = re.compile(r"\{\w{0,40}\}|<\w{1,40}>|\[\w{1,40}\]|\$\w{1,40}|%s")
_FILLING: Final = re.compile(r"\w[\w.-]*\w")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_ITEMS: Final = re.compile(r"[,;]\s*|\n")


def derived(said: Iterable[str], value: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether `value` can be composed, in one of the ways listed above, from the user's words and `known` values."""
    bare = value.strip()
    if not bare or len(bare) > _LONGEST:
        return False
    texts = tuple(said)
    names = _names_of(texts) | {one for one in known if len(one) >= _SHORTEST}
    return (
        _is_list(bare, names)
        or _is_path(bare, names)
        or any(_fills(one, bare, text, frozenset()) for text in texts for one in _templates(text))
        or any(_is_sum(text, bare) for text in texts)
        or any(_is_end(text, bare) for text in texts)
    )


@functools.lru_cache(maxsize=64)
def _names_of(texts: tuple[str, ...]) -> frozenset[str]:
    """The pieces in the user's words."""
    found: dict[str, None] = {}
    for text in texts:
        for quoted in _QUOTED.finditer(text):
            found[next(one for one in quoted.groups() if one is not None).strip()] = None
        for token in _TOKEN.finditer(text):
            bare = token.group().rstrip(".:!?/")
            if len(bare) <= _LONGEST_NAME and _NAME.fullmatch(bare):
                found[bare] = None
    return frozenset([one for one in found if len(one) >= _SHORTEST and _LETTER.search(one)][:_MANY])


# --- lists --------------------------------------------------------------------------------------------------------


def _is_list(value: str, names: frozenset[str]) -> bool:
    """Whether the value is several names with separators between them, each name once."""
    items = [one.strip() for one in _ITEMS.split(value)]
    return 2 <= len(items) == len(set(items)) and all(one in names for one in items)


# --- paths --------------------------------------------------------------------------------------------------------


def _is_path(value: str, names: frozenset[str]) -> bool:
    """Whether the value is the user's names joined by single `/`."""
    steps = value.rstrip("/")
    return "/" in steps and _joined(steps, names, _MOST, first=True)


def _joined(rest: str, names: frozenset[str], left: int, *, first: bool) -> bool:
    for piece in names:
        trimmed = piece.rstrip("/")
        if not _goes_down(trimmed, first=first):
            continue
        if rest == trimmed:
            return not first  # a name alone is a literal, not a composition
        if left > 1 and rest.startswith(f"{trimmed}/"):
            below = rest[len(trimmed) + 1 :]
            if _joined(below, names - {piece}, left - 1, first=False):
                return True
    return False


def _goes_down(piece: str, *, first: bool) -> bool:
    """Whether a name may be at this position of a path. A name that leads up, or starts over, may not."""
    steps = piece.split("/")
    leads_up = any(one in (".", "..") for one in steps)
    return bool(piece) and not leads_up and (first or not (piece[0] in "/~" or "://" in piece))


# --- templates ----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _templates(text: str) -> tuple[tuple[str, ...], ...]:
    """What the user wrote with slots to fill, each as the literals around its slots."""
    found = []
    for source in [*(token.group() for token in re.finditer(r"\S+", text)), *_quotes(text)]:
        literals = tuple(_SLOT.split(source.strip("`\"'“”,;!?")))
        parted = all(literals[1:-1])
        if 2 <= len(literals) <= _MOST and parted and sum(map(len, literals)) >= _SHORTEST:
            found.append(literals)
    return tuple(found[:_MANY])


def _quotes(text: str) -> Iterator[str]:
    for quoted in _QUOTED.finditer(text):
        yield next(one for one in quoted.groups() if one is not None)


def _fills(literals: tuple[str, ...], value: str, text: str, used: frozenset[str]) -> bool:
    """Whether `value` is a template with a different word of its message in each of its slots."""
    head, *tail = literals
    if not value.startswith(head):
        return False
    rest = value[len(head) :]
    if not tail:
        return not rest
    return any(
        rest.startswith(tail[0], end) and _fits(rest[:end], text, used)
        and _fills(tuple(tail), rest[end:], text, used | {rest[:end]})
        for end in range(_SHORTEST, min(len(rest), _LONGEST_FILLING) + 1)
    )  # fmt: skip


def _fits(piece: str, text: str, used: frozenset[str]) -> bool:
    return piece not in used and _FILLING.fullmatch(piece) is not None and wrote(_SLOT.sub(" ", text), piece)


# --- sums and ends ------------------------------------------------------------------------------------------------

_TOTAL: Final = re.compile(r"\b(?:total|sum|together|altogether|combined|plus)\b|\+", re.IGNORECASE)
_NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|\d{1,12}(?:\.\d{1,2})?"
_SIGNS: Final = r"[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY|dollars?|euros?|pounds?)\b"
_MONEY: Final = re.compile(
    rf"(?:({_SIGNS})\s?)?(?<![\w.,])({_NUMBER})(?![\w]|[.,]\d)(?:\s?({_SIGNS}))?", re.IGNORECASE
)
_CURRENCY: Final = {
    "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR",
    "pound": "GBP", "pounds": "GBP",
}  # fmt: skip


def _is_sum(text: str, value: str) -> bool:
    """Whether `value` is the sum of all amounts of one currency in a sentence that mentions a total."""
    if not re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,2})?", value):
        return False
    return Decimal(value) in _sums(text)


@functools.lru_cache(maxsize=256)
def _sums(text: str) -> frozenset[Decimal]:
    found: set[Decimal] = set()
    for part in _SENTENCE.split(text):
        amounts: dict[str, list[Decimal]] = {}
        if not _TOTAL.search(part):
            continue
        for before, number, behind in _MONEY.findall(part):
            sign = (before or behind).lower()
            if sign:
                name = _CURRENCY.get(sign, sign.upper())
                amounts.setdefault(name, []).append(Decimal(number.replace(",", "")))
        found |= {sum(several, Decimal(0)) for several in amounts.values() if len(several) > 1}
    return frozenset(found)


_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b|(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(
    r"(?<![\d.,:-])(\d{1,3}|an?|one|two|three|half an)[ -](hours?|minutes?|min)\b", re.IGNORECASE
)
_WORDS: Final = {"a": 60, "an": 60, "one": 60, "two": 120, "three": 180, "half an": 30}
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d)(?::00)?", re.ASCII)
_LEAST, _LONG = 5, 24 * 60


def _is_end(text: str, value: str) -> bool:
    """Whether `value` is a date of the user's, at a time of theirs plus a duration of theirs."""
    stamp = _STAMP.fullmatch(value)
    if stamp is None or not wrote(text, stamp[1]):
        return False
    return int(stamp[2]) * 60 + int(stamp[3]) in _ends(text)


@functools.lru_cache(maxsize=256)
def _ends(text: str) -> frozenset[int]:
    """Minutes of the day at which something ends, where a sentence has exactly one start time and one duration."""
    found: set[int] = set()
    for part in re.split(r"\n+|(?<=[!?])\s+|(?<=[a-z]{3}\.)\s+", text):
        begins, lasts = list(_begins(part)), list(_durations(part))
        if len(begins) == 1 and len(lasts) == 1 and begins[0] + lasts[0] < _LONG:
            found.add(begins[0] + lasts[0])
    return frozenset(found)


def _begins(text: str) -> Iterator[int]:
    for hour, minute, half, plain, minutes in _CLOCK.findall(text):
        if half and 1 <= int(hour) <= 12:
            yield (int(hour) % 12 + (12 if half.lower() == "p" else 0)) * 60 + int(minute or 0)
        elif plain:
            yield int(plain) * 60 + int(minutes)


def _durations(text: str) -> Iterator[int]:
    for amount, unit in _LENGTH.findall(text):
        hours = unit.lower().startswith("h")
        minutes = _WORDS.get(amount.lower()) if hours else None
        if minutes is None and amount.isdigit():
            minutes = int(amount) * (60 if hours else 1)
        if minutes is not None and minutes >= _LEAST:
            yield minutes
