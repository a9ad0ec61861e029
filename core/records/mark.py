"""Marks each field of a record as an outcome or as derived.

An *outcome* is what only the world could provide: a model's text, a tool's output, a time, an order of arrival, a
person's word. It is taken as recorded. A *derived* field was computed by the core itself, so a verification computes it
again and names the first record that differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Mark:
    """The source of a field's value."""

    derived: bool
    """Whether the core computed it."""


@dataclass(frozen=True, slots=True)
class Since:
    """The first format that has a kind or a field. Journals of older formats have the field's default."""

    format: str


@dataclass(frozen=True, slots=True)
class Group:
    """The field is a class whose fields are in the header itself, among the others. None: the header has none."""


OUTCOME: Final = Mark(derived=False)
DERIVED: Final = Mark(derived=True)

_T = TypeVar("_T")

Outcome: TypeAlias = Annotated[_T, OUTCOME]
Derived: TypeAlias = Annotated[_T, DERIVED]
