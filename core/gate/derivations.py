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
    names = _names_of(texts) | {name for name in known if len(name) >= _SHORTEST}
    if _is_list(bare, names) or _is_path(bare, names):
        return True
    return any(_is_filled(text, bare) or _is_sum(text, bare) or _is_end(text, bare) for text in texts)


@functools.lru_cache(maxsize=64)
def _names_of(texts: tuple[str, ...]) -> frozenset[str]:
    """The pieces in the user's words."""
    pieces: dict[str, None] = {}  # in the order in which they were written, so that a bound cuts the same
    for text in texts:
        for quoted in _quotes(text):
            pieces[quoted.strip()] = None

        for token in _TOKEN.finditer(text):
            bare = token.group().rstrip(".:!?/")
            if len(bare) <= _LONGEST_NAME and _NAME.fullmatch(bare):
                pieces[bare] = None

    names = [piece for piece in pieces if len(piece) >= _SHORTEST and _LETTER.search(piece)]
    return frozenset(names[:_MANY])


# --- lists --------------------------------------------------------------------------------------------------------


def _is_list(value: str, names: frozenset[str]) -> bool:
    """Whether the value is several names with separators between them, each name once."""
    items = [item.strip() for item in _ITEMS.split(value)]
    return 2 <= len(items) == len(set(items)) and all(item in names for item in items)


# --- paths --------------------------------------------------------------------------------------------------------


def _is_path(value: str, names: frozenset[str]) -> bool:
    """Whether the value is the user's names joined by single `/`."""
    steps = value.rstrip("/")
    return "/" in steps and _joined(steps, names, _MOST, first=True)


def _joined(rest: str, names: frozenset[str], left: int, *, first: bool) -> bool:
    """Whether `rest` is at most `left` of the names, joined. `first`: the path begins here."""
    for piece in names:
        trimmed = piece.rstrip("/")
        if not _goes_down(trimmed, first=first):
            continue

        # A name alone is a literal, not a composition. Other names may still compose it, whatever order they come in.
        if rest == trimmed and not first:
            return True

        if left > 1 and rest.startswith(f"{trimmed}/"):
            below = rest[len(trimmed) + 1 :]
            if _joined(below, names - {piece}, left - 1, first=False):
                return True
    return False


def _goes_down(piece: str, *, first: bool) -> bool:
    """Whether a name may be at this position of a path. A name that leads up, or starts over, may not."""
    if not piece:
        return False

    leads_up = any(step in (".", "..") for step in piece.split("/"))
    starts_over = piece[0] in "/~" or "://" in piece
    return not leads_up and (first or not starts_over)


# --- templates ----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _templates(text: str) -> tuple[tuple[str, ...], ...]:
    """What the user wrote with slots to fill, each as the literals around its slots."""
    templates = []
    for source in [*(token.group() for token in re.finditer(r"\S+", text)), *_quotes(text)]:
        literals = tuple(_SLOT.split(source.strip("`\"'“”,;!?")))
        has_slots = 2 <= len(literals) <= _MOST
        parted = all(literals[1:-1])  # two slots side by side would join two pieces directly
        if has_slots and parted and sum(map(len, literals)) >= _SHORTEST:
            templates.append(literals)
    return tuple(templates[:_MANY])


def _quotes(text: str) -> Iterator[str]:
    """What is between quotation marks or backticks."""
    for quoted in _QUOTED.finditer(text):
        yield next(inside for inside in quoted.groups() if inside is not None)


def _is_filled(text: str, value: str) -> bool:
    """Whether `value` is one of the user's templates, filled."""
    return any(_fills(template, value, text, frozenset()) for template in _templates(text))


def _fills(literals: tuple[str, ...], value: str, text: str, used: frozenset[str]) -> bool:
    """Whether `value` is a template with a different word of its message in each of its slots."""
    head, *tail = literals
    if not value.startswith(head):
        return False

    rest = value[len(head) :]
    if not tail:
        return not rest

    # Each end at which the slot could stop, and what follows it begin.
    for end in range(_SHORTEST, min(len(rest), _LONGEST_FILLING) + 1):
        piece = rest[:end]
        if not rest.startswith(tail[0], end) or not _fits(piece, text, used):
            continue
        if _fills(tuple(tail), rest[end:], text, used | {piece}):
            return True
    return False


def _fits(piece: str, text: str, used: frozenset[str]) -> bool:
    """Whether a piece may fill a slot: a word of the message, outside of its slots, that fills no other."""
    if piece in used or _FILLING.fullmatch(piece) is None:
        return False
    return wrote(_SLOT.sub(" ", text), piece)


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
    sums: set[Decimal] = set()
    for sentence in _SENTENCE.split(text):
        if not _TOTAL.search(sentence):
            continue

        amounts: dict[str, list[Decimal]] = {}
        for before, number, behind in _MONEY.findall(sentence):
            sign = (before or behind).lower()
            if sign:
                currency = _CURRENCY.get(sign, sign.upper())
                amounts.setdefault(currency, []).append(Decimal(number.replace(",", "")))

        # All amounts of a currency or none: which of them are added is nobody's choice.
        sums |= {sum(several, Decimal(0)) for several in amounts.values() if len(several) > 1}
    return frozenset(sums)


_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b|(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(
    r"(?<![\d.,:-])(\d{1,3}|an?|one|two|three|half an)[ -](hours?|minutes?|min)\b", re.IGNORECASE
)
_WORDS: Final = {"a": 60, "an": 60, "one": 60, "two": 120, "three": 180, "half an": 30}
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d)(?::00)?", re.ASCII)
_SHORTEST_DURATION: Final = 5
_DAY: Final = 24 * 60
"""In minutes, as all times here."""


def _is_end(text: str, value: str) -> bool:
    """Whether `value` is a date of the user's, at a time of theirs plus a duration of theirs."""
    stamp = _STAMP.fullmatch(value)
    if stamp is None or not wrote(text, stamp[1]):
        return False

    hour = int(stamp[2])
    minute = int(stamp[3])
    return hour * 60 + minute in _ends(text)


@functools.lru_cache(maxsize=256)
def _ends(text: str) -> frozenset[int]:
    """Minutes of the day at which something ends, where a sentence has exactly one start time and one duration."""
    ends: set[int] = set()
    for sentence in re.split(r"\n+|(?<=[!?])\s+|(?<=[a-z]{3}\.)\s+", text):
        starts = list(_starts(sentence))
        durations = list(_durations(sentence))
        if len(starts) != 1 or len(durations) != 1:
            continue

        end = starts[0] + durations[0]
        if end < _DAY:
            ends.add(end)
    return frozenset(ends)


def _starts(text: str) -> Iterator[int]:
    """The times of day in a text."""
    for hour, minute, half, plain_hour, plain_minute in _CLOCK.findall(text):
        if half and 1 <= int(hour) <= 12:
            afternoon = 12 if half.lower() == "p" else 0
            yield (int(hour) % 12 + afternoon) * 60 + int(minute or 0)
        elif plain_hour:
            yield int(plain_hour) * 60 + int(plain_minute)


def _durations(text: str) -> Iterator[int]:
    """The durations in a text. A word for a number counts for hours alone."""
    for amount, unit in _LENGTH.findall(text):
        in_hours = unit.lower().startswith("h")
        minutes = _WORDS.get(amount.lower()) if in_hours else None
        if minutes is None and amount.isdigit():
            minutes = int(amount) * (60 if in_hours else 1)

        if minutes is not None and minutes >= _SHORTEST_DURATION:
            yield minutes
