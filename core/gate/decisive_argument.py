"""Which argument of a call decides: who receives it, where it goes, how much it is, then all others. Pure.

A question names one argument. A policy can rank arguments (`Require.rank`). Otherwise the kind of an argument follows
from the words of its name, or else from the form of its value.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from iact.core.gate.rules import texts_of
from iact.core.ports import JSON


class Kind(enum.IntEnum):
    """What an argument determines about a call, the most decisive kind first."""

    WHO = 1
    WHERE = 2
    HOW_MUCH = 3
    OTHER = 4


_NAMES: Final = (
    (
        Kind.WHO,
        "to cc bcc recipient recipients participant participants invitee invitees payee iban account email emails"
        " address addresses user username owner collaborator member members contact phone key password",
    ),
    (
        Kind.WHERE,
        "url urls link host domain endpoint path dir directory folder destination target channel repo repository"
        " branch bucket server location",
    ),
    (Kind.HOW_MUCH, "amount price sum total quantity count number limit budget"),
)
_BY_NAME: Final = {word: kind for kind, words in _NAMES for word in words.split()}
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|[A-Z]{2}\d{2}[A-Z0-9]{8,30}")
_PLACE: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+|www\.\S+|\.{0,2}/\S*", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"-?[\d.,]+")


def kind_of(parameter: str, value: JSON) -> Kind:
    """Return the kind of an argument, by its name or else by its value."""
    named = [_BY_NAME[word.lower()] for word in _WORD.findall(parameter) if word.lower() in _BY_NAME]
    if named:
        return min(named)

    texts = texts_of(value)
    for kind, form in ((Kind.WHO, _ADDRESS), (Kind.WHERE, _PLACE), (Kind.HOW_MUCH, _AMOUNT)):
        if any(form.fullmatch(text) for text in texts):
            return kind
    return Kind.OTHER
